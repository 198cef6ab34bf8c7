"""The two queries on which a budget rests, as the rules ask them."""

from tailburn.engine.names import SLO_BAD_RATE_RECORD
from tailburn.engine.slo.model import Objective, Slo
from tailburn.engine.slo.readers import WINDOW
from tailburn.rules.sources.choose import budgets_of, rates_of


def queries_of(slo: Slo, objective: Objective) -> tuple[str, str] | None:
    """Bad and total requests a second over `{{.window}}`; None where its source counts neither."""
    if objective not in budgets_of(slo):
        return None
    found: dict[bool, str] = {}
    for rule in rates_of(slo, (objective,), WINDOW, ""):
        found[str(rule.record).startswith(SLO_BAD_RATE_RECORD)] = rule.expr
    return found[True], found[False]
