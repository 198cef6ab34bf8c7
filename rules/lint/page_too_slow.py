"""PAGE_TOO_SLOW: all requests are bad, and ten minutes later nobody knows."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.burn import Severity, pairs, window_s
from tailburn.engine.slo.model import Slo, objectives
from tailburn.rules.lint.finding import Finding, error, field_of, percent, span
from tailburn.rules.lint.known import Known

CODE: Final = "PAGE_TOO_SLOW"
LATEST_S: Final = 600.0


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """At 100 % bad a pair fires when its long window's share passes the threshold."""
    for objective in objectives(slo):
        burns = pairs(objective.budget_ratio, window_s(slo.window))
        pages = [p.threshold_ratio * p.long_s for p in burns if p.severity is Severity.PAGE]
        soonest_s = min(pages, default=None)
        if soonest_s is None or soonest_s > LATEST_S:
            given = "no page at all" if soonest_s is None else f"a page after {soonest_s:.0f} s"
            yield error(
                CODE,
                slo,
                field_of(objective),
                f"a budget of {percent(objective.budget_ratio)}: {given} at 100 % bad",
                f"it must come within {span(LATEST_S)}",
                "use a higher objective or a shorter window",
            )
