"""The budget itself, how fast it burns and what is left of it."""

from collections.abc import Iterable, Iterator

from tailburn.engine.names import (
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_BAD_RATE_RECORD,
    SLO_BUDGET_LEFT_RECORD,
    SLO_BUDGET_RECORD,
    SLO_BURN_RECORD,
    SLO_LABEL,
    SLO_PERIOD_BAD_METRIC,
    SLO_PERIOD_REQUESTS_METRIC,
    SLO_TOTAL_RATE_RECORD,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Calendar, Slo
from tailburn.rules.model import Rule
from tailburn.rules.promql import duration, number, selector
from tailburn.rules.sources.choose import budgets_of

_KEY = f"on ({SLO_LABEL}, {OBJECTIVE_LABEL}, {DEFINITION_LABEL}) group_left"


def budgets(slo: Slo) -> Iterator[Rule]:
    """The share of requests that may be bad, a constant."""
    for budget in budgets_of(slo):
        labels = {
            SLO_LABEL: slo.name,
            OBJECTIVE_LABEL: budget.name,
            DEFINITION_LABEL: definition_of(slo, budget),
        }
        yield Rule(f"vector({number(budget.budget_ratio)})", SLO_BUDGET_RECORD, labels=labels)


def burns(slo: Slo, chosen_s: Iterable[int]) -> Iterator[Rule]:
    """How many times faster than allowed the budgets go, over those windows."""
    for window_s in chosen_s:
        window = duration(window_s)
        bad, total = (
            selector(f"{record}{window}", {SLO_LABEL: slo.name})
            for record in (SLO_BAD_RATE_RECORD, SLO_TOTAL_RATE_RECORD)
        )
        yield Rule(f"{bad} / ({total} > 0)\n/ {_KEY}\n{_budget(slo)}", f"{SLO_BURN_RECORD}{window}")


def left(slo: Slo) -> Iterator[Rule]:
    """The share of the budget that is left over the SLO's window; below 0 it is overdrawn."""
    if not budgets_of(slo):
        return
    if isinstance(slo.window, Calendar):
        bad, total = SLO_PERIOD_BAD_METRIC, SLO_PERIOD_REQUESTS_METRIC
    else:
        window = duration(burn.window_s(slo.window))
        bad, total = f"{SLO_BAD_RATE_RECORD}{window}", f"{SLO_TOTAL_RATE_RECORD}{window}"
    chosen = {SLO_LABEL: slo.name}
    used = f"{selector(bad, chosen)} / ({selector(total, chosen)} > 0)"
    yield Rule(f"1 - {used}\n/ {_KEY}\n{_budget(slo)}", SLO_BUDGET_LEFT_RECORD)


def _budget(slo: Slo) -> str:
    return selector(SLO_BUDGET_RECORD, {SLO_LABEL: slo.name})
