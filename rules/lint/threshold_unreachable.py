"""THRESHOLD_UNREACHABLE: a burn that needs more bad requests than there can be."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.burn import Limit, pairs, window_s
from tailburn.engine.slo.model import Slo, objectives
from tailburn.rules.lint.finding import Finding, field_of, percent, span, warning
from tailburn.rules.lint.known import Known

CODE: Final = "THRESHOLD_UNREACHABLE"


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """Factor x budget past half of all requests is capped there: it fires, with less meaning."""
    for objective in objectives(slo):
        for pair in pairs(objective.budget_ratio, window_s(slo.window)):
            if pair.limit is Limit.HALF:
                wanted = pair.textbook_factor * objective.budget_ratio
                yield warning(
                    CODE,
                    slo,
                    field_of(objective),
                    f"{pair.textbook_factor:.4g} x {percent(objective.budget_ratio)} = "
                    f"{percent(wanted)} bad over {span(pair.long_s)}",
                    "can never be exceeded" if wanted >= 1 else "is over half of all requests",
                    f"the {pair.severity} is capped at {percent(pair.threshold_ratio)}: "
                    "use a higher objective or a shorter window",
                )
