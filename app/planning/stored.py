"""The requests of a stretch of a store, read hour after hour, with a bar for whoever waits."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from tailburn.app.errors import UserError
from tailburn.app.terminal.output import stderr
from tailburn.app.wind_tunnel.bar import far_bar
from tailburn.engine.backtest.minutes import first_versions
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.schema import ROLLUP_DIMENSIONS, ROLLUPS
from tailburn.engine.store.api import Store, StoreError, UnknownColumn, Window

HOUR_NS: Final = 3_600_000_000_000
_CHUNK_NS: Final = 6 * HOUR_NS
Span = tuple[int, int]


@dataclass(frozen=True)
class Stretch:
    """Whole minutes of a store, and which hours of them are to be read."""

    store: Store
    since_ns: int
    until_ns: int
    where: Mapping[str, str]
    left_out: tuple[Span, ...] = ()

    @property
    def spans(self) -> tuple[Span, ...]:
        """What is not left out, in order."""
        spans, at = [], self.since_ns
        for begin, end in sorted(self.left_out):
            if at < begin:
                spans.append((at, min(begin, self.until_ns)))
            at = max(at, end)
        if at < self.until_ns:
            spans.append((at, self.until_ns))
        return tuple(spans)

    @property
    def hours(self) -> int:
        """Hours of the clock that any of it lies in."""
        found = {
            hour
            for begin, end in self.spans
            for hour in range(begin // HOUR_NS, -(-end // HOUR_NS))
        }
        return len(found)

    def rows(self, columns: Sequence[str], doing: str) -> Iterator[pa.Table]:
        """First versions of its requests, some hours at a time. Raises UserError."""
        chunks = [part for span in self.spans for part in _parts(*span)]
        wanted = sorted({*columns, "version", "received_ns"})
        with far_bar(stderr()) as bar:
            task = bar.add_task(doing, total=len(chunks), far="")
            for begin, end in chunks:
                yield first_versions(self._read(Window(begin, end), wanted))
                hours = (end - self.since_ns) / HOUR_NS
                bar.update(task, advance=1, far=f"{hours:,.0f} h")

    def rollups(self, since_ns: int, until_ns: int, clocks: Sequence[str]) -> pa.Table:
        """ROLLUPS of some clocks; none where it is to be filtered by what they don't know."""
        if not clocks:
            return ROLLUPS.empty_table()
        try:
            return self.store.rollups(
                Window(since_ns, until_ns),
                self.where,
                by=("minute_ns", *ROLLUP_DIMENSIONS),
                clocks=clocks,
            )
        except UnknownColumn:
            return ROLLUPS.empty_table()
        except StoreError as error:
            raise UserError(str(error)) from None

    def _read(self, window: Window, columns: Sequence[str]) -> pa.Table:
        try:
            return self.store.requests(window, self.where, latest=False, columns=columns)
        except StoreError as error:
            raise UserError(str(error)) from None


def stretch_of(
    store: Store,
    window: Window,
    where: Mapping[str, str],
    left_out: Iterable[Span] = (),
) -> Stretch:
    """Whole minutes of the window, no further than what is kept. Raises UserError for none."""
    kept = store.usage()["requests"]
    if kept.first_hour_ns is None or kept.last_hour_ns is None:
        raise UserError("no data: the store has no request yet")
    first, last = kept.first_hour_ns, min(kept.last_hour_ns + HOUR_NS, time.time_ns() + MINUTE_NS)
    since = max(first, window.since_ns if window.since_ns is not None else first)
    until = min(last, window.until_ns if window.until_ns is not None else last)
    since, until = -(-since // MINUTE_NS) * MINUTE_NS, until // MINUTE_NS * MINUTE_NS
    if since >= until:
        raise UserError("no data: the store keeps no request of that time")
    return Stretch(store, since, until, where, tuple(left_out))


def _parts(begin_ns: int, end_ns: int) -> Iterator[Span]:
    at = begin_ns
    while at < end_ns:
        end = min((at // _CHUNK_NS + 1) * _CHUNK_NS, end_ns)
        yield at, end
        at = end
