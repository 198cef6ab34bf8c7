"""What `tailburn hops explain` reads, and how it tells what it found."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from tailburn.app.errors import UserError
from tailburn.app.replay.paths import recordings
from tailburn.app.terminal.text import harmless
from tailburn.collector.accept import Encoding, Signal
from tailburn.collector.errors import BadBody
from tailburn.collector.hops.explain import ExplainedSpan, Explainer, Unrecognised, unrecognised
from tailburn.collector.hops.rules import Rules
from tailburn.collector.otlp.json import to_protobuf
from tailburn.engine.store.api import Store

TRACE_ID: Final = re.compile(r"[0-9a-fA-F]{32}")
MOST_ONE_BY_ONE: Final = 40
_NAMES_SHOWN: Final = 3
_ALWAYS_KNOWN: Final = ("service",)


def explain_bodies(rules: Rules, bodies: Iterable[tuple[str, bytearray]]) -> list[ExplainedSpan]:
    """Every span of the bodies (place, protobuf). Raises UserError for one that isn't OTLP."""
    explainer = Explainer(rules)
    spans: list[ExplainedSpan] = []
    for place, body in bodies:
        try:
            spans += explainer.explain(body)
        except BadBody as error:
            raise UserError(f"{place}: {error}") from None
    return spans


def recorded_bodies(paths: Iterable[Path]) -> Iterator[tuple[str, bytearray]]:
    """The bodies of spans under the paths, in protobuf. Raises UserError."""
    for recording in recordings(paths):
        if recording.signal is not Signal.TRACES:
            continue
        body = bytearray(recording.body)
        if recording.encoding is Encoding.JSON:
            try:
                body = to_protobuf(body).body
            except BadBody as error:
                raise UserError(f"{recording.place}: {error}") from None
        yield recording.place, body


def stored_body(store: Store, trace_id: str) -> bytearray:
    """A stored trace as a body again, without attributes of events, which aren't kept.

    Raises UserError for a trace the store doesn't hold.
    """
    rows = store.trace(trace_id.lower()).spans
    if not rows.num_rows:
        raise UserError(f"trace {trace_id} is not in the store (or no longer)")
    return bytearray(_request_of(rows).SerializeToString())


def _request_of(rows: pa.Table) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    for row in rows.to_pylist():
        resource_spans = ResourceSpans()
        resource = json.loads(row["resource"] or "{}")
        resource_spans.resource.attributes.extend(_attribute(k, v) for k, v in resource.items())
        scope_spans = ScopeSpans(spans=[_span(row)])
        scope_spans.scope.name = row["scope"] or ""
        resource_spans.scope_spans.append(scope_spans)
        request.resource_spans.append(resource_spans)
    return request


def _span(row: dict[str, Any]) -> Span:
    kind: Any = row["kind"] or 0
    status: Any = row["status"] or 0
    span = Span(
        trace_id=row["trace_id"],
        span_id=row["span_id"],
        name=row["name"] or "",
        kind=kind,
        start_time_unix_nano=row["start_ns"],
        end_time_unix_nano=row["end_ns"],
        flags=row["flags"] or 0,
    )
    span.status.code = status
    for key, value in (*(row["attributes_num"] or ()), *(row["attributes_str"] or ())):
        span.attributes.append(_attribute(key, value))
    for event in row["events"] or ():
        span.events.add(name=event["name"] or "", time_unix_nano=event["time_ns"])
    return span


def _attribute(key: str, value: object) -> KeyValue:
    pair = KeyValue(key=key)
    if isinstance(value, bool):
        pair.value.bool_value = value
    elif isinstance(value, float) and value.is_integer():
        pair.value.int_value = int(value)
    elif isinstance(value, int):
        pair.value.int_value = value
    elif isinstance(value, float):
        pair.value.double_value = value
    else:
        pair.value.string_value = str(value)
    return pair


def as_rows(spans: Iterable[ExplainedSpan]) -> Iterator[dict[str, Any]]:
    """One plain dictionary per span, for JSON."""
    return (asdict(span) for span in spans)


def told(spans: list[ExplainedSpan], one_by_one: bool) -> Iterator[str]:
    """Lines for people: what was recognised, each or by kind, then what was not."""
    recognised = [span for span in spans if span.rule]
    if one_by_one or len(recognised) <= MOST_ONE_BY_ONE:
        for span in recognised:
            yield from _span_lines(span, f"{span.span_id} {span.name}")
    else:
        yield from _grouped(recognised)
    unknown = unrecognised(spans)
    if unknown:
        count = sum(kind.count for kind in unknown)
        yield f"Not recognised: {count:,} of {len(spans):,} spans"
        for kind in unknown:
            yield from _unknown_lines(kind)
    else:
        yield f"All {len(spans):,} spans are recognised."


def _grouped(spans: list[ExplainedSpan]) -> Iterator[str]:
    kinds: dict[tuple[str, ...], list[ExplainedSpan]] = {}
    for span in spans:
        kinds.setdefault((span.rule, span.service, span.kind), []).append(span)
    for group in sorted(kinds.values(), key=len, reverse=True):
        fullest = max(group, key=lambda span: len(span.fields))
        yield from _span_lines(fullest, f"{len(group):,} x {_names(group)}")


def _names(group: list[ExplainedSpan]) -> str:
    names = list(dict.fromkeys(span.name for span in group))
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more names" if more > 0 else "")


def _span_lines(span: ExplainedSpan, head: str) -> Iterator[str]:
    yield harmless(f"{head}  [{span.kind}, scope {span.scope or '-'}, {span.service or '-'}]")
    place = span.hop or "no hop of its own"
    yield harmless(f"    is {span.role}, {place}: rule {span.rule} ({span.place})")
    for reason in span.because:
        yield harmless(f"    because {reason}")
    read = [_field(span, name) for name in span.fields if name not in _ALWAYS_KNOWN]
    if read:
        yield harmless(f"    read {', '.join(read)}")
    late = "" if span.end == "last_byte" else f", end is {span.end}"
    yield f"    outcome {span.outcome}{late}"
    yield ""


def _field(span: ExplainedSpan, name: str) -> str:
    source = span.sources.get(name)
    return f"{name} {span.fields[name]}" + (f" <- {source}" if source else "")


def _unknown_lines(kind: Unrecognised) -> Iterator[str]:
    yield ""
    yield harmless(
        f"{kind.count:,} x {kind.name}  [{kind.kind}, scope {kind.scope or '-'}, "
        f"{kind.service or '-'}]"
    )
    yield harmless(f"    attributes {', '.join(kind.attributes) or 'none'}")
    for near in kind.near:
        yield harmless(f"    nearly {near}")
    yield "    a rule to start from:"
    for line in kind.draft().splitlines():
        yield f"    {harmless(line)}"
