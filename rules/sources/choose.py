"""Which source an SLO rests on."""

from tailburn.engine.slo.model import EngineSource, Kind, Objective, QuerySource, Slo, objectives
from tailburn.rules.model import Rule
from tailburn.rules.sources import engine, query, service


def budgets_of(slo: Slo) -> tuple[Objective, ...]:
    """The budgets that its source can count; the others have no rules, and lint says so."""
    return tuple(budget for budget in objectives(slo) if _is_counted(slo, budget))


def rates_of(
    slo: Slo, budgets: tuple[Objective, ...], window: str, suffix: str
) -> tuple[Rule, ...]:
    """Requests a second and bad ones over a window, recorded as `...:rate<window><suffix>`."""
    if isinstance(slo.source, EngineSource):
        return tuple(engine.rates(slo, slo.source, budgets, window, suffix))
    if isinstance(slo.source, QuerySource):
        source = slo.source
        pairs = (query.rates(slo, source, budget, window, suffix) for budget in budgets)
        return tuple(rule for pair in pairs for rule in pair)
    return service.rates(slo, budgets, window, suffix)


def _is_counted(slo: Slo, budget: Objective) -> bool:
    if isinstance(slo.source, EngineSource):
        return engine.measures(slo.source, budget)
    return not isinstance(slo.source, QuerySource) or budget.kind is Kind.AVAILABILITY
