"""The SLOs' series of `/metrics`: exact counters of verdicts on closed requests.

They are part of the state that snapshots keep at a position of the log, and what came after it
is judged again at a start. So a kill changes no counter.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.app.births import Births, Scraper
from tailburn.engine.excess import PLACES
from tailburn.engine.names import (
    DEFINITION_LABEL,
    HOP_LABEL,
    OBJECTIVE_LABEL,
    OVERFLOW,
    SLO_BAD_METRIC,
    SLO_EXCESS_SECONDS_METRIC,
    SLO_LABEL,
    SLO_LATE_METRIC,
    SLO_PERIOD_BAD_METRIC,
    SLO_PERIOD_REQUESTS_METRIC,
    SLO_REQUESTS_METRIC,
    SLO_SLOW_SECONDS_METRIC,
    SLO_UNMEASURED_METRIC,
)
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Calendar, Slo, objectives
from tailburn.engine.slo.periods import period_of
from tailburn.engine.slo.slowness import Slowness, Times, objective_of, times_of
from tailburn.engine.slo.verdicts import (
    Codes,
    Requests,
    Verdict,
    changed,
    groups_of,
    judge,
    tally,
)
from tailburn.engine.store.state.shown import SeriesKey
from tailburn.rules.promql import quoted

MAX_SERIES: Final = 20_000

_COUNTERS: Final = {
    SLO_REQUESTS_METRIC: ("requests", "Requests with a verdict; the first version of each."),
    SLO_BAD_METRIC: ("bad", "Requests of these that were bad."),
    SLO_UNMEASURED_METRIC: ("unmeasured", "Requests without a verdict: what it takes is missing."),
    SLO_LATE_METRIC: ("late", "Verdicts counted above that a later version of a request changed."),
}
_GAUGES: Final = {
    SLO_PERIOD_REQUESTS_METRIC: (0, "Requests with a verdict since the calendar window began."),
    SLO_PERIOD_BAD_METRIC: (1, "Bad ones of these."),
}
_TENANT: Final = "tenant"


@dataclass
class _Period:
    """The counts of a calendar window; those of one that has ended are gone."""

    begin_ns: int = 0
    end_ns: int = 0
    requests: int = 0
    bad: int = 0

    def counts(self, now_ns: int) -> tuple[int, int]:
        return (self.requests, self.bad) if now_ns < self.end_ns else (0, 0)


@dataclass
class _Series:
    """One objective under one definition, for one combination of the values of `by`."""

    slo: Slo
    key: SeriesKey
    labels: str
    requests: int = 0
    bad: int = 0
    unmeasured: int = 0
    late: int = 0
    period: _Period = field(default_factory=_Period)
    slowness: Slowness | None = None  # of the budget that says which requests are slow

    def is_seen_by(self, tenant: str | None) -> bool:
        """What is summed over tenants is for those alone who may see them all."""
        if tenant is None or self.slo.select.get(_TENANT) == tenant:
            return True
        return (_TENANT, tenant) in self.key.by


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
        self._series: dict[SeriesKey, _Series] = {}
        self._rows: dict[tuple[str, tuple[str, ...]], list[_Series]] = {}
        self._resting: list[Mapping[str, Any]] = []
        self._begin()

    def count(self, rows: pa.Table, replaced: pa.Table) -> None:
        """Count rows of REQUESTS. `replaced` are the older versions that some of them replace."""
        if not self.slos:
            return
        first = Requests(rows.filter(pc.equal(rows["version"], 1)))
        later = Requests(rows.filter(pc.greater(rows["version"], 1)))
        older = Requests(replaced)
        times = times_of(first.rows)
        with self._lock:
            for slo in self.slos:
                codes = judge(first, slo)
                for series, (_, good, bad, unmeasured) in self._tallied(first, codes, slo):
                    series.requests += good + bad
                    series.bad += bad
                    series.unmeasured += unmeasured
                if isinstance(slo.window, Calendar):
                    self._count_period(first, codes, slo, slo.window)
                self._count_slow(first, codes, slo, times)
                if len(later) and len(older):
                    lost = changed(older, judge(older, slo), later, judge(later, slo))
                    for series, verdicts in self._tallied(older, lost, slo):
                        series.late += sum(verdicts[1:])

    def state(self) -> list[Mapping[str, Any]]:
        """All counts, as JSON can hold them."""
        with self._lock:
            counted: list[Mapping[str, Any]] = [
                {
                    "key": [s.key.slo, s.key.objective, s.key.definition, dict(s.key.by)],
                    "counts": [s.requests, s.bad, s.unmeasured, s.late],
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
                series.requests, series.bad, series.unmeasured, series.late = saved["counts"]
                series.period = _Period(*saved["period"])
                if saved.get("slowness") and series.slowness:
                    series.slowness = Slowness.restore(saved["slowness"])
            del self._resting[: -self._max_series]

    def render(self, scraper: Scraper, tenant: str | None = None) -> str:
        """What this scraper sees, in the Prometheus text format; one tenant's series, or all."""
        if not self.caught_up:
            return ""
        now_ns = self._now_ns()
        with self._lock:
            seen = [series for series in self._series.values() if series.is_seen_by(tenant)]
            zero = {s.key for s in seen if self._births.shows_zero(s.key, scraper)}
            self._births.write_down(now_ns)
            return "".join([*_counters(seen, zero), *_periods(seen, now_ns), *_slow(seen, zero)])

    def _begin(self) -> None:
        """Budgets that aren't told apart by anything are there from the start."""
        self._series, self._rows, self._resting = {}, {}, []
        for slo in self.slos:
            if not slo.by:
                self._row(slo, ())

    def _tallied(
        self, requests: Requests, codes: Codes, slo: Slo
    ) -> Iterator[tuple[_Series, list[int]]]:
        """Each series with the counts of its verdicts, by their numbers."""
        for one in tally(requests, codes, slo):
            yield from zip(self._row(slo, one.values), one.counts.tolist(), strict=True)

    def _count_period(self, requests: Requests, codes: Codes, slo: Slo, calendar: Calendar) -> None:
        """Only requests of the period that is the newest: one that is over is shown no more."""
        if not len(requests):
            return
        received_ns = requests.rows["received_ns"].to_numpy()
        begin_ns, end_ns = period_of(calendar, int(received_ns.max()))
        of_period = np.where((received_ns >= begin_ns)[:, None], codes, np.int8(Verdict.NONE))
        for series, (_, good, bad, _) in self._tallied(requests, of_period, slo):
            if begin_ns > series.period.begin_ns:
                series.period = _Period(begin_ns, end_ns)
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
            slowness = self._row(slo, value)[column].slowness
            assert slowness is not None, "made with the series"
            slowness.add(times.part(group == i), is_slow[group == i])

    def _row(self, slo: Slo, values: tuple[str, ...]) -> list[_Series]:
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
            row.append(_Series(slo, key, _labels(key), slowness=slowness))
        self._rows[slo.name, values] = row
        self._series |= {series.key: series for series in row}
        return row


