"""BUDGET_TOO_SMALL: so few requests that a handful of failures is an incident."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.burn import Severity, pairs, window_s
from tailburn.engine.slo.model import Slo, objectives
from tailburn.rules.lint.finding import Finding, field_of, percent, span, warning
from tailburn.rules.lint.known import Known
from tailburn.rules.lint.traffic import rate_per_s

CODE: Final = "BUDGET_TOO_SMALL"
FEWEST_BAD: Final = 5


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """The long window holds threshold x requests bad ones when it pages."""
    rate = rate_per_s(slo, known)
    if rate is None:
        return
    for objective in objectives(slo):
        for pair in pairs(objective.budget_ratio, window_s(slo.window)):
            requests = rate * pair.long_s
            bad = pair.threshold_ratio * requests
            if pair.severity is Severity.PAGE and bad < FEWEST_BAD:
                needed = FEWEST_BAD / (pair.threshold_ratio * pair.long_s)
                yield warning(
                    CODE,
                    slo,
                    field_of(objective),
                    f"{bad:.2g} bad requests would page: {percent(pair.threshold_ratio)} "
                    f"of {requests:.3g} in {span(pair.long_s)}",
                    f"fewer than {FEWEST_BAD} are chance",
                    f"it needs {needed:.2g} requests/s: lower the objective, "
                    "drop `by` dimensions, or add synthetic traffic",
                )
                break
