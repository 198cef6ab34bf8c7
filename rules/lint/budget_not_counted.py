"""BUDGET_NOT_COUNTED: a promise that the source has no counts for, so that no rule keeps it."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.model import EngineSource, Kind, Objective, Slo, objectives
from tailburn.rules.lint.finding import Finding, error, field_of
from tailburn.rules.lint.known import Known
from tailburn.rules.sources.choose import budgets_of

CODE: Final = "BUDGET_NOT_COUNTED"


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """Engines keep clocks apart, and a user's two queries know one kind of bad request."""
    counted = set(budgets_of(slo))
    for objective in objectives(slo):
        if objective not in counted:
            yield error(
                CODE,
                slo,
                field_of(objective),
                f"{objective.name} from {_source(slo)}",
                _why(slo, objective),
                "remove it, or send spans to the service and drop spec.source",
            )


def _source(slo: Slo) -> str:
    return slo.source.engine if isinstance(slo.source, EngineSource) else "queries"


def _why(slo: Slo, objective: Objective) -> str:
    if not isinstance(slo.source, EngineSource):
        return "two queries count one thing, which is spec.availability: it gets no rule"
    if objective.kind is Kind.GOODPUT:
        return "it joins clocks of one request, and histograms keep them apart: it gets no rule"
    return f"{slo.source.engine} has no histogram of this clock: it gets no rule"