def _counters(seen: Sequence[_Series], zero: set[SeriesKey]) -> Iterator[str]:
    for metric, (count, help_text) in _COUNTERS.items():
        yield f"# HELP {metric} {help_text}\n# TYPE {metric} counter\n"
        for series in seen:
            value = 0 if series.key in zero else getattr(series, count)
            yield f"{metric}{{{series.labels}}} {value}\n"


def _periods(seen: Sequence[_Series], now_ns: int) -> Iterator[str]:
    of_calendars = [series for series in seen if isinstance(series.slo.window, Calendar)]
    if not of_calendars:
        return
    for metric, (index, help_text) in _GAUGES.items():
        yield f"# HELP {metric} {help_text}\n# TYPE {metric} gauge\n"
        for series in of_calendars:
            yield f"{metric}{{{series.labels}}} {series.period.counts(now_ns)[index]}\n"


def _slow(seen: Sequence[_Series], zero: set[SeriesKey]) -> Iterator[str]:
    """Seconds over the baseline, of every hop, so that one that gets slow is not born above 0."""
    slow = [(series, series.slowness) for series in seen if series.slowness is not None]
    if not slow:
        return
    yield f"# HELP {SLO_SLOW_SECONDS_METRIC} What slow requests took over the baseline, by hop.\n"
    yield f"# TYPE {SLO_SLOW_SECONDS_METRIC} counter\n"
    for series, slowness in slow:
        for hop, ns in zip(PLACES, slowness.slow_ns.tolist(), strict=True):
            labels = _text({SLO_LABEL: series.key.slo, HOP_LABEL: hop, **dict(series.key.by)})
            seconds = 0.0 if series.key in zero else ns / 1e9
            yield f"{SLO_SLOW_SECONDS_METRIC}{{{labels}}} {seconds}\n"
    yield f"# HELP {SLO_EXCESS_SECONDS_METRIC} The same, of all hops together.\n"
    yield f"# TYPE {SLO_EXCESS_SECONDS_METRIC} counter\n"
    for series, slowness in slow:
        labels = _text({SLO_LABEL: series.key.slo, **dict(series.key.by)})
        seconds = 0.0 if series.key in zero else slowness.excess_ns / 1e9
        yield f"{SLO_EXCESS_SECONDS_METRIC}{{{labels}}} {seconds}\n"


def _labels(key: SeriesKey) -> str:
    named = {
        SLO_LABEL: key.slo,
        OBJECTIVE_LABEL: key.objective,
        DEFINITION_LABEL: key.definition,
        **dict(key.by),
    }
    return _text(named)


def _text(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={quoted(value)}" for name, value in labels.items())
