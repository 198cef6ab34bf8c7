"""Rare but valid bodies (groups, a message in two pieces) into the usual form."""

from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from tailburn.collector.errors import BadBody


def rewrite(body: bytes | bytearray, nesting: int) -> bytearray:
    """The same request as protobuf writes it, without unknown fields, and without lists that
    lie more than `nesting` levels deep. Raises BadBody."""
    try:
        request = ExportTraceServiceRequest.FromString(bytes(body))
    except DecodeError as error:
        raise BadBody("body is no ExportTraceServiceRequest in protobuf") from error
    request.DiscardUnknownFields()
    for resource_spans in request.resource_spans:
        _flatten(resource_spans.resource.attributes, nesting)
        for scope_spans in resource_spans.scope_spans:
            _flatten(scope_spans.scope.attributes, nesting)
            for span in scope_spans.spans:
                _flatten(span.attributes, nesting)
                for part in (*span.events, *span.links):
                    _flatten(part.attributes, nesting)
    return bytearray(request.SerializeToString())


def _flatten(attributes: Any, nesting: int) -> None:
    for attribute in attributes:
        if attribute.HasField("value"):
            _cut(attribute.value, nesting)


def _cut(value: AnyValue, levels: int) -> None:
    kind = value.WhichOneof("value")
    if kind not in ("array_value", "kvlist_value"):
        return
    if levels == 0:
        value.Clear()
    elif kind == "array_value":
        for element in value.array_value.values:
            _cut(element, levels - 1)
    else:
        for pair in value.kvlist_value.values:
            if pair.HasField("value"):
                _cut(pair.value, levels - 1)
