"""`build`: SLOs in, all their rules out. The same SLOs give the same rules, in the same order."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal

from tailburn.engine.evaluation import Watch
from tailburn.engine.evaluation.windows import QUICK_S, SLOW_S
from tailburn.engine.slo.model import Slo
from tailburn.rules import sloth
from tailburn.rules.alerting import Alert
from tailburn.rules.alerts import (
    burn,
    consistency,
    deadline,
    regression,
    scale_out,
    stalled,
    tier,
    unmeasured,
)
from tailburn.rules.model import Group, RuleSet
from tailburn.rules.recording import baseline, budget, owner, percentiles, rates

Compat = Literal["sloth"]

ALERTS: Final[tuple[Callable[[Slo], Iterator[Alert]], ...]] = (
    burn.alerts,
    deadline.alerts,
    stalled.alerts,
    tier.alerts,
    regression.alerts,
    scale_out.alerts,
    consistency.alerts,
    unmeasured.alerts,
)


def build(slos: Iterable[Slo], *, compat: Compat | None = None) -> RuleSet:
    """The groups of every SLO: what is recorded first, then the alerts that rest on it."""
    return RuleSet(tuple(group for slo in slos for group in groups_of(slo, compat=compat)))


def alerts_of(slo: Slo) -> tuple[Alert, ...]:
    """Every alert of an SLO; within a kind the quickest and gravest first."""
    return tuple(alert for kind in ALERTS for alert in kind(slo))


def watches_of(slos: Iterable[Slo]) -> list[Watch]:
    """The faces in process of all alerts whose requests the service counts itself."""
    found = (alert.watch for slo in slos for alert in alerts_of(slo))
    return [watch for watch in found if watch is not None]


def groups_of(slo: Slo, *, compat: Compat | None = None) -> Iterator[Group]:
    """The groups of one SLO; what is slow to compute is computed less often."""
    as_sloth = compat == "sloth"
    alerts = alerts_of(slo)
    slow_alerts = [alert for alert in alerts if alert.interval_s == SLOW_S]
    quick_alerts = [alert for alert in alerts if alert.interval_s == QUICK_S]
    windows = rates.windows_of(slo, sloth.WINDOWS_S if as_sloth else ())
    slow = (
        *rates.straight(slo, windows, windows.seldom()),
        *rates.averaged(slo, windows),
        *budget.burns(slo, (*windows.seldom(), *windows.days())),
        *budget.left(slo),
        *percentiles.slow(slo),
        *baseline.baselines(slo),
        *baseline.over_baselines(slo),
        *(sloth.averaged(slo) if as_sloth else ()),
        *(sloth.relabelled(alert) if as_sloth else alert.rule for alert in slow_alerts),
    )
    quick = (
        *rates.straight(slo, windows, windows.often()),
        *budget.burns(slo, windows.often()),
        *percentiles.quick(slo),
        *owner.owner(slo),
        *deadline.rates(slo),
        *(sloth.straight(slo) if as_sloth else ()),
        *(sloth.relabelled(alert) if as_sloth else alert.rule for alert in quick_alerts),
    )
    for part, interval_s, rules in (
        ("samples", rates.SELDOM_SAMPLED_S, tuple(rates.seldom_sampled(slo, windows))),
        ("budgets", QUICK_S, tuple(budget.budgets(slo))),
        ("slow", SLOW_S, slow),
        ("quick", QUICK_S, quick),
        ("views", SLOW_S, tuple(percentiles.views(slo))),
        ("worst", rates.SELDOM_SAMPLED_S, tuple(percentiles.seldom_sampled(slo))),
    ):
        if rules:
            yield Group(f"tailburn-{slo.name}-{part}", interval_s, rules)
