"""The same service with its middle done plainly: protobuf's decoder, loops, dictionaries.

    python -m bench.service.baseline serve --store DIR

Doors, log, keeper, store and rollups are the service's own. What is replaced: the decoder (no
blanking of users' text, no digests of content), recognition (five fixed span names), stitching
(a dictionary of open traces; no offsets, no attempts, no breakdown), and rows (lists of Python
values). So it does less than what it is compared with.
"""

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tailburn.app import collecting, serve
from tailburn.app.cli import cli
from tailburn.collector.errors import BadBody
from tailburn.collector.otlp.resources import Resources
from tailburn.engine.names import FATES
from tailburn.engine.rollup import fold
from tailburn.engine.schema import REQUESTS, ROLLUPS, SPANS

_IDLE_CLOSE_NS: Final = 5_000_000_000
_NS: Final = 1e9
_HOPS: Final = {"POST /v1/chat/completions": "gateway", "llm_request": "engine"}

SpanRow = tuple[Any, ...]
"""Values in the order of the schema SPANS."""


class PlainBatch(list[SpanRow]):
    """Spans in order of arrival."""

    def part(self, start: int, stop: int) -> "PlainBatch":
        return PlainBatch(self[start:stop])


@dataclass(frozen=True)
class PlainDecoded:
    """What became of a body."""

    spans: int
    body: bytearray
    rejected: int = 0
    message: str = ""


class PlainDecoder:
    """Implements `collector.group.Decoder` by protobuf's decoder and loops."""

    def __init__(self) -> None:
        self._rows = PlainBatch()

    def add(self, body: bytearray, *, received_ns: int, tenant: str) -> PlainDecoded:
        try:
            message = ExportTraceServiceRequest.FromString(bytes(body))
        except DecodeError as error:
            raise BadBody(str(error)) from error
        before = len(self._rows)
        for group in message.resource_spans:
            resource = dict(_pairs(group.resource.attributes))
            shared = (resource.get("service.name"), str(resource))
            for scoped in group.scope_spans:
                scope = scoped.scope.name
                self._rows += [
                    _row(span, scope, shared, received_ns, tenant) for span in scoped.spans
                ]
        return PlainDecoded(len(self._rows) - before, body)

    def take(self) -> PlainBatch:
        rows, self._rows = self._rows, PlainBatch()
        return rows

    def take_rejected(self) -> list[tuple[int, str, int]]:
        return []


def _row(span: Span, scope: str, shared: tuple[Any, str], received_ns: int, tenant: str) -> SpanRow:
    numbers, texts = [], []
    for key, value in _pairs(span.attributes):
        if isinstance(value, str):
            texts.append((key, value))
        elif isinstance(value, int | float):
            numbers.append((key, float(value)))
        else:
            texts.append((key, str(value)))
    hop = "client" if span.kind == 3 and not span.parent_span_id else _HOPS.get(span.name)
    events = [{"name": e.name, "time_ns": e.time_unix_nano} for e in span.events]
    return (
        received_ns, tenant, span.trace_id, span.span_id, span.parent_span_id or bytes(8),
        span.name, scope, *shared, span.kind, span.status.code, span.flags,
        span.start_time_unix_nano, span.end_time_unix_nano, hop, None, None, False,
        hash((span.trace_id, span.span_id)) & (2**63 - 1), 1.0, numbers, texts, events,
    )  # fmt: skip


def _pairs(attributes: Sequence[KeyValue]) -> Iterator[tuple[str, object]]:
    for pair in attributes:
        yield pair.key, _plain(pair.value)


def _plain(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(v) for v in value.array_value.values]
    return getattr(value, kind) if kind else None


@dataclass
class _Open:
    """A trace whose request is not given yet."""

    last_ns: int = 0
    spans: list[SpanRow] = field(default_factory=list)


