"""Sloth's series and labels beside ours, so that dashboards made for Sloth go on working.

They say the same of the same requests, but for one: the ratio over the whole period weighs each
request the same. Sloth's is the mean of five-minute ratios, in which a quiet night counts as
much as a busy noon, and which an idle five minutes makes not a number for the whole period.
Values of `by` are summed: Sloth knows one budget for each SLO.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tailburn.engine.names import (
    SEVERITY_LABEL,
    SLO_BAD_RATE_RECORD,
    SLO_PERIOD_BAD_METRIC,
    SLO_PERIOD_REQUESTS_METRIC,
    SLO_TOTAL_RATE_RECORD,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.exchange.sloth import FILE_VERSION, SERVICE_LABEL, SLO_LABEL
from tailburn.engine.slo.model import Calendar, Objective, Slo
from tailburn.rules.alerting import Alert
from tailburn.rules.alerts.burn import identity
from tailburn.rules.model import Rule, literal
from tailburn.rules.promql import duration, number, selector
from tailburn.rules.sources.choose import budgets_of

WINDOWS_S: Final = (
    *(5 * burn.MINUTE_S, 30 * burn.MINUTE_S, burn.HOUR_S, 2 * burn.HOUR_S, 6 * burn.HOUR_S),
    *(burn.DAY_S, 3 * burn.DAY_S),
)
ID_LABEL: Final = "sloth_id"
SEVERITY: Final = "sloth_severity"
_WINDOW_LABEL: Final = "sloth_window"
_WEEK_S: Final = 7 * burn.DAY_S
_RATIO: Final = "slo:sli_error:ratio_rate"
_BUDGET: Final = "slo:error_budget:ratio"
_PERIOD_BURN: Final = "slo:period_burn_rate:ratio"


def straight(slo: Slo) -> Iterator[Rule]:
    """The ratios over windows of up to six hours, and the burn of the shortest."""
    for budget in budgets_of(slo):
        for window_s in WINDOWS_S:
            if window_s <= 6 * burn.HOUR_S:
                yield _ratio(slo, budget, window_s)
        yield _burn(slo, budget, WINDOWS_S[0], "slo:current_burn_rate:ratio")


def averaged(slo: Slo) -> Iterator[Rule]:
    """The ratios over days and the period, what is left of the budget, and the constants."""
    period_s = burn.window_s(slo.window)
    for budget in budgets_of(slo):
        labels = labels_of(slo, budget)
        objective = f"{number(1 - budget.budget_ratio)}"
        days = number(period_s / burn.DAY_S)
        yield Rule(f"vector({objective})", "slo:objective:ratio", labels=labels)
        yield Rule(f"vector(1-{objective})", _BUDGET, labels=labels)
        yield Rule(f"vector({days})", "slo:time_period:days", labels=labels)
        for window_s in WINDOWS_S:
            if window_s > 6 * burn.HOUR_S:
                yield _ratio(slo, budget, window_s)
        if period_s not in WINDOWS_S:
            yield _ratio(slo, budget, period_s)
        yield _burn(slo, budget, period_s, _PERIOD_BURN)
        left = f"1 - {selector(_PERIOD_BURN, _key(slo, budget))}"
        yield Rule(left, "slo:period_error_budget_remaining:ratio", labels=labels)
        about = {
            "sloth_mode": "tailburn",
            "sloth_objective": number((1 - budget.budget_ratio) * 100),
            "sloth_spec": FILE_VERSION,
            "sloth_version": "tailburn",
        }
        yield Rule("vector(1)", "sloth_slo_info", labels=labels | about)


def relabelled(alert: Alert) -> Rule:
    """A budget burn with the labels by which Sloth's alerts are routed; others as they are."""
    rule = alert.rule
    budget = next((b for b in budgets_of(alert.slo) if b.name == alert.objective), None)
    if alert.pair is None or budget is None:
        return rule
    names = {name: literal(value) for name, value in _key(alert.slo, budget).items()}
    theirs = names | {SEVERITY: rule.labels[SEVERITY_LABEL]}
    return replace(rule, labels=dict(rule.labels) | theirs)


def labels_of(slo: Slo, budget: Objective) -> dict[str, str]:
    """Sloth's three names of an SLO, and the user's own labels."""
    own = {n: v for n, v in slo.labels.items() if n not in (SERVICE_LABEL, SLO_LABEL)}
    return _key(slo, budget) | own


def _key(slo: Slo, budget: Objective) -> dict[str, str]:
    """An SLO that was Sloth's has its names; any other is a service, its budgets are SLOs."""
    service = slo.labels.get(SERVICE_LABEL, slo.name)
    name = slo.labels.get(SLO_LABEL, budget.name)
    return {ID_LABEL: f"{service}-{name}", SERVICE_LABEL: service, SLO_LABEL: name}


def _ratio(slo: Slo, budget: Objective, window_s: int) -> Rule:
    window = duration(window_s)
    bad, total = f"{SLO_BAD_RATE_RECORD}{window}", f"{SLO_TOTAL_RATE_RECORD}{window}"
    if isinstance(slo.window, Calendar) and window_s == burn.window_s(slo.window):
        bad, total = SLO_PERIOD_BAD_METRIC, SLO_PERIOD_REQUESTS_METRIC
    chosen = identity(slo, budget)
    return Rule(
        f"sum({selector(bad, chosen)})\n/\nsum({selector(total, chosen)})",
        f"{_RATIO}{window_name(window_s)}",
        labels=labels_of(slo, budget) | {_WINDOW_LABEL: window_name(window_s)},
    )


def _burn(slo: Slo, budget: Objective, window_s: int, record: str) -> Rule:
    ratio = selector(f"{_RATIO}{window_name(window_s)}", _key(slo, budget))
    on = f"on({ID_LABEL}, {SLO_LABEL}, {SERVICE_LABEL}) group_left"
    expr = f"{ratio}\n/ {on}\n{selector(_BUDGET, _key(slo, budget))}"
    return Rule(expr, record, labels=labels_of(slo, budget))


def window_name(window_s: int) -> str:
    """As Sloth names a window: 28 days are four weeks."""
    weeks, rest = divmod(window_s, _WEEK_S)
    return f"{weeks}w" if weeks and not rest else duration(window_s)
