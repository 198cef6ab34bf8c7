"""What evaluation looks back over: minutes of counts, of buckets and of gauges, bounded.

All of it comes from rows of published tables: any split or order of the same rows gives the same
history, and so does a restart.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailburn.engine.evaluation.buckets import Buckets, Read
from tailburn.engine.evaluation.counts import Budget, Counts, Sums
from tailburn.engine.evaluation.coverage import Coverage
from tailburn.engine.evaluation.gauges import InFlight
from tailburn.engine.evaluation.quantiles import quantiles
from tailburn.engine.evaluation.slow_time import SlowTime
from tailburn.engine.evaluation.windows import (
    DAY_S,
    FROZEN_AT_MOST_S,
    HOUR_S,
    MINUTE_NS,
    MINUTE_S,
    SLOW_S,
    STRAIGHT_UP_TO_S,
)
from tailburn.engine.grouping import F64, I64
from tailburn.engine.slo.model import Clock, Slo

_REMEMBERED: int = (DAY_S + FROZEN_AT_MOST_S) // MINUTE_S
_SLOW: int = SLOW_S // MINUTE_S


@dataclass(frozen=True)
class Needs:
    """What a condition looks back over."""

    budgets: tuple[tuple[str, str], ...] = ()  # objective and definition
    windows_s: tuple[int, ...] = ()
    clock: Clock | None = None
    days: int = 0  # of p99 of the clock's hours
    least: int = 0  # requests that such a p99 takes
    recalled_s: int = 0  # so long ago percentiles of five minutes are asked for again
    in_flight_s: int = 0
    slow_s: int = 0  # of which hop slow requests spent their time in


class History:
    """As far back as some alerts look, and no further. Not safe in several threads."""

    def __init__(self, needs: Iterable[tuple[Slo, Needs]]) -> None:
        asked = list(needs)
        budgets: dict[Budget, tuple[str, ...]] = {}
        reads: dict[tuple[str, Clock], Read] = {}
        in_flight: dict[str, int] = {}
        slow_s: dict[str, tuple[tuple[str, ...], int]] = {}
        for slo, need in asked:
            for objective, definition in need.budgets:
                budgets[slo.name, objective, definition] = slo.by
            if need.clock is not None:
                known = reads.get((slo.name, need.clock), Read(slo, need.clock))
                reads[slo.name, need.clock] = Read(
                    slo, need.clock, max(known.days, need.days), max(known.least, need.least)
                )
            if need.in_flight_s:
                in_flight[slo.name] = need.in_flight_s // MINUTE_S
            if need.slow_s:
                slow_s[slo.name] = slo.by, need.slow_s
        self._windows_s = {w for _, need in asked for w in need.windows_s}
        self.coverage = Coverage()
        patience_s = max((need.in_flight_s for _, need in asked), default=0)
        self.counts = Counts(budgets, self._windows_s, patience_s, self.coverage)
        recalled_s = max((need.recalled_s for _, need in asked), default=0)
        self.buckets = Buckets(reads.values(), self.coverage, recalled_s)
        self.in_flight = InFlight(in_flight)
        self.slow_time = SlowTime(slow_s)
        self._now = -1
        self._sums: dict[int, Sums] = {}
        self._recent: I64 | None = None
        self._hour: tuple[I64, F64] | None = None

    @property
    def series(self) -> int:
        """How many series the budgets have."""
        return len(self.counts.births)

    def cover(self, begin_ns: int, end_ns: int) -> None:
        """The service counted from one whole minute to another, whether or not requests came.

        A minute with rows is covered by them. What isn't covered is a gap in the data.
        """
        self._cover(np.arange(begin_ns // MINUTE_NS, end_ns // MINUTE_NS))

    def take_verdicts(self, rows: pa.Table) -> None:
        """Rows of VERDICTS; the objective `deadline` counts deadlines, missed ones as bad."""
        self._cover(rows.column("minute_ns").to_numpy() // MINUTE_NS)
        self.counts.take(rows)

    def know(self, at_ns: int) -> None:
        """The counters were read at a whole minute, by whoever does not read all of them."""
        self.coverage.know(np.array([at_ns // MINUTE_NS]))
        self._now = -1

    def take_across(self, rows: pa.Table, known_ns: I64) -> None:
        """Rows of VERDICTS of what was counted from a minute until the counters were read again.

        Each as soon as it was; like a rate over a gap, it is of windows that hold both.
        """
        self.counts.take(rows, known_ns // MINUTE_NS)
        self._now = -1

    def take_rollups(self, rows: pa.Table) -> None:
        """Rows of ROLLUPS."""
        self._cover(rows.column("minute_ns").to_numpy() // MINUTE_NS)
        self.buckets.take(rows)

    def take_excess(self, rows: pa.Table) -> None:
        """Rows of EXCESS."""
        self.slow_time.take(rows)

    def recall_rollups(self, rows: pa.Table, begin_ns: int, end_ns: int) -> None:
        """Rows of ROLLUPS of [begin, end), which was evaluated in an earlier life.

        In order of time, and after `cover`: p99 of each hour is kept as it was then.
        """
        marks = rows.column("minute_ns").to_numpy() // MINUTE_NS // _SLOW + 1
        order = np.argsort(marks, kind="stable")
        rows, marks = rows.take(pa.array(order)), marks[order]
        first, last = begin_ns // MINUTE_NS // _SLOW + 1, -(-end_ns // MINUTE_NS // _SLOW)
        edges = np.searchsorted(marks, np.arange(first, last + 2))
        for mark, begin, end in zip(range(first, last + 1), edges, edges[1:], strict=False):
            self.take_rollups(rows.slice(begin, end - begin))
            if mark * _SLOW * MINUTE_NS <= end_ns:
                self.buckets.record(mark * _SLOW)

    def take_in_flight(
        self, slo: str, at_ns: int, in_flight: Mapping[tuple[str, ...], float]
    ) -> None:
        """Requests in flight at a whole minute, by the values of the SLO's `by`."""
        self.in_flight.take(slo, at_ns // MINUTE_NS, in_flight)

    def record(self, now_ns: int) -> None:
        """Keep what later days are compared with; evaluation does so at its own minutes."""
        self.buckets.record(now_ns // MINUTE_NS)

    def trim(self, now_ns: int) -> None:
        """Forget what no alert looks back to."""
        longest_s = max(self._windows_s, default=0)
        days_s = longest_s if longest_s > STRAIGHT_UP_TO_S else 0
        kept = max(days_s // MINUTE_S, _REMEMBERED) + 2 * HOUR_S // MINUTE_S
        self.coverage.trim(now_ns // MINUTE_NS - kept)
        self.slow_time.trim(now_ns // MINUTE_NS)

    def sums(self, window_s: int, now: int) -> Sums:
        """Of every series over the window that ends at a minute; columns as `counts` has them."""
        self._at(now)
        if window_s not in self._sums:
            self._sums[window_s] = self.counts.sums(window_s, now)
        return self._sums[window_s]

    def recent(self, columns: I64, q: float, now: int) -> tuple[F64, I64]:
        """A quantile of five minutes in s, and how many requests they had."""
        self._at(now)
        if self._recent is None:
            self._recent = self.buckets.recent(now)
        chosen = self._recent[columns]
        return quantiles(chosen, q), chosen.sum(axis=1)

    def hour(self, columns: I64, q: float, now: int) -> tuple[F64, F64]:
        """A quantile of the last hour in s, and how many requests it had."""
        self._at(now)
        if self._hour is None:
            self._hour = self.buckets.hour(now)
        total, came = self._hour
        return quantiles(total[columns], q), came[columns]

    def _cover(self, minutes: I64) -> None:
        if len(minutes):
            self.coverage.cover(np.unique(minutes))
            self._now = -1

    def _at(self, now: int) -> None:
        """Forget what was worked out for another minute, or before the newest rows."""
        if now != self._now:
            self._now = now
            self._sums, self._recent, self._hour = {}, None, None
