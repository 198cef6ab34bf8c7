"""Recorded OTLP bodies as protobuf's own decoder reads them, and which traces share an id."""

import base64
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from bench.captures.log import Sent

Value: TypeAlias = str | int | float | bool | None

ID_KEYS = (
    "gen_ai.response.id",
    "gen_ai.request.id",
    "request_id",
    "x_request_id",
    "vllm.request_id",
    "litellm.call_id",
)
EARLY_NS = 10_000_000  # a span may start this long before its client took the time
ID_PREFIXES = ("chatcmpl-", "cmpl-", "resp_")


@dataclass(frozen=True)
class Span:
    """One recorded span. Times are ns since the epoch."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    service: str
    start_ns: int
    end_ns: int
    status: int
    attributes: dict[str, Value]
    events: tuple[tuple[str, int], ...]

    def text(self, key: str) -> str:
        return str(self.attributes.get(key, ""))

    def number(self, key: str) -> float:
        """The attribute as a number, also where the sender wrote it as text."""
        value = self.attributes[key]
        assert isinstance(value, str | int | float)
        return float(value)


@dataclass
class Group:
    """Traces that an id joins, and the requests that clients sent in them."""

    traces: set[str] = field(default_factory=set)
    spans: list[Span] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)

    def having(self, test: Callable[[Span], bool]) -> list[Span]:
        """The spans that pass `test`, by start."""
        return sorted(filter(test, self.spans), key=lambda span: span.start_ns)

    def of(self, sent: Sent) -> "Group":
        """The part of this group that belongs to one of its requests.

        A client that seeds its generator repeats trace and span ids alike, so only time tells
        its requests apart: a span belongs to the last one sent before it.
        """
        if len(self.sent) == 1:
            return self
        later = [other.sent_ns for other in self.sent if other.sent_ns > sent.sent_ns]
        begin, end = sent.sent_ns - EARLY_NS, min(later, default=1 << 62) - EARLY_NS
        spans = [span for span in self.spans if begin <= span.start_ns < end]
        return Group({sent.trace_id}, spans, [sent])


def read_bodies(folder: Path) -> list[Span]:
    """Every span of a folder of recorded bodies (`NNNNN-{http,grpc}.bin` with `.json`)."""
    spans: list[Span] = []
    for path in sorted(folder.glob("*.bin")):
        about = json.loads(path.with_suffix(".json").read_text())
        if "race" not in about["path"]:
            continue
        body = path.read_bytes()
        if body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        spans.extend(_spans(_message(body, about["content_type"] or "")))
    return spans


def _message(body: bytes, content_type: str) -> ExportTraceServiceRequest:
    if "json" not in content_type:
        return ExportTraceServiceRequest.FromString(body)
    return ParseDict(_base64_ids(json.loads(body)), ExportTraceServiceRequest())


def _base64_ids(node: object) -> object:
    """OTLP/JSON writes ids in hex where protobuf's JSON mapping wants base64."""
    if isinstance(node, list):
        return [_base64_ids(item) for item in node]
    if not isinstance(node, dict):
        return node
    ids = {"traceId", "spanId", "parentSpanId"}
    return {
        key: base64.b64encode(bytes.fromhex(value)).decode() if key in ids else _base64_ids(value)
        for key, value in node.items()
    }


def _spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource_spans in request.resource_spans:
        service = str(_attributes(resource_spans.resource.attributes).get("service.name", ""))
        for scope_spans in resource_spans.scope_spans:
            for message in scope_spans.spans:
                yield _span(message, service)


def _span(message: SpanMessage, service: str) -> Span:
    return Span(
        trace_id=message.trace_id.hex(),
        span_id=message.span_id.hex(),
        parent_id=message.parent_span_id.hex(),
        name=message.name,
        kind=message.kind,
        service=service,
        start_ns=message.start_time_unix_nano,
        end_ns=message.end_time_unix_nano,
        status=message.status.code,
        attributes=_attributes(message.attributes),
        events=tuple((event.name, event.time_unix_nano) for event in message.events),
    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Value]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Value:
    kind = value.WhichOneof("value")
    scalar = kind in ("string_value", "int_value", "double_value", "bool_value")
    return getattr(value, kind) if kind and scalar else None


def group(spans: Iterable[Span], sent: Iterable[Sent]) -> list[Group]:
    """Traces joined where two of them carry one request id, with the requests sent in them."""
    leader: dict[str, str] = {}

    def find(trace: str) -> str:
        while leader.setdefault(trace, trace) != trace:
            trace = leader[trace]
        return trace

    named: dict[str, str] = {}
    everything = list(spans)
    for span in everything:
        for key in ID_KEYS:
            if name := _bare(span.attributes.get(key)):
                leader[find(span.trace_id)] = find(named.setdefault(name, span.trace_id))
    groups: dict[str, Group] = defaultdict(Group)
    for span in everything:
        groups[find(span.trace_id)].spans.append(span)
        groups[find(span.trace_id)].traces.add(span.trace_id)
    for request in sent:
        groups[find(request.trace_id)].sent.append(request)
        groups[find(request.trace_id)].traces.add(request.trace_id)
    return list(groups.values())


def _bare(value: Value) -> str:
    """An id without the prefix that one hop of a chain adds and the next does not."""
    text = "" if value is None else str(value)
    for prefix in ID_PREFIXES:
        text = text.removeprefix(prefix)
    return text
