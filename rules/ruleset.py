"""`build`: SLOs in, all their rules out. The same SLOs give the same rules, in the same order."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from tailburn.engine.slo.model import Slo
from tailburn.rules.alerting import Alert
from tailburn.rules.alerts import burn
from tailburn.rules.model import Group, RuleSet
from tailburn.rules.recording import budget, rates

Compat = Literal["sloth"]

QUICK_S: Final = 60
SLOW_S: Final = 240
"""Less than the five minutes after which Prometheus takes a series for gone."""


def build(slos: Iterable[Slo], *, compat: Compat | None = None) -> RuleSet:
    """The groups of every SLO: what is recorded first, then the alerts that rest on it."""
    return RuleSet(tuple(group for slo in slos for group in groups_of(slo, compat=compat)))


def alerts_of(slo: Slo) -> tuple[Alert, ...]:
    """Every alert of an SLO, quickest and gravest first within its kind."""
    return tuple(burn.alerts(slo))


def groups_of(slo: Slo, *, compat: Compat | None = None) -> Iterator[Group]:
    """The groups of one SLO; what is slow to compute is computed less often."""
    windows = rates.windows_of(slo)
    slow = (*budget.budgets(slo), *rates.averaged(slo, windows), budget.left(slo))
    quick = (
        *rates.straight(slo, windows),
        *budget.burns(slo, windows),
        *(alert.rule for alert in alerts_of(slo)),
    )
    yield Group(f"tailburn-{slo.name}-slow", SLOW_S, slow)
    yield Group(f"tailburn-{slo.name}", QUICK_S, quick)
