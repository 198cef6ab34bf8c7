"""Budget burn: every alert just before and just after it must begin and end."""

from collections.abc import Iterable, Iterator
from typing import Final

from tailburn.engine.evaluation.windows import SAMPLED_S, STRAIGHT_UP_TO_S
from tailburn.engine.slo.model import Slo
from tailburn.engine.slo.simulate import Firing, firings
from tailburn.rules.alerting import Alert
from tailburn.rules.alerts import burn
from tailburn.rules.testing.asking import fires, is_silent, never_waited
from tailburn.rules.testing.courses.traffic import Scenario, scenarios
from tailburn.rules.testing.inputs import Scrapes, inputs_of
from tailburn.rules.testing.unit import Question, UnitTest

_DUST_S: Final = 1.0  # nearer to an edge, rounding decides


def tests(slo: Slo) -> Iterator[UnitTest]:
    """A test for each course of traffic."""
    alerts = tuple(burn.alerts(slo))
    for scenario in scenarios(slo):
        scrapes = Scrapes(scenario.interval_s, scenario.courses, scenario.resets)
        fed = inputs_of(slo, scrapes)
        asked = questions((a for a in alerts if a.objective in fed.objectives), scenario)
        yield UnitTest(scenario.name, scenario.interval_s, fed.inputs, asked)


def questions(alerts: Iterable[Alert], scenario: Scenario) -> tuple[Question, ...]:
    """About each edge and about the end of the course, and that nothing waited before it fired.

    A rule that waits is late by less than what a mean of sampled rates may be late by anyway.

    Alerts whose short window holds fewer than three scrapes are not asked for, unless there is
    slack.
    """
    found = [
        question
        for alert in alerts
        if alert.short_s + scenario.slack_s >= 3 * scenario.interval_s
        for question in _of_alert(alert, scenario)
    ]
    return tuple(sorted(found, key=lambda question: (question.at_s, question.expr)))


def _of_alert(alert: Alert, scenario: Scenario) -> Iterator[Question]:
    assert alert.pair is not None
    course, interval_s = scenario.courses[alert.objective], scenario.interval_s
    fired = firings(course, [alert.pair])
    lag_s = lag_of(alert.long_s, interval_s) + scenario.slack_s
    for at_s in _times(fired, course.end_s, lag_s, interval_s):
        state = _state(fired, at_s, lag_s)
        if state is not None:
            yield fires(alert, at_s) if state else is_silent(alert, at_s)
    if fired and not alert.for_s:
        yield never_waited(alert, int(course.end_s // interval_s) * interval_s)


def lag_of(long_s: int, interval_s: int) -> float:
    """How much later than the truth a rule may see what happens.

    A window that is rated straight from counters begins with the scrape at its begin, or with
    the next one from Prometheus 3 on; the mean of sampled rates over 5 min lags by those, and by
    the time between two samples.
    """
    return interval_s if long_s <= STRAIGHT_UP_TO_S else SAMPLED_S + 2.0 * interval_s


def _times(fired: Iterable[Firing], end_s: float, lag_s: float, interval_s: int) -> Iterator[int]:
    """Evaluations around every begin and end that lie far enough from it to be sure."""
    edges = [f.begin_s for f in fired] + [f.end_s for f in fired if f.end_s is not None]
    wanted = {int(end_s // interval_s) * interval_s}
    for edge_s in edges:
        wanted.add(int((edge_s - lag_s - _DUST_S) // interval_s) * interval_s)
        wanted.add(int((edge_s + lag_s + _DUST_S) // interval_s + 1) * interval_s)
    return (at_s for at_s in sorted(wanted) if interval_s <= at_s <= end_s)


def _state(fired: Iterable[Firing], at_s: float, lag_s: float) -> bool | None:
    """Whether it fires; None while an edge is too near to say."""
    for firing in fired:
        end_s = float("inf") if firing.end_s is None else firing.end_s
        if any(abs(edge_s - at_s) < lag_s + _DUST_S / 2 for edge_s in (firing.begin_s, end_s)):
            return None
        if firing.begin_s < at_s < end_s:
            return True
    return False
