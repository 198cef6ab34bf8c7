"""Each alert of an SLO by its figures: what fires when, what is gone by then, how it ends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tailburn.app.calculators.shares import Shares, shares_of
from tailburn.app.calculators.words import percent, span
from tailburn.engine.slo.burn import (
    MINUTE_S,
    Pair,
    Severity,
    budget_used_ratio,
    detection_s,
    reset_s,
    window_s,
)
from tailburn.engine.slo.model import Objective, Slo, objectives
from tailburn.engine.slo.textbook import textbook_pairs
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.ruleset import alerts_of

USUAL_BAD_RATIOS: Final = (0.01, 0.1, 1.0)
PAGE_WITHIN_S: Final = 10 * MINUTE_S


@dataclass(frozen=True)
class Explained:
    """Budgets of an SLO that are equally wide, and so have the same alerts."""

    slo: Slo
    objectives: tuple[Objective, ...]
    pairs: tuple[Pair, ...]

    @property
    def budget_ratio(self) -> float:
        """The share of the requests that may be bad, in each."""
        return self.objectives[0].budget_ratio

    @property
    def window_s(self) -> int:
        """The SLO's window in seconds."""
        return window_s(self.slo.window)

    @property
    def first_page_s(self) -> float | None:
        """From when all requests are bad until somebody is paged; None: never."""
        pages = (pair for pair in self.pairs if pair.severity is Severity.PAGE)
        times = (detection_s(pair, 1.0) for pair in pages)
        return min((time for time in times if time is not None), default=None)

    @property
    def pages_in_time(self) -> bool:
        """Whether a page comes within ten minutes of an outage; a batch pool needs none."""
        first_s = self.first_page_s
        return self.slo.is_batch or (first_s is not None and first_s <= PAGE_WITHIN_S)


def explained(slo: Slo, textbook: bool = False) -> tuple[Explained, ...]:
    """Every budget with its pairs: those of the rules, or the workbook's own."""
    alike: dict[tuple[float, tuple[Pair, ...]], list[Objective]] = {}
    alerts = alerts_of(slo)
    for objective in objectives(slo):
        pairs = _textbook(slo, objective) if textbook else _ours(alerts, objective)
        alike.setdefault((objective.budget_ratio, pairs), []).append(objective)
    return tuple(Explained(slo, tuple(found), pairs) for (_, pairs), found in alike.items())


def _textbook(slo: Slo, objective: Objective) -> tuple[Pair, ...]:
    return textbook_pairs(objective.budget_ratio, window_s(slo.window))


def _ours(alerts: Sequence[Alert], objective: Objective) -> tuple[Pair, ...]:
    ours = (alert for alert in alerts if alert.objective == objective.name)
    return tuple(alert.pair for alert in ours if alert.pair is not None)


def other_alerts(slo: Slo) -> tuple[Alert, ...]:
    """Those that rest on no budget's burn."""
    return tuple(alert for alert in alerts_of(slo) if alert.pair is None)


def burn_rows(budget: Explained, bad_ratios: Sequence[float]) -> Iterator[dict[str, Any]]:
    """One row for each burn alert of each of the budgets. Times are seconds, None for never."""
    for objective in budget.objectives:
        for pair in budget.pairs:
            yield {
                "slo": budget.slo.name,
                "objective": objective.name,
                "alert": str(Kind.BURN),
                "severity": str(pair.severity),
                "long_s": pair.long_s,
                "short_s": pair.short_s,
                "burn_rate": pair.factor,
                "threshold_ratio": pair.threshold_ratio,
                "limit": pair.limit.name.lower(),
                "budget_used_ratio": budget_used_ratio(pair, budget.window_s),
                "at": [_times(pair, bad_ratio) for bad_ratio in bad_ratios],
            }


def times_of(watched: Pair | Shares, bad_ratio: float) -> tuple[float | None, float | None]:
    """Seconds to detect and to reset at a share of bad requests that sets in at once."""
    if isinstance(watched, Shares):
        return watched.detection_s(bad_ratio), watched.reset_s(bad_ratio)
    return detection_s(watched, bad_ratio), reset_s(watched, bad_ratio)


def _times(watched: Pair | Shares, bad_ratio: float) -> dict[str, float | None]:
    detection, reset = times_of(watched, bad_ratio)
    return {"bad_ratio": bad_ratio, "detection_s": detection, "reset_s": reset}


def other_rows(slo: Slo, bad_ratios: Sequence[float]) -> Iterator[dict[str, Any]]:
    """One row for each alert that rests on no budget's burn; `at` only where shares matter."""
    for alert in other_alerts(slo):
        shares = shares_of(alert)
        yield {
            "slo": slo.name,
            "objective": alert.objective,
            "alert": str(alert.kind),
            "severity": str(alert.severity),
            "long_s": alert.long_s,
            "short_s": alert.short_s,
            "for_s": alert.for_s,
            "at": [] if shares is None else [_times(shares, bad) for bad in bad_ratios],
        }


def refusals(slo: Slo, budgets: Sequence[Explained]) -> Iterator[str]:
    """Why an outage would not be paged in time, one line for each budget, with what to do."""
    if not (budgets or slo.is_batch or _pages_on_a_tier(slo)):
        yield (
            f"{slo.place}: {slo.name}: no page comes however long all requests are bad, for there "
            "is no budget; want availability, goodput, or an acceptable p90, p95 or p99 of a clock"
        )
    for budget in budgets:
        if not budget.pages_in_time:
            names = ", ".join(objective.name for objective in budget.objectives)
            yield f"{slo.place}: {slo.name}: {names}: {_reason(budget)}"


def _pages_on_a_tier(slo: Slo) -> bool:
    return any(
        alert.kind is Kind.TIER and alert.severity is Severity.PAGE for alert in alerts_of(slo)
    )


def _reason(budget: Explained) -> str:
    first_s = budget.first_page_s
    when = (
        "no page comes however long"
        if first_s is None
        else f"the first page comes {span(first_s)} after"
    )
    return (
        f"{when} all requests are bad; want one within {span(PAGE_WITHIN_S)}: "
        f"{percent(budget.budget_ratio)} of the requests may be bad, so give a higher objective"
    )
