"""What the columns should hold, told by protobuf's own decoder and plain Python."""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.spans import SpanBatch

EXACT = 1 << 53


@dataclass
class Row:
    """A span in plain Python; equal rows are equal spans."""

    trace: bytes
    span: bytes
    parent: bytes
    start_ns: int
    end_ns: int
    kind: int
    status: int
    flags: int
    name: str
    scope: str
    resource: dict[str, Any]
    numbers: dict[str, float] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)
    events: list[tuple[str, int]] = field(default_factory=list)


def nested(value: AnyValue) -> Any:
    """A value as JSON has it."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [nested(v) for v in value.array_value.values]
    if kind == "kvlist_value":
        return {kv.key: nested(kv.value) for kv in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind == "double_value":
        number = value.double_value
        return number if abs(number) < float("inf") else _named(number)
    return getattr(value, kind) if kind and kind != "string_value_strindex" else None


def _named(number: float) -> str:
    return "NaN" if number != number else ("Infinity" if number > 0 else "-Infinity")


def _resource_value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "int_value" and abs(value.int_value) > EXACT:
        return str(value.int_value)
    if kind == "double_value":
        return value.double_value
    found = nested(value)
    return "" if found is None else found


def is_accepted(span: Span) -> bool:
    """Whether OTLP allows the span's ids."""
    return (
        len(span.trace_id) == 16
        and any(span.trace_id)
        and len(span.span_id) == 8
        and any(span.span_id)
        and len(span.parent_span_id) in (0, 8)
    )


def _clamped(time: int) -> int:
    return min(time, (1 << 63) - 1)


def canonical(value: Any) -> Any:
    """JSON in which 1 and 1.0 are one number, for comparison."""
    if isinstance(value, float):
        return int(value) if value == int(value) else value
    if isinstance(value, list):
        return [canonical(v) for v in value]
    if isinstance(value, dict):
        return {key: canonical(v) for key, v in sorted(value.items())}
    return value


def _put(row: Row, key: str, value: AnyValue) -> None:
    row.numbers.pop(key, None)
    row.strings.pop(key, None)
    kind = value.WhichOneof("value")
    if kind == "int_value" and abs(value.int_value) <= EXACT:
        row.numbers[key] = float(value.int_value)
    elif kind == "int_value":
        row.strings[key] = str(value.int_value)
    elif kind == "double_value":
        row.numbers[key] = value.double_value
    elif kind == "bool_value":
        row.strings[key] = "true" if value.bool_value else "false"
    elif kind in ("array_value", "kvlist_value"):
        row.strings[key] = json.dumps(canonical(nested(value)))
    else:
        row.strings[key] = nested(value) or ""


def expected(request: ExportTraceServiceRequest) -> list[Row]:
    """The rows of a request whose text needs no blanking."""
    rows = []
    for group in request.resource_spans:
        resource = {kv.key: kv.value for kv in group.resource.attributes}
        for scoped in group.scope_spans:
            for span in scoped.spans:
                if not is_accepted(span):
                    continue
                row = Row(
                    span.trace_id,
                    span.span_id,
                    span.parent_span_id or bytes(8),
                    _clamped(span.start_time_unix_nano),
                    _clamped(span.end_time_unix_nano),
                    span.kind if 0 <= span.kind <= 5 else 0,
                    span.status.code if 0 <= span.status.code <= 2 else 0,
                    span.flags,
                    span.name,
                    scoped.scope.name,
                    {key: canonical(_resource_value(value)) for key, value in resource.items()},
                )
                for kv in span.attributes:
                    if kv.key:
                        _put(row, kv.key, kv.value)
                row.events = [(e.name, _clamped(e.time_unix_nano)) for e in span.events]
                rows.append(row)
    return rows


def _read(value: object) -> Any:
    return json.loads(value) if isinstance(value, str) and value[:1] in ("[", "{") else value


def _canonical(text: str) -> str:
    """JSON with sorted keys, or the text itself."""
    if text[:1] in "[{":
        try:
            return json.dumps(canonical(json.loads(text)))
        except ValueError:
            return text
    return text


def rows_of(decoder: Decoder, batch: SpanBatch) -> list[Row]:
    """What a batch holds, in plain Python."""
    text = decoder.dictionary.text
    strings = batch.str_bytes.tobytes()
    rows = []
    for i in range(len(batch)):
        numbers = range(batch.num_offset[i], batch.num_offset[i + 1])
        entries = range(batch.str_offset[i], batch.str_offset[i + 1])
        events = range(batch.event_offset[i], batch.event_offset[i + 1])
        bounds = batch.str_bytes_offset
        rows.append(
            Row(
                batch.trace[i].tobytes(),
                batch.span[i].tobytes(),
                batch.parent[i].tobytes(),
                int(batch.start_ns[i]),
                int(batch.end_ns[i]),
                int(batch.kind[i]),
                int(batch.status[i]),
                int(batch.flags[i]),
                text(int(batch.name[i])),
                text(int(batch.scope[i])),
                {
                    key: canonical(_read(value))
                    for key, value in decoder.resources.attributes(int(batch.resource[i])).items()
                },
                {text(int(batch.num_key[j])): float(batch.num_value[j]) for j in numbers},
                {
                    text(int(batch.str_key[j])): _canonical(
                        strings[bounds[j] : bounds[j + 1]].decode()
                    )
                    for j in entries
                },
                [(text(int(batch.event_name[j])), int(batch.event_ns[j])) for j in events],
            )
        )
    return rows
