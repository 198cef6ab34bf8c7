"""Budget burn: one alert per budget, severity and pair of windows.

What is bad over the long window must be more than chance would have it in one of the series of
the budget, were half of the budget bad, as in health: of few requests one is a large share.
"""

from collections.abc import Iterator, Mapping

from tailburn.engine.evaluation.chance import healthy_ratio
from tailburn.engine.evaluation.shares import Share, Shares
from tailburn.engine.evaluation.windows import SAMPLED_S, SLOW_S
from tailburn.engine.names import (
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_BURN_RECORD,
    SLO_LABEL,
    SLO_TOTAL_RATE_RECORD,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Objective, Slo
from tailburn.rules import chance
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.annotating import of_burn
from tailburn.rules.promql import by, duration, number, selector
from tailburn.rules.recording.rates import sampled_record
from tailburn.rules.sources.choose import budgets_of


def alerts(slo: Slo) -> Iterator[Alert]:
    """Those of every budget, quickest first."""
    for budget in budgets_of(slo):
        chosen = identity(slo, budget)
        for pair in burn.pairs(budget.budget_ratio, burn.window_s(slo.window)):
            yield _alert(slo, budget, pair, chosen)


def _alert(slo: Slo, budget: Objective, pair: burn.Pair, chosen: Mapping[str, str]) -> Alert:
    labels = by((SLO_LABEL, OBJECTIVE_LABEL, *slo.by))
    long, short = (
        selector(f"{SLO_BURN_RECORD}{duration(window_s)}", chosen)
        for window_s in (pair.long_s, pair.short_s)
    )
    over = [f"max {labels} ({burns}) > {number(pair.factor)}" for burns in (long, short)]
    total = selector(f"{SLO_TOTAL_RATE_RECORD}{duration(pair.long_s)}", chosen)
    no_chance = chance.surprise_of_burn(long, total, pair.long_s, budget.budget_ratio)
    enough = chance.enough(total, is_single=not slo.by)
    return Alert(
        kind=Kind.BURN,
        severity=pair.severity,
        slo=slo,
        objective=budget.name,
        condition="\nand\n".join((*over, f"max {labels} (\n  {no_chance}\n) >= {enough}")),
        long_s=pair.long_s,
        short_s=pair.short_s,
        pair=pair,
        alive=selector(f"{SLO_TOTAL_RATE_RECORD}{duration(pair.short_s)}", chosen),
        remembered=selector(sampled_record(SLO_TOTAL_RATE_RECORD, SAMPLED_S), chosen),
        annotations=of_burn(slo, budget, pair),
        in_process=Shares(
            budget.name,
            definition_of(slo, budget),
            (Share(pair.long_s, pair.threshold_ratio), Share(pair.short_s, pair.threshold_ratio)),
            healthy_ratio=healthy_ratio(budget.budget_ratio),
            remembers_s=SLOW_S,
        ),
    )


def identity(slo: Slo, budget: Objective) -> Mapping[str, str]:
    """Which recorded series are those of a budget as it is defined now."""
    return {
        SLO_LABEL: slo.name,
        OBJECTIVE_LABEL: budget.name,
        DEFINITION_LABEL: definition_of(slo, budget),
    }
