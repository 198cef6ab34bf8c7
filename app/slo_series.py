"""The SLOs' series of `/metrics`: exact counters of verdicts on closed requests.

They are part of the state that snapshots keep at a position of the log, and what came after it
is judged again at a start. So a kill changes no counter.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import add
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.app.births import Births, Scraper
from tailburn.app.slo_counts import Period, Series, series_text
from tailburn.engine.counted import rows_of
from tailburn.engine.excess import PLACES
from tailburn.engine.grouping import F64, I64
from tailburn.engine.names import ALL_HOPS, OVERFLOW
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.lateness import DEADLINE, has_deadlines, lateness
from tailburn.engine.slo.model import Calendar, Slo, objectives
from tailburn.engine.slo.periods import period_of
from tailburn.engine.slo.slowness import Slowness, Times, objective_of, times_of
from tailburn.engine.slo.verdicts import (
    Codes,
    Requests,
    Verdict,
    follow,
    groups_of,
    judge,
    tally,
)
from tailburn.engine.store.state.shown import SeriesKey

MAX_SERIES: Final = 20_000

_TABLES: Final = ("verdicts", "excess")


class SloSeries:
    """Counts requests as they close, and shows the counts. Safe in any thread.

    Nothing is shown until `caught_up`: before, the counters are on their way to where they
    were. SLOs on another source than this service's own spans are not counted here.
    """

    def __init__(
        self,
        slos: Sequence[Slo],
        births: Births,
        now_ns: Callable[[], int] = time.time_ns,
        max_series: int = MAX_SERIES,
    ) -> None:
        self.slos = tuple(slo for slo in slos if slo.source is None)
        self.caught_up = False
        self.overflowed = 0  # times that values of `by` found no room
        self._births = births
        self._now_ns = now_ns
        self._max_series = max_series
        self._lock = threading.Lock()
        self._scrapes = threading.Lock()  # of births alone: who counts never waits for a database
        self._series: dict[SeriesKey, Series] = {}
        self._rows: dict[tuple[str, tuple[str, ...]], list[Series]] = {}
        self._resting: list[Mapping[str, Any]] = []
        self._uncollected: dict[str, dict[tuple[Any, ...], list[int]]]
        self._begin()

    def count(
        self, rows: pa.Table, replaced: pa.Table, deadline_s: Mapping[str, F64] | None = None
    ) -> None:
        """Count rows of REQUESTS. `replaced` are the older versions that some of them replace.

        `deadline_s` are the deadlines of those of version 1, by clock.
        """
        if not self.slos:
            return
        first = Requests(rows.filter(pc.equal(rows["version"], 1)))
        later = Requests(rows.filter(pc.greater(rows["version"], 1)))
        older = Requests(replaced)
        times = times_of(first.rows)
        with self._lock:
            for slo in self.slos:
                codes = _judged(first, slo, deadline_s or {})
                self._count_verdicts(first, codes, slo)
                self._count_slow(first, codes, slo, times)
                if len(later) and len(older):
                    before, after = _judged(older, slo, None), _judged(later, slo, None)
                    found = follow(older, before, later, after)
                    self._count_verdicts(later, found.gained, slo)
                    for series, one, lost in self._tallied(older, found.lost, slo, found.lost_ns):
                        self._add(series, one, (0, 0, 0, sum(lost[1:])))

    def take_rows(self) -> dict[str, pa.Table]:
        """What was counted since the last call, by minute: rows of VERDICTS and EXCESS."""
        with self._lock:
            taken, self._uncollected = self._uncollected, {name: {} for name in _TABLES}
        return {name: rows_of(name, sums) for name, sums in taken.items()}

    def state(self) -> list[Mapping[str, Any]]:
        """All counts, as JSON can hold them."""
        with self._lock:
            counted: list[Mapping[str, Any]] = [
                {
                    "key": [s.key.slo, s.key.objective, s.key.definition, dict(s.key.by)],
                    "counts": s.counts,
                    "period": [
                        s.period.begin_ns, s.period.end_ns, s.period.requests, s.period.bad,
                    ],
                    "slowness": s.slowness.state() if s.slowness else None,
                }
                for s in self._series.values()
            ]  # fmt: skip
            return [*self._resting, *counted]

    def restore(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Go on from what `state` gave.

        Counts of what is not loaded, or defined otherwise now, rest until it is there again.
        """
        with self._lock:
            self._begin()
            slos = {slo.name: slo for slo in self.slos}
            for saved in state:
                name, objective, definition, by = saved["key"]
                slo = slos.get(name)
                if slo is not None and tuple(by) == slo.by:
                    self._row(slo, tuple(by.values()))
                key = SeriesKey(name, objective, definition, tuple(by.items()))
                if (series := self._series.get(key)) is None:
                    self._resting.append(saved)
                    continue
                series.counts = list(saved["counts"])
                series.period = Period(*saved["period"])
                if saved.get("slowness") and series.slowness:
                    series.slowness = Slowness.restore(saved["slowness"])
            del self._resting[: -self._max_series]

    def render(self, scraper: Scraper, tenant: str | None = None) -> str:
        """What this scraper sees, in the Prometheus text format; one tenant's series, or all."""
        if not self.caught_up:
            return ""
        now_ns = self._now_ns()
        with self._scrapes:
            with self._lock:
                seen = [series for series in self._series.values() if series.is_seen_by(tenant)]
            zero = {s.key for s in seen if self._births.shows_zero(s.key, scraper)}
            self._births.write_down(now_ns)
        with self._lock:
            return series_text(seen, zero, now_ns)

    def _begin(self) -> None:
        """Budgets that aren't told apart by anything are there from the start."""
        self._series, self._rows, self._resting = {}, {}, []
        self._uncollected = {name: {} for name in _TABLES}
        for slo in self.slos:
            if not slo.by:
                self._row(slo, ())

    def _tallied(
        self, requests: Requests, codes: Codes, slo: Slo, minute_ns: I64
    ) -> Iterator[tuple[Series, int, list[int]]]:
        """Each series and minute with the counts of its verdicts, by their numbers."""
        for one in tally(requests, codes, slo, minute_ns):
            for series, counts in zip(self._row(slo, one.values), one.counts.tolist(), strict=True):
                yield series, one.minute_ns, counts

    def _add(self, series: Series, minute_ns: int, counts: Sequence[int]) -> None:
        """Counts go to the series and, in the same moment, to the rows of its minute."""
        if any(counts):
            key = series.key
            series.counts = list(map(add, series.counts, counts))
            self._collect(
                "verdicts", (minute_ns, key.slo, key.objective, key.definition, series.by), counts
            )

    def _collect(self, table: str, key: tuple[Any, ...], counts: Sequence[int]) -> None:
        sums = self._uncollected[table]
        sums[key] = list(map(add, sums[key], counts)) if key in sums else list(counts)

    def _count_verdicts(self, requests: Requests, codes: Codes, slo: Slo) -> None:
        minutes_ns = requests.minute_ns
        for series, minute_ns, counts in self._tallied(requests, codes, slo, minutes_ns):
            _, good, bad, unmeasured = counts
            self._add(series, minute_ns, (good + bad, bad, unmeasured, 0))
        if isinstance(slo.window, Calendar):
            self._count_period(requests, codes, slo, slo.window)

    def _count_period(self, requests: Requests, codes: Codes, slo: Slo, calendar: Calendar) -> None:
        """Only requests of the period that is the newest: one that is over is shown no more."""
        if not len(requests):
            return
        received_ns = requests.rows["received_ns"].to_numpy()
        begin_ns, end_ns = period_of(calendar, int(received_ns.max()))
        of_period = np.where((received_ns >= begin_ns)[:, None], codes, np.int8(Verdict.NONE))
        minute_ns = requests.minute_ns
        for series, _, (_, good, bad, _) in self._tallied(requests, of_period, slo, minute_ns):
            if begin_ns > series.period.begin_ns:
                series.period = Period(begin_ns, end_ns)
            if begin_ns == series.period.begin_ns:
                series.period.requests += good + bad
                series.period.bad += bad

    def _count_slow(self, requests: Requests, codes: Codes, slo: Slo, times: Times) -> None:
        """What the slow ones took over the baseline, of each combination of `by`."""
        if (objective := objective_of(slo)) is None:
            return
        column = objectives(slo).index(objective)
        verdicts = codes[times.row, column]
        judged = np.isin(verdicts, (Verdict.GOOD, Verdict.BAD))
        if not judged.any():
            return
        times, is_slow = times.part(judged), verdicts[judged] == Verdict.BAD
        values, group = groups_of(requests.rows.select(list(slo.by)).take(times.row), slo.by)
        for i, value in enumerate(values):
            series = self._row(slo, value)[column]
            assert series.slowness is not None, "made with the series"
            for slow in series.slowness.add(times.part(group == i), is_slow[group == i]):
                amounts = [(ALL_HOPS, slow.excess_ns)]
                amounts += zip(PLACES, slow.by_place_ns.tolist(), strict=True)
                for hop, slow_ns in amounts:
                    if slow_ns:
                        key = (slow.minute_ns, slo.name, series.by, hop)
                        self._collect("excess", key, [slow_ns])

    def _row(self, slo: Slo, values: tuple[str, ...]) -> list[Series]:
        """The series of each objective, new ones where there are none; bounded."""
        found = self._rows.get((slo.name, values))
        if found is not None:
            return found
        if slo.by and len(self._series) >= self._max_series:
            self.overflowed += 1
            values = (OVERFLOW,) * len(slo.by)
            if (slo.name, values) in self._rows:
                return self._rows[slo.name, values]
        row, by = [], tuple(zip(slo.by, values, strict=True))
        for objective in objectives(slo):
            key = SeriesKey(slo.name, objective.name, definition_of(slo, objective), by)
            is_of_slow = objective == objective_of(slo)
            slowness = Slowness() if is_of_slow else None
            row.append(Series(slo, key, slowness=slowness))
        if has_deadlines(slo):
            row.append(Series(slo, SeriesKey(slo.name, DEADLINE, "", by)))
        self._rows[slo.name, values] = row
        self._series |= {series.key: series for series in row}
        return row


def _judged(requests: Requests, slo: Slo, deadline_s: Mapping[str, F64] | None) -> Codes:
    """A column for each objective, and one for the deadline where the SLO has one.

    Later versions, which have no deadline (None), change no verdict on it.
    """
    codes = judge(requests, slo)
    if not has_deadlines(slo):
        return codes
    late = np.zeros((len(requests), 1), np.int8)
    if deadline_s is not None:
        late = lateness(requests, slo, deadline_s)
    return np.concatenate([codes, late], axis=1)
