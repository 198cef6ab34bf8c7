"""Too large a share of a budget's requests: burn, the acceptable tier, deadlines, unmeasured."""

from dataclasses import dataclass

import numpy as np

from tailburn.engine.evaluation.chance import floor, surprise
from tailburn.engine.evaluation.conditions import Bools, Moment, Seen, never
from tailburn.engine.evaluation.counts import Group, Sums
from tailburn.engine.evaluation.history import Needs
from tailburn.engine.evaluation.windows import (
    FROZEN_AT_MOST_S,
    MINUTE_S,
    QUICK_S,
)
from tailburn.engine.grouping import F64
from tailburn.engine.slo.model import Slo


@dataclass(frozen=True)
class Share:
    """More than this share of a window's requests is bad, of so many at least."""

    window_s: int
    threshold_ratio: float
    or_equal: bool = False  # the threshold itself is too much
    least_requests: float = 0.0
    least_bad: float = 0.0

    def is_over(self, requests: F64, bad: F64, ratio: F64) -> Bools:
        """Of each series; nan, the share of no requests, is over nothing."""
        limit = self.threshold_ratio
        over = ratio >= limit if self.or_equal else ratio > limit
        return over & (requests >= self.least_requests) & (bad >= self.least_bad)


@dataclass(frozen=True)
class Shares:
    """Too much is bad over every one of some windows; the first one's share is told.

    `healthy_ratio`: what is bad over the longest window must be more than chance would have it in
    a series of which this share is bad, whatever the number of series; 0: it need not.
    """

    objective: str
    definition: str
    shares: tuple[Share, ...]
    healthy_ratio: float = 0.0
    remembers_s: int = QUICK_S  # between two looks for data that have ended

    freezes = True

    @property
    def needs(self) -> Needs:
        windows_s = tuple(share.window_s for share in self.shares)
        return Needs(budgets=((self.objective, self.definition),), windows_s=windows_s)

    def look(self, slo: Slo, at: Moment) -> Seen:
        history = at.history
        group = history.counts.group((slo.name, self.objective, self.definition))
        columns = group.columns
        in_trouble = np.ones(len(columns), np.bool_)
        ratios = []
        for share in self.shares:
            sums = history.sums(share.window_s, at.now)
            requests, bad = sums.requests[columns], sums.bad[columns]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(sums.is_rated[columns], bad / requests, np.nan)
            in_trouble &= share.is_over(requests, bad, ratio)
            ratios.append(ratio)
        if self.healthy_ratio and in_trouble.any():
            longest_s = max(share.window_s for share in self.shares)
            in_trouble &= self._is_no_chance(history.sums(longest_s, at.now), group)
        shortest_s = min(share.window_s for share in self.shares)
        alive = history.sums(shortest_s, at.now).is_rated[columns]

        def was_alive(row: int) -> bool:
            birth = int(history.counts.births[columns[row]])
            within = FROZEN_AT_MOST_S // MINUTE_S
            return history.coverage.is_remembered(within, at.now, birth, self.remembers_s)

        return Seen(group.by, in_trouble, ratios[0], alive, was_alive)

    def told(self, value: float | None) -> str:
        limits = " and ".join(
            f"{_percent(share.threshold_ratio)} over {_span(share.window_s)}"
            for share in self.shares
        )
        return f"{_percent(value)} of {self.objective} bad, too much is {limits}"

    def _is_no_chance(self, sums: Sums, group: Group) -> Bools:
        requests, bad = sums.requests[group.columns], sums.bad[group.columns]
        enough = floor(int((requests > 0).sum()))
        return np.asarray(surprise(bad, requests, self.healthy_ratio) >= enough)


@dataclass(frozen=True)
class UnmeasuredShare:
    """Too many requests can't be judged."""

    objective: str
    definition: str
    window_s: int
    threshold_ratio: float

    freezes = False

    @property
    def needs(self) -> Needs:
        return Needs(budgets=((self.objective, self.definition),), windows_s=(self.window_s,))

    def look(self, slo: Slo, at: Moment) -> Seen:
        group = at.history.counts.group((slo.name, self.objective, self.definition))
        sums = at.history.sums(self.window_s, at.now)
        unmeasured, requests = sums.unmeasured[group.columns], sums.requests[group.columns]
        rated = sums.is_rated[group.columns]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(rated, unmeasured / (unmeasured + requests), np.nan)
        return Seen(group.by, ratio > self.threshold_ratio, ratio, rated, never)

    def told(self, value: float | None) -> str:
        return (
            f"{_percent(value)} of {self.objective} could not be judged over "
            f"{_span(self.window_s)}, too much is {_percent(self.threshold_ratio)}"
        )


def _percent(ratio: float | None) -> str:
    return "an unknown share" if ratio is None else f"{ratio * 100:.3g} %"


def _span(window_s: int) -> str:
    for unit, unit_s in (("d", 86_400), ("h", 3600)):
        if window_s % unit_s == 0:
            return f"{window_s // unit_s} {unit}"
    return f"{window_s // MINUTE_S} min"
