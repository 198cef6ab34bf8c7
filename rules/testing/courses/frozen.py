"""Missing data freeze what fires, for 6 h: that nothing is known is no recovery."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.windows import FROZEN_AT_MOST_S
from tailburn.engine.names import (
    SLO_DEADLINE_MISSED_METRIC,
    SLO_DEADLINE_REQUESTS_METRIC,
    SLO_LABEL,
)
from tailburn.engine.slo.burn import HOUR_S, MINUTE_S
from tailburn.engine.slo.course import Course, Stretch, gap
from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.alerts import deadline
from tailburn.rules.recording.percentiles import clocks_of
from tailburn.rules.ruleset import alerts_of
from tailburn.rules.sources.choose import budgets_of
from tailburn.rules.sources.histograms import histogram_of
from tailburn.rules.testing.asking import fires, is_silent
from tailburn.rules.testing.counters import counted
from tailburn.rules.testing.courses.percentiles import OVER
from tailburn.rules.testing.histograms import Phase, histogram_inputs
from tailburn.rules.testing.inputs import Scrapes, inputs_of
from tailburn.rules.testing.labels import troubled
from tailburn.rules.testing.unit import Input, UnitTest

_STEP_S: Final = 150
_BAD_S: Final = 30 * MINUTE_S
_MANY_PER_S: Final = 100_000.0
_KINDS: Final = (Kind.TIER, Kind.DEADLINE, Kind.SCALE_OUT, Kind.CONSISTENCY)
_SLOW_SHARE: Final = 0.1


def tests(slo: Slo) -> Iterator[UnitTest]:
    """Everything is in trouble, and then nothing is known for a long time."""
    lasting = _BAD_S + FROZEN_AT_MOST_S + 2 * HOUR_S
    fed = inputs_of(slo, Scrapes(_STEP_S, {b.name: _course(lasting) for b in budgets_of(slo)}))
    asked = []
    for alert in alerts_of(slo):
        if alert.kind in _KINDS and _is_shown(slo, alert, fed.objectives):
            seen_s = _BAD_S + alert.short_s  # so long its window holds something
            asked.append(fires(alert, _BAD_S))
            asked.append(fires(alert, _whole(seen_s + FROZEN_AT_MOST_S / 2)))
            asked.append(fires(alert, _whole(seen_s + FROZEN_AT_MOST_S - 6 * _STEP_S)))
            asked.append(is_silent(alert, _whole(seen_s + FROZEN_AT_MOST_S + 2 * _STEP_S)))
    inputs = (*fed.inputs, *_histograms(slo), *_deadlines(slo))
    yield UnitTest("frozen: the data end while it fires", _STEP_S, inputs, tuple(asked))


def _is_shown(slo: Slo, alert: Alert, objectives: frozenset[str]) -> bool:
    """Whether the inputs can show it: native histograms have no notation."""
    budgets = {budget.name for budget in budgets_of(slo)}
    if alert.kind is Kind.TIER and alert.objective in budgets:
        return alert.objective in objectives
    histograms = [histogram_of(slo, clock) for clock in clocks_of(slo)]
    return not any(histogram is None or histogram.is_native for histogram in histograms)


def _course(lasting_s: float) -> Course:
    return Course([Stretch(_BAD_S, 1.0, _MANY_PER_S), gap(lasting_s - _BAD_S)], is_young=True)


def _histograms(slo: Slo) -> Iterator[Input]:
    budgets = {budget.clock for budget in budgets_of(slo)}
    for clock in clocks_of(slo):
        histogram = histogram_of(slo, clock)
        if histogram is None or histogram.is_native:
            continue
        phases = [Phase(_BAD_S, _MANY_PER_S, _durations(slo, clock))]
        for one in histogram_inputs(slo, clock, phases, _STEP_S):
            if slo.source is None or clock not in budgets or one.labels["le"] != "+Inf":
                yield one


def _durations(slo: Slo, clock: Clock) -> dict[float, float]:
    """Over every threshold, and where the ratio of the slowest counts, far apart."""
    thresholds = [s for tier in slo.clocks.get(clock, {}).values() for s in tier.values()]
    usual_s = max(thresholds, default=1.0) * OVER
    if clock is not Clock.E2E or slo.consistency_p99_over_p50 is None:
        return {usual_s: 1.0}
    slow_s = usual_s * slo.consistency_p99_over_p50 * (OVER + 2 * (OVER - 1))
    return {usual_s: 1 - _SLOW_SHARE, slow_s: _SLOW_SHARE}


def _deadlines(slo: Slo) -> Iterator[Input]:
    if deadline.is_counted(slo):
        values = counted([Stretch(_BAD_S, 1.0, _MANY_PER_S)], [1.0], _STEP_S, ())
        for metric in (SLO_DEADLINE_REQUESTS_METRIC, SLO_DEADLINE_MISSED_METRIC):
            yield Input(metric, {SLO_LABEL: slo.name} | troubled(slo), values)


def _whole(at_s: float) -> int:
    return round(at_s / _STEP_S) * _STEP_S
