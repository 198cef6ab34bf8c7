"""Every time in an OTLP body moved by one constant; durations stay as they are."""

import json
from typing import Any

from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.collector.accept import Encoding, Signal

_REQUESTS: dict[Signal, type[Message]] = {
    Signal.TRACES: ExportTraceServiceRequest,
    Signal.METRICS: ExportMetricsServiceRequest,
}
_TIME_SUFFIX = "time_unix_nano"
_JSON_TIME_SUFFIX = "imeUnixNano"


def shifted(body: bytes, signal: Signal, encoding: Encoding, by_ns: int) -> bytes:
    """The same body `by_ns` later. A time that is not set stays so.

    Raises ValueError or protobuf's DecodeError for a broken body.
    """
    if encoding is Encoding.JSON:
        document = json.loads(body)
        _shift_json(document, by_ns)
        return json.dumps(document, separators=(",", ":")).encode()
    message = _REQUESTS[signal]()
    message.ParseFromString(body)
    _shift_message(message, by_ns)
    moved: bytes = message.SerializeToString()
    return moved


def _shift_message(message: Message, by_ns: int) -> None:
    for field, value in message.ListFields():
        if field.name.endswith(_TIME_SUFFIX):
            setattr(message, field.name, max(value + by_ns, 0))
        elif field.message_type is None:
            continue
        elif field.is_repeated:
            for item in value:
                _shift_message(item, by_ns)
        else:
            _shift_message(value, by_ns)


def _shift_json(node: Any, by_ns: int) -> None:
    if isinstance(node, list):
        for item in node:
            _shift_json(item, by_ns)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key.endswith(_JSON_TIME_SUFFIX) and isinstance(value, str | int) and int(value):
                node[key] = str(max(int(value) + by_ns, 0))
            else:
                _shift_json(value, by_ns)
