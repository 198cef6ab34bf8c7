"""The service's own counters: exact verdicts, one rule a window for all budgets of an SLO."""

from tailburn.engine.names import (
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_BAD_METRIC,
    SLO_BAD_RATE_RECORD,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_TOTAL_RATE_RECORD,
)
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Objective, Slo
from tailburn.rules.model import Rule
from tailburn.rules.promql import by, selector


def rates(slo: Slo, budgets: tuple[Objective, ...], window: str, suffix: str) -> tuple[Rule, ...]:
    """Requests a second and bad ones over a window, of these budgets."""
    definitions = "|".join(definition_of(slo, budget) for budget in budgets)
    labels = by((SLO_LABEL, OBJECTIVE_LABEL, DEFINITION_LABEL, *slo.by))
    counters = ((SLO_TOTAL_RATE_RECORD, SLO_REQUESTS_METRIC), (SLO_BAD_RATE_RECORD, SLO_BAD_METRIC))
    return tuple(
        Rule(
            f"sum {labels} (rate("
            f"{selector(metric, {SLO_LABEL: slo.name}, **{DEFINITION_LABEL: definitions})}"
            f"[{window}]))",
            record=f"{record}{window}{suffix}",
        )
        for record, metric in counters
    )
