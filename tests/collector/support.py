"""Bodies of spans whose ids can be told again, and what reads them back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.collector.accept import Encoding
from tailburn.collector.errors import BadBody
from tailburn.collector.group import Delivery, Rejected
from tailburn.collector.intake import Intake
from tailburn.collector.log import Kind, LogReader
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.snapshot import Snapshot
from tailburn.collector.spans import SpanBatch
from tailburn.engine.schema import SIGNALS
from tailburn.engine.store.parquet import ParquetStore

START_NS = 1_764_590_400_000_000_000
MS = 1_000_000


def body(ids: Iterable[int], padding: int = 0) -> bytearray:
    """An ExportTraceServiceRequest of one span per id; `padding` bytes make it large."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    scope = resource.scope_spans.add()
    for n in ids:
        span = scope.spans.add()
        span.trace_id = n.to_bytes(16, "little")
        span.span_id = n.to_bytes(8, "little")
        span.name = "chat"
        span.start_time_unix_nano = START_NS + n
        span.end_time_unix_nano = START_NS + n + 5 * MS
    if padding:
        attribute = resource.resource.attributes.add()
        attribute.key = "padding"
        attribute.value.string_value = "x" * padding
    return bytearray(request.SerializeToString())


def ids_of(body: bytes | bytearray) -> list[int]:
    """The span ids of a body, by protobuf's own decoder."""
    request = ExportTraceServiceRequest.FromString(bytes(body))
    return [
        int.from_bytes(span.span_id, "little")
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def ids_in_log(folder: Path) -> list[int]:
    """The span ids of every record, in order."""
    return [n for r in LogReader(folder) if r.kind is Kind.TRACES for n in ids_of(r.body)]


def decoder() -> Decoder:
    return Decoder(())


@dataclass(frozen=True)
class Converted:
    body: bytearray
    rejected: int = 0
    message: str = ""


@dataclass(frozen=True)
class Points:
    table: pa.Table
    rejected: int = 0
    message: str = ""


def convert(body: bytearray) -> Converted:
    """Stands for JSON: the protobuf body behind a brace."""
    if not body.startswith(b"{"):
        raise BadBody("not JSON")
    return Converted(body[1:], rejected=2, message="two spans had odd ids")


def points(body: bytearray, encoding: Encoding, *, received_ns: int, tenant: str) -> Points:
    """Stands for metrics: one row whose name is the body."""
    row = {"received_ns": received_ns, "tenant": tenant, "name": body.decode(), "kind": encoding}
    return Points(pa.Table.from_pylist([row], schema=SIGNALS))


def delivered(intake: Intake) -> list[Delivery]:
    """Closes an intake and gives all that it delivered."""
    intake.close()
    found = []
    while (delivery := intake.deliveries.get_nowait()) is not None:
        found.append(delivery)
    return found


QUIET_NS = 5_000_000_000


class ClosingPipeline:
    """A pipeline in small: a span becomes a row of `signals` five seconds after it came.

    Each row's `name` is the span's id and its `value` the number of rows given before, so that
    a row lost, repeated or made in another order shows.
    """

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        self.given = 0
        self.rows: list[dict[str, object]] = []
        self.advanced_ns: list[int] = []

    def add(self, batch: SpanBatch, rejected: Sequence[Rejected]) -> None:
        del rejected
        ids, received = batch.span.tolist(), batch.received_ns.tolist()
        self.open.update(zip(ids, received, strict=True))

    def signals(self, table: pa.Table) -> None:
        self.rows += table.to_pylist()

    def due(self, now_ns: int) -> bool:
        return any(ns + QUIET_NS <= now_ns for ns in self.open.values())

    def advance(self, now_ns: int) -> None:
        self.advanced_ns.append(now_ns)
        self._close(now_ns - QUIET_NS)

    def close_all(self, now_ns: int) -> None:
        self._close(now_ns)

    def pending_rows(self) -> int:
        return len(self.rows)

    def take_rows(self) -> dict[str, pa.Table]:
        rows, self.rows = self.rows, []
        return {"signals": pa.Table.from_pylist(rows, schema=SIGNALS)} if rows else {}

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        assert not self.rows
        ids = np.array(list(self.open), np.uint64)
        return {"ids": ids, "ns": np.array(list(self.open.values()))}, {"given": self.given}

    @classmethod
    def restore(cls, found: Snapshot | None) -> "tuple[ClosingPipeline, Decoder]":
        pipeline = cls()
        if found:
            ids, received = found.arrays["ids"].tolist(), found.arrays["ns"].tolist()
            pipeline.open = dict(zip(ids, received, strict=True))
            pipeline.given = found.meta["given"]
        return pipeline, decoder()

    def _close(self, until_ns: int) -> None:
        for n in [n for n, ns in self.open.items() if ns <= until_ns]:
            row = {"name": str(n), "received_ns": self.open.pop(n), "value": float(self.given)}
            self.rows.append(row)
            self.given += 1


def rows_in(store: Path) -> list[tuple[int, float]]:
    """Span id and number of every row in a store, by number."""
    found = ParquetStore(store).query("SELECT name, value FROM signals ORDER BY value, name")
    return [(int(r["name"]), r["value"]) for r in found.to_pylist()]
