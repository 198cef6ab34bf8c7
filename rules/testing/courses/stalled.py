"""Stalled queue: requests in flight, and nothing finishes."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.silences import seen_least
from tailburn.engine.names import (
    SLO_IN_FLIGHT_METRIC,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_UNMEASURED_METRIC,
)
from tailburn.engine.slo.burn import HOUR_S, MINUTE_S
from tailburn.engine.slo.course import Stretch, gap
from tailburn.engine.slo.model import EngineSource, Slo
from tailburn.rules.alerting import Alert
from tailburn.rules.alerts import stalled
from tailburn.rules.sources.choose import budgets_of
from tailburn.rules.sources.engines import engine_of
from tailburn.rules.testing.asking import fires, is_silent
from tailburn.rules.testing.counters import counted, levels
from tailburn.rules.testing.engine_inputs import source_labels
from tailburn.rules.testing.labels import identity, troubled
from tailburn.rules.testing.unit import Input, UnitTest

_LONGEST_S: Final = 6 * HOUR_S  # a longer patience would take minutes to test
_IN_FLIGHT: Final = 1.0
_PER_S: Final = 0.5
_BUSY_S: Final = 10 * MINUTE_S
_REMEMBERED_S: Final = 5 * MINUTE_S  # Prometheus goes on with a gauge's last value for so long


def tests(slo: Slo) -> Iterator[UnitTest]:
    """A stall that ends, one that is known for too short a time, and a service that is idle."""
    for alert in stalled.alerts(slo):
        if alert.long_s <= _LONGEST_S:
            for name in _finishing(slo):
                yield _stall(slo, alert, name)
            yield _part(slo, alert)
            yield _idle(slo, alert)


def _finishing(slo: Slo) -> tuple[str, ...]:
    """The counters of which one at least moves while requests get on."""
    if isinstance(slo.source, EngineSource):
        return (engine_of(slo.source).progress,)
    return (SLO_REQUESTS_METRIC, SLO_UNMEASURED_METRIC)


def _stall(slo: Slo, alert: Alert, counter: str) -> UnitTest:
    """Few get on, then one waits and none does, then they do again."""
    step_s = _step_s(alert)
    busy_s, stall_s = _whole(_BUSY_S, step_s), _whole(alert.long_s * 1.5, step_s)
    moving = [
        Stretch(busy_s, 0, _PER_S),
        Stretch(stall_s, 0, 0.0),
        Stretch(4 * step_s, 0, _PER_S),
    ]
    waiting = [Stretch(s.for_s, 0, 0.0 if i == 0 else _IN_FLIGHT) for i, s in enumerate(moving)]
    begin_s, end_s = busy_s + alert.long_s, busy_s + stall_s
    asked = (
        is_silent(alert, begin_s - 2 * step_s),
        fires(alert, begin_s + 2 * step_s),
        fires(alert, end_s),
        is_silent(alert, end_s + 2 * step_s),
    )
    inputs = tuple(_inputs(slo, counter, moving, waiting, step_s))
    return UnitTest(f"{alert.kind}: {counter} stands still, then moves", step_s, inputs, asked)


def _part(slo: Slo, alert: Alert) -> UnitTest:
    """Requests in flight are told of late, and then no more: most of a window must know them."""
    step_s, least_s = _step_s(alert), seen_least(alert.long_s) * MINUTE_S
    told_s = _whole(alert.long_s, step_s)
    unknown_s = _whole(alert.long_s - least_s + _REMEMBERED_S, step_s) + 2 * step_s
    waiting = [gap(told_s), Stretch(told_s, 0, _IN_FLIGHT), gap(unknown_s)]
    moving = [Stretch(stretch.for_s, 0, 0.0) for stretch in waiting]
    first_s = told_s + step_s  # when the gauge has its first value
    asked = (
        is_silent(alert, first_s + (least_s - 2 * MINUTE_S) // step_s * step_s),
        fires(alert, first_s + _whole(least_s - MINUTE_S, step_s)),
        fires(alert, 2 * told_s),
        is_silent(alert, 2 * told_s + unknown_s),
    )
    inputs = tuple(_inputs(slo, _finishing(slo)[0], moving, waiting, step_s))
    return UnitTest(f"{alert.kind}: known for a part of the time", step_s, inputs, asked)


def _idle(slo: Slo, alert: Alert) -> UnitTest:
    step_s = _step_s(alert)
    busy_s, idle_s = _whole(_BUSY_S, step_s), _whole(alert.long_s * 1.5, step_s)
    moving = [Stretch(busy_s, 0, _PER_S), Stretch(idle_s, 0, 0.0)]
    waiting = [Stretch(stretch.for_s, 0, 0.0) for stretch in moving]
    inputs = tuple(_inputs(slo, _finishing(slo)[0], moving, waiting, step_s))
    asked = (is_silent(alert, busy_s + idle_s),)
    return UnitTest(f"{alert.kind}: nobody asks", step_s, inputs, asked)


def _inputs(
    slo: Slo, counter: str, moving: list[Stretch], waiting: list[Stretch], step_s: int
) -> Iterator[Input]:
    everything = [1.0] * len(moving)
    gauge, count = levels(waiting, everything, step_s), counted(moving, everything, step_s, ())
    if isinstance(slo.source, EngineSource):
        engine, labels = engine_of(slo.source), source_labels(slo.source, troubled(slo))
        yield from (Input(metric, labels, gauge) for metric in engine.in_flight)
        yield Input(counter, labels, count)
        return
    yield Input(SLO_IN_FLIGHT_METRIC, {SLO_LABEL: slo.name} | troubled(slo), gauge)
    for budget in budgets_of(slo):
        yield Input(counter, identity(slo, budget) | troubled(slo), count)


def _step_s(alert: Alert) -> int:
    """Shorter than the five minutes after which Prometheus takes a gauge for gone."""
    return MINUTE_S if alert.long_s <= HOUR_S else 240


def _whole(seconds: float, step_s: int) -> int:
    return -(-round(seconds) // step_s) * step_s
