"""Hand-made spans as OTLP bodies, by protobuf's own classes."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

T0_NS = 1_800_000_000_000_000_000
SERVER, CLIENT, INTERNAL = 2, 3, 1
UNSET, OK, ERROR = 0, 1, 2

Scalar = str | int | float | bool


@dataclass(frozen=True)
class Span:
    """A span by labels: `span` and `parent` become ids within `trace`. Times are ms after T0."""

    span: str
    name: str
    start_ms: float
    end_ms: float
    parent: str = ""
    trace: str = "trace"
    kind: int = INTERNAL
    scope: str = ""
    service: str = ""
    host: str = ""
    status: int = UNSET
    attributes: Mapping[str, Scalar] = field(default_factory=dict)
    events: Mapping[str, float] = field(default_factory=dict)  # name to ms after T0


@dataclass(frozen=True)
class Delivery:
    """Spans that arrive together, `at_s` seconds after T0."""

    at_s: float
    spans: tuple[Span, ...]

    @property
    def received_ns(self) -> int:
        return T0_NS + round(self.at_s * 1e9)


def at(seconds: float, *spans: Span) -> Delivery:
    """The spans, received that many seconds after T0."""
    return Delivery(seconds, spans)


def trace_id(label: str) -> bytes:
    """The 16 bytes that a trace's label stands for."""
    return hashlib.sha256(f"trace {label}".encode()).digest()[:16]


def span_id(label: str) -> bytes:
    """The 8 bytes that a span's label stands for; no label, no parent."""
    return hashlib.sha256(f"span {label}".encode()).digest()[:8] if label else b""


def body(spans: Iterable[Span]) -> bytes:
    """One OTLP/protobuf body."""
    request = ExportTraceServiceRequest()
    for span in spans:
        of_resource = request.resource_spans.add()
        resource = {"service.name": span.service}
        if span.host:
            resource["host.name"] = span.host
        of_resource.resource.attributes.extend(_pairs(resource))
        of_scope = of_resource.scope_spans.add()
        of_scope.scope.name = span.scope
        message = of_scope.spans.add(
            trace_id=trace_id(span.trace),
            span_id=span_id(span.span),
            parent_span_id=span_id(span.parent),
            name=span.name,
            kind=span.kind,
            flags=256,
            start_time_unix_nano=_ns(span.start_ms),
            end_time_unix_nano=_ns(span.end_ms),
            attributes=_pairs(span.attributes),
        )
        message.status.code = span.status
        for name, time_ms in span.events.items():
            message.events.add(name=name, time_unix_nano=_ns(time_ms))
    return request.SerializeToString()


def _ns(after_t0_ms: float) -> int:
    return T0_NS + round(after_t0_ms * 1e6)


def _pairs(attributes: Mapping[str, Scalar]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _value(value: Scalar) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=value)
