"""Which source an SLO rests on."""

from tailburn.engine.slo.model import Objective, Slo
from tailburn.rules.model import Rule
from tailburn.rules.sources import service


def rates_of(
    slo: Slo, budgets: tuple[Objective, ...], window: str, suffix: str
) -> tuple[Rule, ...]:
    """Requests a second and bad ones over a window, recorded as `...:rate<window><suffix>`."""
    return service.rates(slo, budgets, window, suffix)
