"""Tiers: a ticket while p95 is past acceptable, a page while any percentile is past critical.

Acceptable is judged by the exact counters of its budget: p95 is past the threshold as long as
more than 5 % of the requests are. Critical has no budget; its percentiles are read from
histograms.
"""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.chance import floor, requests_each
from tailburn.engine.evaluation.shares import Share, Shares
from tailburn.engine.evaluation.tails import QuantileOver
from tailburn.engine.names import (
    OBJECTIVE_LABEL,
    SLO_BAD_RATE_RECORD,
    SLO_LABEL,
    SLO_TOTAL_RATE_RECORD,
    slo_quantile_record,
)
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import QUANTILES, Clock, Objective, Slo, Tier
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.alerts.burn import identity
from tailburn.rules.annotating import clock_definition, seconds, told
from tailburn.rules.promql import by, number, selector
from tailburn.rules.recording.percentiles import SAMPLES, WINDOW, WINDOW_S, came_enough, clocks_of
from tailburn.rules.sources.choose import budgets_of

FOR_S: Final = 300
_TICKET: Final = "p95"
_MOST_SERIES: Final = 10_000


def alerts(slo: Slo) -> Iterator[Alert]:
    """A page for each critical percentile, a ticket for each acceptable p95."""
    for clock in clocks_of(slo):
        for percentile, threshold_s in slo.clocks.get(clock, {}).get(Tier.CRITICAL, {}).items():
            yield _page(slo, clock, percentile, threshold_s)
    for budget in budgets_of(slo):
        if budget.clock is not None and budget.name == f"{budget.clock}_{_TICKET}":
            yield _ticket(slo, budget)


def _page(slo: Slo, clock: Clock, percentile: str, threshold_s: float) -> Alert:
    now = selector(slo_quantile_record(clock, percentile, WINDOW), {SLO_LABEL: slo.name})
    what = f"{clock.upper()} {percentile}"
    return Alert(
        kind=Kind.TIER,
        severity=Severity.PAGE,
        slo=slo,
        objective=f"{clock}_{percentile.replace('.', '_')}_critical",
        condition=f"{now} > {number(threshold_s)}{_no_chance(slo, clock, percentile)}",
        long_s=WINDOW_S,
        short_s=WINDOW_S,
        alive=now,
        for_s=FOR_S,
        annotations=told(
            slo,
            f"{what} is critical, above {seconds(threshold_s)}",
            f"{what} of the last {WINDOW} stayed above {seconds(threshold_s)} for {WINDOW}: past "
            f"this, users leave.",
            clock_definition(slo, clock),
        ),
        in_process=QuantileOver(
            clock,
            percentile,
            threshold_s,
            SAMPLES[percentile],
            requests_each(1 - QUANTILES[percentile]),
        ),
    )


def _no_chance(slo: Slo, clock: Clock, percentile: str) -> str:
    """That so many requests came that the percentile is no chance, whatever the series."""
    each = requests_each(1 - QUANTILES[percentile])
    if each * floor(_MOST_SERIES) <= SAMPLES[percentile]:
        return ""
    on = f"on ({', '.join((SLO_LABEL, *slo.by))})"
    return f"\nand {on}\n{came_enough(slo, clock, each)}"


def _ticket(slo: Slo, budget: Objective) -> Alert:
    assert budget.clock is not None and budget.threshold_s is not None
    bad, total = (
        selector(f"{record}{WINDOW}", identity(slo, budget))
        for record in (SLO_BAD_RATE_RECORD, SLO_TOTAL_RATE_RECORD)
    )
    enough = f"({total} >= {SAMPLES[_TICKET]} / {WINDOW_S})"
    labels = by((SLO_LABEL, OBJECTIVE_LABEL, *slo.by))
    what = f"{budget.clock.upper()} {_TICKET}"
    return Alert(
        kind=Kind.TIER,
        severity=Severity.TICKET,
        slo=slo,
        objective=budget.name,
        condition=f"max {labels} ({bad} / {enough}) > {number(budget.budget_ratio)}",
        long_s=WINDOW_S,
        short_s=WINDOW_S,
        alive=total,
        for_s=FOR_S,
        annotations=told(
            slo,
            f"{what} is above {seconds(budget.threshold_s)}, past acceptable",
            f"{what} of the last {WINDOW} stayed above {seconds(budget.threshold_s)} for {WINDOW}.",
            clock_definition(slo, budget.clock),
        ),
        in_process=Shares(
            budget.name,
            definition_of(slo, budget),
            (Share(WINDOW_S, budget.budget_ratio, least_requests=SAMPLES[_TICKET]),),
        ),
    )
