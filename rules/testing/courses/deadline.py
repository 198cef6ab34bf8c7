"""Deadline burn: a share of misses in both windows, and enough of them."""

from collections.abc import Iterator, Sequence
from typing import Final

from tailburn.engine.names import (
    SLO_DEADLINE_MISSED_METRIC,
    SLO_DEADLINE_REQUESTS_METRIC,
    SLO_LABEL,
)
from tailburn.engine.slo.burn import MINUTE_S
from tailburn.engine.slo.course import Stretch
from tailburn.engine.slo.model import Slo
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.alerts import deadline
from tailburn.rules.testing.asking import fires, is_silent
from tailburn.rules.testing.counters import counted
from tailburn.rules.testing.courses.percentiles import STEP_S, around
from tailburn.rules.testing.labels import troubled
from tailburn.rules.testing.unit import Input, Question, UnitTest

_MANY_PER_S: Final = 100_000.0
_TWO_A_MINUTE: Final = 2 / MINUTE_S
_HISTORY_S: Final = 35 * MINUTE_S


def tests(slo: Slo) -> Iterator[UnitTest]:
    """Each of the four conditions decides once."""
    for alert in deadline.alerts(slo):
        yield from _tests(slo, alert)


def _tests(slo: Slo, alert: Alert) -> Iterator[UnitTest]:
    last_s = 8 * MINUTE_S
    for word, share, asked in (
        ("over", 1.03 * deadline.SHORT_RATIO, fires(alert, last_s)),
        ("under", 0.97 * deadline.SHORT_RATIO, is_silent(alert, last_s)),
    ):
        yield _test(slo, f"misses just {word} a tenth", [(last_s, share, _MANY_PER_S)], (asked,))

    share, bad_s = 0.12, 15 * MINUTE_S
    begin_s = _HISTORY_S + deadline.LONG_S * deadline.LONG_RATIO / share
    end_s = _HISTORY_S + bad_s + deadline.SHORT_S * (1 - deadline.SHORT_RATIO / share)
    course = [
        (_HISTORY_S, 0.0, _MANY_PER_S),
        (bad_s, share, _MANY_PER_S),
        (10 * MINUTE_S, 0.0, _MANY_PER_S),
    ]
    name = "misses show in 30 min, and go with 5 min"
    yield _test(slo, name, course, around(alert, begin_s, end_s))

    enough_s = round(deadline.LONG_MISSES / _TWO_A_MINUTE)
    asked_twice = (is_silent(alert, enough_s - MINUTE_S), fires(alert, enough_s + MINUTE_S))
    few = [(last_s, 1.0, _TWO_A_MINUTE)]
    yield _test(slo, "the tenth miss in 30 min", few, asked_twice)

    rare = [(_HISTORY_S, 1.0, 1 / STEP_RARE_S)]
    inputs = _inputs(slo, rare, STEP_RARE_S)
    asked_once = (is_silent(alert, _HISTORY_S),)
    name = f"{alert.kind}: four misses in 5 min are too few"
    yield UnitTest(name, STEP_RARE_S, inputs, asked_once)


STEP_RARE_S: Final = 75
"""Between scrapes, and between requests: four in five minutes."""


def _test(
    slo: Slo,
    name: str,
    course: Sequence[tuple[int, float, float]],
    asked: tuple[Question, ...],
) -> UnitTest:
    name = f"{Kind.DEADLINE}: {name}"
    return UnitTest(name, STEP_S, _inputs(slo, course, STEP_S), asked)


def _inputs(
    slo: Slo, course: Sequence[tuple[int, float, float]], interval_s: int
) -> tuple[Input, ...]:
    labels = {SLO_LABEL: slo.name} | troubled(slo)
    stretches = [Stretch(for_s, missed, rate) for for_s, missed, rate in course]
    shares = {
        SLO_DEADLINE_REQUESTS_METRIC: [1.0] * len(stretches),
        SLO_DEADLINE_MISSED_METRIC: [stretch.bad_ratio for stretch in stretches],
    }
    return tuple(
        Input(metric, labels, counted(stretches, ratios, interval_s, ()))
        for metric, ratios in shares.items()
    )
