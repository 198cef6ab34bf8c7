"""The ticket of the acceptable tier: more than its share of five minutes' requests is over."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.burn import MINUTE_S
from tailburn.engine.slo.course import Course, Stretch
from tailburn.engine.slo.model import Slo
from tailburn.rules.alerting import Alert
from tailburn.rules.alerts import tier
from tailburn.rules.recording.percentiles import SAMPLES, WINDOW_S
from tailburn.rules.sources.choose import budgets_of
from tailburn.rules.testing.asking import is_silent
from tailburn.rules.testing.courses.percentiles import STEP_S, around
from tailburn.rules.testing.inputs import Scrapes, inputs_of
from tailburn.rules.testing.unit import Question, UnitTest

_REQUESTS_PER_S: Final = 100_000.0
_WELL_S: Final = 7 * MINUTE_S
_PERCENTILE: Final = "p95"


def tests(slo: Slo) -> Iterator[UnitTest]:
    """Past the budget's share and back, just under it, and with too few requests."""
    budgets = {budget.name: budget for budget in budgets_of(slo)}
    for alert in tier.alerts(slo):
        if (budget := budgets.get(alert.objective)) is None:
            continue
        slow_s = alert.for_s + 2 * WINDOW_S
        past = budget.budget_ratio * 2
        begin_s = _WELL_S + WINDOW_S / 2 + alert.for_s
        end_s = _WELL_S + slow_s + WINDOW_S / 2
        yield _test(
            slo,
            alert,
            "twice what is acceptable, and back",
            [(_WELL_S, 0.0), (slow_s, past), (WINDOW_S, 0.0)],
            around(alert, begin_s, end_s),
        )
        steady_s = alert.for_s + 4 * STEP_S
        silent = (is_silent(alert, steady_s),)
        under = [(steady_s, budget.budget_ratio * 0.98)]
        yield _test(slo, alert, "just under what is acceptable", under, silent)
        few = (SAMPLES[_PERCENTILE] * STEP_S / WINDOW_S - 1) / STEP_S
        yield _test(slo, alert, "too few requests to tell", [(steady_s, 1.0)], silent, few)


def _test(
    slo: Slo,
    alert: Alert,
    why: str,
    shares: list[tuple[int, float]],
    asked: tuple[Question, ...],
    requests_per_s: float = _REQUESTS_PER_S,
) -> UnitTest:
    course = Course([Stretch(for_s, bad, requests_per_s) for for_s, bad in shares], is_young=True)
    fed = inputs_of(slo, Scrapes(STEP_S, {budget.name: course for budget in budgets_of(slo)}))
    shown = asked if alert.objective in fed.objectives else ()
    return UnitTest(f"{alert.kind} {alert.objective}: {why}", STEP_S, fed.inputs, shown)
