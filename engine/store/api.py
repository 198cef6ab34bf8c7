"""The one interface between the store and everything above it.

StoreError
├── UnknownColumn   a filter or a column that the schema doesn't have
├── BadQuery        SQL that is wrong, or does more than read
└── NotDurable      a restart from before what was compacted as durable
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

TraceIds = NDArray[np.bytes_]
"""16 bytes each, dtype S16. numpy hides zero bytes at an end; it compares as if they were there."""


class StoreError(Exception):
    """What the store can't do. `str(error)` is fit for a user."""


class UnknownColumn(StoreError):
    """A column the table doesn't have."""


class BadQuery(StoreError):
    """SQL that can't be run here."""


class NotDurable(StoreError):
    """Rows past the restart position were already merged with older ones."""


class UnreadableFile(Exception):
    """Inside the store only: a segment vanished or isn't what was written."""

    def __init__(self, reason: str, path: Path | None = None) -> None:
        super().__init__(reason)
        self.path = path  # None: one of those read, unknown which


@dataclass(frozen=True)
class LogRange:
    """Positions of the ingest log whose bodies the rows came from, inclusive."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last:
            raise ValueError(f"log range must be 0 <= first <= last, got {self.first}..{self.last}")


@dataclass(frozen=True)
class Window:
    """Receive times `since_ns <= t < until_ns`; None: open on that side."""

    since_ns: int | None = None
    until_ns: int | None = None


ALWAYS = Window()


@dataclass(frozen=True)
class Trace:
    """One trace: its spans as kept, and the newest versions of its requests."""

    spans: pa.Table  # SPANS, by start
    requests: pa.Table  # REQUESTS


@dataclass(frozen=True)
class Damaged:
    """A segment that is skipped because its bytes are not what was written."""

    table: str
    path: str
    reason: str


@dataclass(frozen=True)
class Compacted:
    """What one compaction did."""

    hours: int = 0
    segments: int = 0  # read and replaced
    rows: int = 0  # written
    sampled_out: Mapping[str, int] = field(default_factory=dict)  # spans dropped, by resource


@dataclass(frozen=True)
class Retired:
    """What retention took away, of one table."""

    hours: int
    bytes: int


@dataclass(frozen=True)
class TableUsage:
    """What one table takes up."""

    bytes: int
    segments: int
    rows: int
    first_hour_ns: int | None
    last_hour_ns: int | None


class Store(Protocol):
    """Rows of the tables in `engine.schema`, found again by receive time, trace and dimension.

    A row's receive time is `minute_ns` where a table has that, and `received_ns` elsewhere. One
    process writes; any number read meanwhile, in this process or others, and never wait for it.
    """

    def publish(self, table: str, rows: pa.Table, log: LogRange) -> None:
        """Make `rows` durable and visible before returning.

        `log` is what `discard_after` judges them by, so a row must not be published under a
        range that a restart may begin after. Raises `ValueError` where `rows` don't fit the
        schema and `OSError` where the disk can't take them; then none of them is visible,
        except whole hours of a table published with several, which `discard_after` removes.
        """

    def discard_after(self, position: int) -> int:
        """Forget rows whose log range ends past `position`; the number of segments removed.

        Called once by the writer as it starts. Also clears what interrupted writes and
        compactions left. Raises `NotDurable`.
        """

    def requests(
        self,
        window: Window = ALWAYS,
        where: Mapping[str, str] | None = None,
        latest: bool = True,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Requests received in the window whose columns equal `where`, in no set order.

        `latest`: only the newest version of each, and no tombstones. A version newer than the
        window's end counts: what it replaced is not returned. Raises `UnknownColumn`.
        """

    def trace(self, trace_id: str, hint: Window | None = None) -> Trace:
        """A trace by its 32 hex digits, empty when unknown; `hint` bounds its receive times."""

    def closed_traces(self, window: Window = ALWAYS) -> TraceIds:
        """The trace ids of every request in the window, sorted, without repeats."""

    def spans_of(self, traces: TraceIds, window: Window = ALWAYS) -> pa.Table:
        """All spans of those traces in the window."""

    def requests_of(self, traces: TraceIds, window: Window = ALWAYS) -> pa.Table:
        """All versions of the requests of those traces, tombstones and digests included."""

    def rollups(
        self,
        window: Window = ALWAYS,
        where: Mapping[str, str] | None = None,
        by: Sequence[str] = (),
        clocks: Sequence[str] | None = None,
    ) -> pa.Table:
        """Histograms of the window, merged per group of `by` and clock.

        `by` takes rollup dimensions and `minute_ns`. Columns: those of `by`, then `clock` to
        `counts` as in ROLLUPS. Groups left without a request are not returned. Raises
        `UnknownColumn`.
        """

    def verdicts(self, window: Window = ALWAYS, where: Mapping[str, str] | None = None) -> pa.Table:
        """VERDICTS of the window whose keys equal `where`: one row per combination of keys.

        In no set order. Raises `UnknownColumn`.
        """

    def excess(self, window: Window = ALWAYS, where: Mapping[str, str] | None = None) -> pa.Table:
        """EXCESS, as `verdicts`."""

    def usual(self, window: Window = ALWAYS) -> pa.Table:
        """USUAL of the hours that begin in the window: one row per cell, in order of the keys."""

    def query(
        self, sql: str, parameters: Sequence[object] = (), window: Window = ALWAYS
    ) -> pa.Table:
        """One SELECT over the views: each table, and `request_versions`.

        `requests` has the newest versions, the others every row. Raises `BadQuery`.
        """

    def compact(self, now_ns: int, durable_position: int) -> Compacted:
        """Merge hours that are past at `now_ns` and wholly at or below `durable_position`."""

    def retain(self, now_ns: int) -> Mapping[str, Retired]:
        """Drop whole hours that are too old or too many, per table."""

    def usage(self) -> Mapping[str, TableUsage]:
        """Size and extent of each table."""

    def damaged(self) -> Sequence[Damaged]:
        """Segments that were found damaged since this store was opened, each once."""
