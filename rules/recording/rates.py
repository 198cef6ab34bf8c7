"""Requests and bad requests a second, over every window that an alert looks back.

Up to six hours straight from the counters. Beyond, the mean of sampled rates, since a month of
counters would be too many samples to read: up to three days of rates over 5 min, recorded every
four minutes; above, of rates over 15 min, recorded as often, and so is their mean, which changes
with them alone. Bad and all requests are averaged apart and divided last, so that each request
weighs the same, and an idle hour or a gap in the data takes nothing from either.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tailburn.engine.evaluation.windows import FINELY_UP_TO_S, SAMPLED_S, STRAIGHT_UP_TO_S
from tailburn.engine.names import (
    SLO_BAD_RATE_RECORD,
    SLO_LABEL,
    SLO_SAMPLED,
    SLO_TOTAL_RATE_RECORD,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.model import Objective, Rolling, Slo
from tailburn.rules.model import Rule
from tailburn.rules.promql import duration, selector
from tailburn.rules.sources.choose import budgets_of, rates_of

OFTEN_UP_TO_S: Final = burn.HOUR_S
SELDOM_SAMPLED_S: Final = 15 * burn.MINUTE_S
_REMEMBERED: Final = duration(burn.HOUR_S)  # four samples, of which one or two may be missed


@dataclass(frozen=True)
class Windows:
    """The windows of an SLO in seconds, each with the budgets that look back over it."""

    budgets: dict[int, tuple[Objective, ...]]

    def straight(self) -> tuple[int, ...]:
        """Those rated straight from the counters, shortest first."""
        return tuple(w for w in sorted(self.budgets) if w <= STRAIGHT_UP_TO_S)

    def often(self) -> tuple[int, ...]:
        """Of these the short ones, which are worth a look each minute."""
        return tuple(w for w in self.straight() if w <= OFTEN_UP_TO_S)

    def seldom(self) -> tuple[int, ...]:
        """Of these the long ones: a few minutes are little to them, and their samples many."""
        return tuple(w for w in self.straight() if w > OFTEN_UP_TO_S)

    def averaged(self) -> Iterator[int]:
        """Those that are means of sampled rates, shortest first."""
        return (w for w in sorted(self.budgets) if w > STRAIGHT_UP_TO_S)

    def days(self) -> tuple[int, ...]:
        """Of these the ones that alerts look back over: no pair has a longer one."""
        return tuple(w for w in self.averaged() if w <= FINELY_UP_TO_S)


def windows_of(slo: Slo, also_s: Iterable[int] = ()) -> Windows:
    """Every window of every pair, the SLO's rolling one, 5 min for all budgets, and some more."""
    found: dict[int, list[Objective]] = {}
    period_s = burn.window_s(slo.window)
    for budget in budgets_of(slo):
        looked_back = {SAMPLED_S, *also_s}
        for pair in burn.pairs(budget.budget_ratio, period_s):
            looked_back |= {pair.long_s, pair.short_s}
        if isinstance(slo.window, Rolling):
            looked_back.add(period_s)
        for window_s in looked_back:
            found.setdefault(window_s, []).append(budget)
    return Windows({w: tuple(budgets) for w, budgets in found.items()})


def straight(slo: Slo, windows: Windows, chosen_s: Iterable[int]) -> Iterator[Rule]:
    """Rates over those windows."""
    for window_s in chosen_s:
        yield from rates_of(slo, windows.budgets[window_s], duration(window_s), "")


def averaged(slo: Slo, windows: Windows) -> Iterator[Rule]:
    """The finely sampled rates, then the means over every window of more than six hours."""
    if not windows.budgets:
        return
    yield from _sampled(slo, windows, SAMPLED_S)
    for window_s in windows.averaged():
        for record in (SLO_TOTAL_RATE_RECORD, SLO_BAD_RATE_RECORD):
            if window_s <= FINELY_UP_TO_S:
                mean = _mean(slo, record, window_s)
            else:
                last = selector(sampled_record(record, window_s), {SLO_LABEL: slo.name})
                mean = f"last_over_time({last}[{_REMEMBERED}])"
            yield Rule(mean, record=f"{record}{duration(window_s)}")


def seldom_sampled(slo: Slo, windows: Windows) -> Iterator[Rule]:
    """The rates that windows of more than three days are means of, then these means."""
    long = [window_s for window_s in windows.averaged() if window_s > FINELY_UP_TO_S]
    if long:
        yield from _sampled(slo, windows, SELDOM_SAMPLED_S)
    for window_s in long:
        for record in (SLO_TOTAL_RATE_RECORD, SLO_BAD_RATE_RECORD):
            yield Rule(_mean(slo, record, window_s), record=sampled_record(record, window_s))


def sampled_for(window_s: int) -> int:
    """How long the sampled rates look back that a window of more than six hours is a mean of."""
    return SAMPLED_S if window_s <= FINELY_UP_TO_S else SELDOM_SAMPLED_S


def sampled_record(record: str, sampled_s: int) -> str:
    """The name of rates that are sampled: `...:rate5m_sampled`."""
    return f"{record}{duration(sampled_s)}{SLO_SAMPLED}"


def _mean(slo: Slo, record: str, window_s: int) -> str:
    sampled = selector(sampled_record(record, sampled_for(window_s)), {SLO_LABEL: slo.name})
    return f"avg_over_time({sampled}[{duration(window_s)}])"


def _sampled(slo: Slo, windows: Windows, sampled_s: int) -> Iterator[Rule]:
    yield from rates_of(slo, windows.budgets[SAMPLED_S], duration(sampled_s), SLO_SAMPLED)
