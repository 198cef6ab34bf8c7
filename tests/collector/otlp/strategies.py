"""Requests of every shape that protobuf can write, without text that would be blanked."""

from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

KEYS = (
    "gen_ai.request.model",
    "gen_ai.request.id",
    "gen_ai.usage.output_tokens",
    "http.response.status_code",
    "llm.replica",
    "x",
)

# No letter of a hex digit, none that begins a secret, no space: nothing here is blanked.
plain_text = st.text('ghimnz漢é😀."\\/\n\0\x7f_-', max_size=20)
keys = st.sampled_from(KEYS) | st.text("ghmnz漢é._-", min_size=1, max_size=12)
doubles = st.floats(allow_nan=False)
int64s = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-300, 300)
uint64s = st.integers(0, (1 << 64) - 1)
raw_bytes = st.binary(max_size=20).map(lambda data: bytes(b | 0x80 for b in data))

leaves = (
    st.just(AnyValue())
    | plain_text.map(lambda v: AnyValue(string_value=v))
    | st.booleans().map(lambda v: AnyValue(bool_value=v))
    | int64s.map(lambda v: AnyValue(int_value=v))
    | doubles.map(lambda v: AnyValue(double_value=v))
    | raw_bytes.map(lambda v: AnyValue(bytes_value=v))
)


def _lists(inner: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[AnyValue]:
    arrays = st.lists(inner, max_size=3).map(
        lambda values: AnyValue(array_value=ArrayValue(values=values))
    )
    pairs = st.builds(lambda key, value: KeyValue(key=key, value=value), keys, inner)
    maps = st.lists(pairs, max_size=3).map(
        lambda values: AnyValue(kvlist_value=KeyValueList(values=values))
    )
    return arrays | maps


values = st.recursive(leaves, _lists, max_leaves=6)
attributes = st.lists(
    st.builds(lambda key, value: KeyValue(key=key, value=value), keys, values)
    | keys.map(lambda key: KeyValue(key=key)),
    max_size=8,
)

ids = st.binary(min_size=16, max_size=16)
short_ids = st.binary(min_size=8, max_size=8)
events = st.lists(
    st.builds(
        lambda name, time, attributes: Span.Event(
            name=name, time_unix_nano=time, attributes=attributes
        ),
        plain_text,
        uint64s,
        attributes,
    ),
    max_size=3,
)
links = st.lists(
    st.builds(
        lambda trace, span, attributes: Span.Link(
            trace_id=trace, span_id=span, trace_state="z=g", attributes=attributes
        ),
        ids,
        short_ids,
        attributes,
    ),
    max_size=2,
)
spans = st.builds(
    lambda trace, span, parent, name, kind, start, end, attributes, events, links, status, flags: (
        Span(
            trace_id=trace,
            span_id=span,
            parent_span_id=parent,
            name=name,
            kind=kind,
            start_time_unix_nano=start,
            end_time_unix_nano=end,
            attributes=attributes,
            events=events,
            links=links,
            status=status,
            flags=flags,
            dropped_attributes_count=3,
        )
    ),
    ids | st.binary(max_size=20),
    short_ids | st.just(bytes(8)),
    st.just(b"") | short_ids,
    plain_text,
    st.integers(0, 5).map(Span.SpanKind.Name),
    uint64s,
    uint64s,
    attributes,
    events,
    links,
    st.none()
    | st.builds(
        lambda code, message: Status(code=code, message=message),
        st.integers(0, 2).map(Status.StatusCode.Name),
        plain_text,
    ),
    st.integers(0, (1 << 32) - 1),
)
scope_spans = st.builds(
    lambda name, attributes, spans: ScopeSpans(
        scope=InstrumentationScope(name=name, version="g", attributes=attributes), spans=spans
    ),
    plain_text,
    attributes,
    st.lists(spans, max_size=4),
)
resource_spans = st.builds(
    lambda attributes, groups: ResourceSpans(
        resource=Resource(attributes=attributes), scope_spans=groups
    ),
    attributes,
    st.lists(scope_spans, max_size=2),
)
requests = st.lists(resource_spans, max_size=3).map(
    lambda groups: ExportTraceServiceRequest(resource_spans=groups)
)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _unknown(field: int, wire: int, number: int, data: bytes) -> bytes:
    tag = _varint(field << 3 | wire)
    match wire:
        case 0:
            return tag + _varint(number)
        case 1:
            return tag + number.to_bytes(8, "little")
        case 2:
            return tag + _varint(len(data)) + data
        case 3:
            return tag + _unknown(7, 2, 0, data) + _varint(field << 3 | 4)
        case _:
            return tag + number.to_bytes(8, "little")[:4]


unknown_fields = st.builds(
    _unknown,
    st.integers(200, 5000),
    st.sampled_from((0, 1, 2, 3, 5)),
    uint64s,
    st.binary(max_size=12),
)
