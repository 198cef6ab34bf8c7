"""Requests, bad ones and unmeasured ones of every budget, by the minute and by sampled rates.

Up to six hours are sums of minutes. Beyond, as the recorded rules have it, the mean of rates over
five minutes that are sampled each four.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.engine.evaluation.coverage import NEVER, Coverage
from tailburn.engine.evaluation.rings import Ring
from tailburn.engine.evaluation.windows import (
    MINUTE_NS,
    MINUTE_S,
    SAMPLED_S,
    SLOW_S,
    STRAIGHT_UP_TO_S,
)
from tailburn.engine.grouping import F64, I64, distinct, text
from tailburn.engine.names import UNKNOWN
from tailburn.engine.slo.lateness import DEADLINE

_KEY: Final = ("slo", "objective", "definition", "by")
_KINDS: Final = ("requests", "bad", "unmeasured")
_SAMPLED: Final = SAMPLED_S // MINUTE_S
_SLOW: Final = SLOW_S // MINUTE_S
_SPARE: Final = 10  # minutes that a clock may step ahead of what is evaluated

Budget = tuple[str, str, str]
"""SLO, objective, definition; deadlines have no definition."""


@dataclass(frozen=True)
class Sums:
    """Of one window, a column per series; over long windows what the mean rate comes to."""

    requests: F64
    bad: F64
    unmeasured: F64  # nan over long windows: nothing asks
    is_rated: NDArray[np.bool_]  # there are data in the window


@dataclass
class Group:
    """The series of one budget."""

    by: list[tuple[str, ...]] = field(default_factory=list)
    columns: I64 = field(default_factory=lambda: np.zeros(0, np.int64))


class Counts:
    """`budgets` are those that are counted, each with the dimensions of its SLO's `by`.

    `patience_s`: the longest window over which somebody asks what has ended.
    """

    def __init__(
        self,
        budgets: Mapping[Budget, tuple[str, ...]],
        windows_s: Iterable[int],
        patience_s: int,
        cover: Coverage,
    ) -> None:
        windows = sorted(windows_s)
        straight = [w for w in windows if w <= STRAIGHT_UP_TO_S]
        depth = max([*straight, patience_s]) // MINUTE_S + _SAMPLED + _SPARE
        self._minutes = {kind: Ring(depth) for kind in _KINDS}
        long_s = windows[-1] if windows and windows[-1] > STRAIGHT_UP_TO_S else 0
        self._samples = {kind: Ring(long_s // SLOW_S + _SPARE) for kind in _KINDS[:2] if long_s}
        self._budgets = dict(budgets)
        self._cover = cover
        self._columns: dict[tuple[Budget, tuple[str, ...]], int] = {}
        self._groups: dict[Budget, Group] = {budget: Group() for budget in budgets}
        self._values: dict[tuple[Budget, str], int] = {}
        self.births: I64 = np.zeros(0, np.int64)
        for budget, by in budgets.items():
            if not by:
                self._column(budget, ())
                self.births[-1] = -NEVER  # it is counted from when the service is there

    def group(self, budget: Budget) -> Group:
        """Its series; of another definition there are none."""
        return self._groups.get(budget) or Group()

    def of_slo(self, slo: str) -> Iterator[Group]:
        """The groups of all its budgets, deadlines left out."""
        for (name, objective, _), group in self._groups.items():
            if name == slo and objective != DEADLINE:
                yield group

    def take(self, rows: pa.Table, known: I64 | None = None) -> None:
        """Rows of VERDICTS.

        `known`: of each row the minute at which its counters were read next, where that is not
        the end of its own. A window holds the row if it holds both.
        """
        if not len(rows):
            return
        minute = rows.column("minute_ns").to_numpy() // MINUTE_NS
        known = minute + 1 if known is None else known
        keys, key = distinct([text(rows.column(c), UNKNOWN) for c in _KEY])
        column = np.array(
            [self._known(*one) for one in zip(*(k.to_pylist() for k in keys), strict=True)]
        )[key]
        is_ours = column >= 0
        minute, column, known = minute[is_ours], column[is_ours], known[is_ours]
        if not len(minute):
            return
        np.minimum.at(self.births, column, minute)
        amounts = {kind: rows.column(kind).to_numpy()[is_ours] for kind in _KINDS}
        for kind, ring in self._minutes.items():
            ring.add(minute, column, amounts[kind])
        first = -(-known // _SLOW) * _SLOW  # the first sample that can look back to the minute
        for kind, ring in self._samples.items():
            for later in range(-(-_SAMPLED // _SLOW)):
                at = first + later * _SLOW
                seen = at - _SAMPLED <= minute
                ring.add(at[seen] // _SLOW, column[seen], amounts[kind][seen])

    def sums(self, window_s: int, now: int) -> Sums:
        """Of the window that ends at a minute."""
        window = window_s // MINUTE_S
        if window_s <= STRAIGHT_UP_TO_S:
            total = {
                kind: ring.total(now - window, now - 1).astype(np.float64)
                for kind, ring in self._minutes.items()
            }
            rated = self._cover.is_rated(window, now, self.births)
            return Sums(total["requests"], total["bad"], total["unmeasured"], rated)
        count = self._cover.sampled(now - window, now, self.births)
        scale = np.divide(window, count * _SAMPLED, out=np.zeros(len(count)), where=count > 0)
        first, last = -(-(now - window) // _SLOW), now // _SLOW
        mean = {k: np.multiply(ring.total(first, last), scale) for k, ring in self._samples.items()}
        return Sums(mean["requests"], mean["bad"], np.full(len(count), np.nan), count > 0)

    def sampled_rate(self, since: int, until: int) -> F64:
        """Requests a second of every series: the mean of the rates over five minutes that are
        sampled each four in [since, until]; nan: none can be rated.

        There are samples as far back as the longest window, where that is over six hours.
        """
        count = self._cover.sampled(since, until, self.births)
        total = self._samples["requests"].total(-(-since // _SLOW), until // _SLOW)
        rate = np.full(len(count), np.nan)
        return np.divide(total, count * SAMPLED_S, out=rate, where=count > 0)

    def ended(self, window_s: int, now: int) -> I64:
        """How many requests ended in the window, with a verdict or without one."""
        first = now - window_s // MINUTE_S
        return self._minutes["requests"].total(first, now - 1) + self._minutes["unmeasured"].total(
            first, now - 1
        )

    def _known(self, slo: str, objective: str, definition: str, by: str) -> int:
        """The column of these texts; -1 for what nothing asks for."""
        budget = (slo, objective, "" if objective == DEADLINE else definition)
        if budget not in self._budgets:
            return -1
        found = self._values.get((budget, by))
        if found is None:
            told = json.loads(by) if by else {}
            values = tuple(str(told.get(name, UNKNOWN)) for name in self._budgets[budget])
            found = self._values[budget, by] = self._column(budget, values)
        return found

    def _column(self, budget: Budget, values: tuple[str, ...]) -> int:
        found = self._columns.get((budget, values))
        if found is None:
            found = self._columns[budget, values] = len(self._columns)
            group = self._groups[budget]
            group.by.append(values)
            group.columns = np.append(group.columns, found)
            self.births = np.append(self.births, NEVER)
            for ring in (*self._minutes.values(), *self._samples.values()):
                ring.widen(found + 1)
        return found