class PlainBalance:
    """The counts of `collector.balance.Balance`, all resources as one."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def lines(self) -> list["PlainBalance"]:
        return [self]

    @property
    def resource(self) -> int:
        return 0

    @property
    def received(self) -> int:
        return self.counts["received"]

    @property
    def fates(self) -> dict[str, int]:
        return {name: self.counts[name] for name in FATES}


class PlainPipeline:
    """Implements `collector.keeper.Pipeline` by dictionaries."""

    def __init__(self) -> None:
        self.balance = PlainBalance()
        self.resources = Resources()
        self._open: dict[tuple[str, bytes], _Open] = {}
        self._spans: list[SpanRow] = []
        self._requests: list[dict[str, object]] = []

    def add(self, batch: PlainBatch, rejected: Sequence[tuple[int, str, int]]) -> None:
        self.balance.counts["received"] += len(batch)
        self.balance.counts["open"] += len(batch)
        for row in batch:
            key = row[1], row[2]
            trace = self._open.pop(key, None) or _Open()
            trace.last_ns = row[0]
            trace.spans.append(row)
            self._open[key] = trace  # last in the order of closing
        self._spans += batch

    def signals(self, table: pa.Table) -> None:
        raise AssertionError("no metrics here")

    def due(self, now_ns: int) -> bool:
        first = next(iter(self._open.values()), None)
        return first is not None and first.last_ns + _IDLE_CLOSE_NS <= now_ns

    def advance(self, now_ns: int) -> None:
        while self.due(now_ns):
            key = next(iter(self._open))
            self._requests.append(_request(self._open.pop(key).spans, now_ns))

    def close_all(self, now_ns: int) -> None:
        self.advance(np.iinfo(np.int64).max)

    def pending_rows(self) -> int:
        return len(self._spans) + len(self._requests)

    def take_rows(self) -> dict[str, pa.Table]:
        tables = {}
        if self._spans:
            columns = zip(*self._spans, strict=True)
            arrays = [pa.array(c, f.type) for c, f in zip(columns, SPANS, strict=True)]
            tables["spans"] = pa.table(arrays, schema=SPANS)
            self.balance.counts["open"] -= len(self._spans)
            self.balance.counts["stored"] += len(self._spans)
        if self._requests:
            tables["requests"] = pa.Table.from_pylist(self._requests, schema=REQUESTS)
            tables["rollups"] = fold(tables["requests"]).cast(ROLLUPS)
        self._spans, self._requests = [], []
        return tables

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return {"open": np.frombuffer(pickle.dumps(self._open), np.uint8)}, {}


def _request(spans: list[SpanRow], now_ns: int) -> dict[str, object]:
    """The row of a trace: clocks of each vantage, the model, tokens and counts."""
    row: dict[str, object] = {
        "request_id": spans[0][2].hex()[:16], "trace_id": spans[0][2].hex(),
        "anchor_span_id": spans[0][3].hex(), "version": 1, "tombstone": False,
        "completeness": "complete", "service": spans[0][7], "tenant": spans[0][1],
        "start_ns": min(s[12] for s in spans), "end_ns": max(s[13] for s in spans),
        "received_ns": now_ns, "outcome": "error" if any(s[10] == 2 for s in spans) else "ok",
        "spans": len(spans), "digests": [s[18] for s in spans], "weight": 1.0,
    }  # fmt: skip
    for span in spans:
        numbers, texts = dict(span[20]), dict(span[21])
        if span[14]:
            row[f"e2e_{span[14]}_s"] = (span[13] - span[12]) / _NS
        if "gen_ai.request.model" in texts:
            row["model"] = texts["gen_ai.request.model"]
        if "gen_ai.latency.time_to_first_token" in numbers:
            _add_engine(row, numbers)
    return row


def _add_engine(row: dict[str, object], numbers: dict[str, float]) -> None:
    row["ttft_engine_s"] = numbers["gen_ai.latency.time_to_first_token"]
    row["queue_s"] = row["ttft_queue_s"] = numbers.get("gen_ai.latency.time_in_queue")
    row["ttft_prefill_s"] = numbers.get("gen_ai.latency.time_in_model_prefill")
    row["decode_decode_s"] = numbers.get("gen_ai.latency.time_in_model_decode")
    row["prompt_tokens"] = int(numbers.get("gen_ai.usage.prompt_tokens", 0))
    row["output_tokens"] = int(numbers.get("gen_ai.usage.completion_tokens", 0))


def _restored(*_: object) -> tuple[PlainPipeline, PlainDecoder]:
    return PlainPipeline(), PlainDecoder()


def main() -> None:
    """The command line of the service, with the middle exchanged."""
    collecting.restored = _restored  # type: ignore[assignment]
    serve.warm_up = lambda *_: None  # type: ignore[attr-defined]
    cli()


if __name__ == "__main__":
    main()
