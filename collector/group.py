"""Bodies on their way to the log together, and what comes out of it when they are durable."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import pyarrow as pa

from tailburn.collector.accept import Encoding
from tailburn.collector.log import Entry, Kind, Record
from tailburn.collector.packing import unpacked
from tailburn.collector.spans import SpanBatch
from tailburn.collector.spans import joined as joined_spans

Rejected = tuple[int, str, int]
"""Code of the resource, reason, number of spans."""

UNKNOWN_RESOURCE: Final = 0
NOT_CONVERTED: Final = "json"
"""The reason of spans that could not be turned from JSON into protobuf."""


class Decoded(Protocol):
    """What became of a body of spans."""

    @property
    def spans(self) -> int: ...
    @property
    def rejected(self) -> int: ...
    @property
    def message(self) -> str: ...
    @property
    def body(self) -> bytes | bytearray: ...  # blanked: what may be kept


class Points(Protocol):
    """What became of a body of metrics."""

    @property
    def table(self) -> pa.Table: ...  # rows of engine.schema.SIGNALS
    @property
    def rejected(self) -> int: ...
    @property
    def message(self) -> str: ...


class Decoder(Protocol):
    """Collects the spans of bodies as rows. Callers serialise their calls."""

    def add(self, body: bytearray, *, received_ns: int, tenant: str) -> Decoded:
        """Adds a body's spans; nothing of it when it raises `BadBody`."""

    def take(self) -> SpanBatch:
        """The rows since the last call."""

    def take_rejected(self) -> list[Rejected]:
        """What was refused since the last call."""


class DecodePoints(Protocol):
    """Decodes a body of metrics; keeps no state. Raises `BadBody`."""

    def __call__(
        self, body: bytearray, encoding: Encoding, *, received_ns: int, tenant: str
    ) -> Points: ...


@dataclass(frozen=True)
class Tick:
    """Time comes to `now_ns` before row `row` of the batch is added."""

    row: int
    now_ns: int
    closes_all: bool = False  # and what is open is closed, due or not


@dataclass(frozen=True)
class Delivery:
    """What a run of records of the log holds, decoded. All of it is durable."""

    first_position: int
    last_position: int
    batch: SpanBatch  # in log order
    rejected: Sequence[Rejected]
    signals: Sequence[pa.Table]
    ticks: Sequence[Tick]  # rising by row
    body_bytes: int  # of the bodies as they came


def joined(deliveries: Sequence[Delivery]) -> Delivery:
    """Deliveries that follow each other, at least one, as if they had been one from the first."""
    if len(deliveries) == 1:
        return deliveries[0]
    ticks: list[Tick] = []
    rows = 0
    for delivery in deliveries:
        ticks += [replace(tick, row=tick.row + rows) for tick in delivery.ticks]
        rows += len(delivery.batch)
    return Delivery(
        deliveries[0].first_position,
        deliveries[-1].last_position,
        joined_spans([delivery.batch for delivery in deliveries]),
        [rejected for delivery in deliveries for rejected in delivery.rejected],
        [table for delivery in deliveries for table in delivery.signals],
        ticks,
        sum(delivery.body_bytes for delivery in deliveries),
    )


@dataclass
class Group:
    """Entries for the log in order, and what has been decoded of them beside."""

    entries: list[Entry] = field(default_factory=list)
    signals: list[pa.Table] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    rows: int = 0
    rejected: int = 0
    body_bytes: int = 0

    def __len__(self) -> int:
        return len(self.entries)

    def add_spans(
        self, decoded: Decoded, received_ns: int, tenant: str, size: int, rejected: int = 0
    ) -> None:
        """A body that came in `size` bytes and whose rows the decoder holds already.

        `rejected` spans were left out of it before the decoder saw it.
        """
        self.rows += decoded.spans
        self.rejected += rejected
        self.body_bytes += size
        self.entries.append(Entry(Kind.TRACES, received_ns, tenant, decoded.body, rejected))

    def add_points(
        self, points: Points, body: bytearray, encoding: Encoding, received_ns: int, tenant: str
    ) -> None:
        """A body of metrics and what it says."""
        kind = Kind.METRICS if encoding is Encoding.PROTOBUF else Kind.METRICS_JSON
        self.signals.append(points.table)
        self.body_bytes += len(body)
        self.entries.append(Entry(kind, received_ns, tenant, body))

    def add_rows(self, rows: pa.Table, body: bytearray, received_ns: int, tenant: str) -> None:
        """Rows of engine.schema.SIGNALS that were read here, and the bytes that they are."""
        self.signals.append(rows)
        self.body_bytes += len(body)
        self.entries.append(Entry(Kind.SIGNALS, received_ns, tenant, body))

    def add_tick(self, now_ns: int, closes_all: bool = False) -> None:
        """Time comes to `now_ns` before what is added next."""
        self.ticks.append(Tick(self.rows, now_ns, closes_all))
        self.entries.append(Entry(Kind.CLOSE if closes_all else Kind.TICK, now_ns, "", b""))

    def delivery(self, first_position: int, last_position: int, decoder: Decoder) -> Delivery:
        """What this group is at these positions of the log; takes its rows from the decoder."""
        batch, rejected = decoder.take(), decoder.take_rejected()
        if self.rejected:
            rejected.append((UNKNOWN_RESOURCE, NOT_CONVERTED, self.rejected))
        return Delivery(
            first_position,
            last_position,
            batch,
            rejected,
            self.signals,
            self.ticks,
            self.body_bytes,
        )


def add_record(group: Group, decoder: Decoder, decode_points: DecodePoints, record: Record) -> None:
    """Adds a record read back from the log, as it was added when it came.

    Raises `BadBody` where this version no longer takes what an earlier one took.
    """
    at, tenant = record.received_ns, record.tenant
    match record.kind:
        case Kind.TICK | Kind.CLOSE:
            group.add_tick(at, closes_all=record.kind is Kind.CLOSE)
        case Kind.TRACES:
            size = len(record.body)
            decoded = decoder.add(record.body, received_ns=at, tenant=tenant)
            group.add_spans(decoded, at, tenant, size, record.rejected)
        case Kind.METRICS | Kind.METRICS_JSON:
            json = record.kind is Kind.METRICS_JSON
            encoding = Encoding.JSON if json else Encoding.PROTOBUF
            points = decode_points(record.body, encoding, received_ns=at, tenant=tenant)
            group.add_points(points, record.body, encoding, at, tenant)
        case Kind.SIGNALS:
            group.add_rows(unpacked(record.body), record.body, at, tenant)
