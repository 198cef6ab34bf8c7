"""Percentiles of exposed buckets: critical tiers, scale-out, regression, consistency."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tailburn.engine.evaluation.buckets import Cells
from tailburn.engine.evaluation.chance import floor
from tailburn.engine.evaluation.conditions import Bools, Moment, Seen
from tailburn.engine.evaluation.history import Needs
from tailburn.engine.evaluation.windows import (
    DAY_S,
    FROZEN_AT_MOST_S,
    HOUR_S,
    LOOKED_FOR_S,
    MINUTE_NS,
    MINUTE_S,
    SLOW_S,
)
from tailburn.engine.grouping import F64, medians
from tailburn.engine.slo.model import QUANTILES, Clock, Slo

_FROZEN: Final = FROZEN_AT_MOST_S // MINUTE_S
_SLOW: Final = SLOW_S // MINUTE_S
_HOUR: Final = HOUR_S // MINUTE_S
_DAY: Final = DAY_S // MINUTE_S
_LOOKED_FOR: Final = LOOKED_FOR_S // MINUTE_S
_P99: Final = QUANTILES["p99"]
_P50: Final = QUANTILES["p50"]


@dataclass(frozen=True)
class QuantileOver:
    """A percentile of five minutes is above a threshold, from so many requests on."""

    clock: Clock
    percentile: str
    threshold_s: float
    least: int
    requests_each: float = 0.0  # so many for each unit of `chance.floor`; 0: chance isn't asked

    freezes = True

    @property
    def needs(self) -> Needs:
        return Needs(clock=self.clock)

    def look(self, slo: Slo, at: Moment) -> Seen:
        cells = at.history.buckets.cells((slo.name, self.clock))
        value, came = at.history.recent(cells.columns, QUANTILES[self.percentile], at.now)
        value = np.where(came >= self.least, value, np.nan)
        known = ~np.isnan(value)
        enough = self.requests_each * floor(int((came > 0).sum()))

        def was_alive(row: int) -> bool:
            came = at.history.buckets.came(int(cells.columns[row]), at.now - _FROZEN, at.now)
            return bool((came >= self.least).any())

        in_trouble = (value > self.threshold_s) & (came >= enough)
        return Seen(cells.by, in_trouble, value, known, was_alive)

    def told(self, value: float | None) -> str:
        return (
            f"{self.clock} {self.percentile} of 5 min is {_seconds(value)}, "
            f"too much is above {_seconds(self.threshold_s)}"
        )


@dataclass(frozen=True)
class Consistency:
    """p99 over p50 of an hour is above a ratio, each from its least number of requests on."""

    clock: Clock
    ratio: float
    least: int  # of p99
    least_of_p50: int

    freezes = True

    @property
    def needs(self) -> Needs:
        return Needs(clock=self.clock)

    def look(self, slo: Slo, at: Moment) -> Seen:
        cells = at.history.buckets.cells((slo.name, self.clock))
        p99, came = at.history.hour(cells.columns, _P99, at.now)
        p50, _ = at.history.hour(cells.columns, _P50, at.now)
        known = came >= self.least
        ratio = np.where(known & (came >= self.least_of_p50), p99 / p50, np.nan)

        def was_alive(row: int) -> bool:
            column = int(cells.columns[row])
            _, came = at.history.buckets.came_in_hours(column, at.now - _FROZEN, at.now)
            return bool((came >= self.least).any())

        return Seen(cells.by, ratio > self.ratio, ratio, known, was_alive)

    def told(self, value: float | None) -> str:
        measured = "unknown" if value is None else f"{value:.3g}"
        return f"{self.clock} p99 over p50 of an hour is {measured}, too much is {self.ratio:g}"


@dataclass(frozen=True)
class OverBaseline:
    """p99 of five minutes is so many times that of this hour on the days before.

    `requests_each`: so many requests for each unit of `chance.floor`, or p95 must be over as
    well; 0: it need not.
    """

    clock: Clock
    ratio: float
    days: int
    least: int
    requests_each: float = 0.0

    freezes = True

    @property
    def needs(self) -> Needs:
        return Needs(clock=self.clock, days=self.days, least=self.least)

    def look(self, slo: Slo, at: Moment) -> Seen:
        cells = at.history.buckets.cells((slo.name, self.clock))
        p99, came = at.history.recent(cells.columns, _P99, at.now)
        then = self._last_baseline(slo, cells, at, at.now)
        over = np.where(came >= self.least, p99 / then, np.nan)

        def was_alive(row: int) -> bool:
            first, column = -(-(at.now - _FROZEN) // _SLOW) * _SLOW, int(cells.columns[row])
            came = at.history.buckets.came(column, first, at.now)[::_SLOW]
            one = Cells([cells.by[row]], cells.columns[[row]])
            marks = first + np.flatnonzero(came >= self.least) * _SLOW
            return any(
                not np.isnan(self._last_baseline(slo, one, at, mark)[0])
                for mark in marks[::-1].tolist()
            )

        in_trouble = over > self.ratio
        if self.requests_each and in_trouble.any():
            p95, _ = at.history.recent(cells.columns, QUANTILES["p95"], at.now)
            enough = self.requests_each * floor(int((came > 0).sum()))
            in_trouble &= (came >= enough) | (p95 / then > self.ratio)
        return Seen(cells.by, in_trouble, over, ~np.isnan(over), was_alive)

    def told(self, value: float | None) -> str:
        measured = "an unknown number of" if value is None else f"{value:.3g}"
        return (
            f"{self.clock} p99 of 5 min is {measured} times this hour's on the days before, "
            f"too much is {self.ratio:g}"
        )

    def _last_baseline(self, slo: Slo, cells: Cells, at: Moment, now: int) -> F64:
        """The one of now, or the last one of ten minutes where that is missing."""
        found = self._baseline(slo, cells, at, now)
        for earlier in range(now - _SLOW, now - _LOOKED_FOR - 1, -_SLOW):
            if np.isnan(found).any():
                found = np.where(np.isnan(found), self._baseline(slo, cells, at, earlier), found)
        return found

    def _baseline(self, slo: Slo, cells: Cells, at: Moment, now: int) -> F64:
        """The median of the days without an incident in that hour, in s."""
        days = np.full((self.days, len(cells.columns)), np.nan)
        for day in range(1, self.days + 1):
            p99 = at.history.buckets.day_before(cells.columns, now, day)
            p99[_in_incident(slo, cells.by, at, now - day * _DAY + _HOUR // 2)] = np.nan
            days[day - 1] = p99
        return medians(days.T)


def _in_incident(slo: Slo, by: Sequence[tuple[str, ...]], at: Moment, end: int) -> Bools:
    """Of which series something fired in the hour up to a minute."""
    found = np.zeros(len(by), np.bool_)
    begin_ns, end_ns = (end - _HOUR) * MINUTE_NS, (end + 1) * MINUTE_NS
    for incident in at.incidents.get(slo.name, ()):
        if incident.overlaps(begin_ns, end_ns):
            told = [incident.where.get(name) for name in slo.by]
            found |= [all(t in (None, v) for t, v in zip(told, one, strict=True)) for one in by]
    return found


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g} s"
