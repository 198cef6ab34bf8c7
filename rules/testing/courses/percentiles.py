"""Alerts on a percentile of five minutes: critical tiers, and the signal to scale out."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tailburn.engine.slo.burn import MINUTE_S
from tailburn.engine.slo.model import QUANTILES, Clock, Slo, Tier
from tailburn.rules.alerting import Alert
from tailburn.rules.alerts import scale_out, tier
from tailburn.rules.recording.percentiles import SAMPLES, WINDOW_S, clocks_of
from tailburn.rules.sources.histograms import histogram_of
from tailburn.rules.testing.asking import fires, is_silent
from tailburn.rules.testing.histograms import Phase, histogram_inputs
from tailburn.rules.testing.unit import Question, UnitTest

STEP_S: Final = MINUTE_S
OVER: Final = 1.03
UNDER: Final = 0.97
_LAG_S: Final = 2 * STEP_S
_WELL_S: Final = 8 * MINUTE_S


@dataclass(frozen=True)
class _Watched:
    """An alert, the percentile that it watches and from when on."""

    alert: Alert
    clock: Clock
    percentile: str
    threshold_s: float


def tests(slo: Slo) -> Iterator[UnitTest]:
    """For each alert: above its threshold and back, just below it, and with too few requests."""
    for watched in _watched(slo):
        histogram = histogram_of(slo, watched.clock)
        if histogram is not None and not histogram.is_native:
            yield _over(slo, watched)
            yield _steady(slo, watched, "just under the threshold", UNDER, enough=True)
            yield _steady(slo, watched, "too few requests to tell", OVER, enough=False)


def _watched(slo: Slo) -> Iterator[_Watched]:
    critical = {
        f"{clock}_{p.replace('.', '_')}_critical": (clock, p, threshold_s)
        for clock in clocks_of(slo)
        for p, threshold_s in slo.clocks.get(clock, {}).get(Tier.CRITICAL, {}).items()
    }
    for alert in tier.alerts(slo):
        if alert.objective in critical:
            yield _Watched(alert, *critical[alert.objective])
    threshold_s = scale_out.threshold_of(slo)
    for alert in scale_out.alerts(slo):
        assert threshold_s is not None
        yield _Watched(alert, Clock.TTFT, "p99", threshold_s)


def _over(slo: Slo, watched: _Watched) -> UnitTest:
    """A percentile passes the threshold when the slow are its share of the window."""
    slow_s = watched.alert.for_s + WINDOW_S + 2 * _LAG_S
    rate = requests_per_s(watched.percentile, enough=True)
    quick, slow = ({watched.threshold_s * times: 1.0} for times in (UNDER, OVER))
    phases = [
        Phase(_WELL_S, rate, quick),
        Phase(slow_s, rate, slow),
        Phase(WINDOW_S + 2 * _LAG_S, rate, quick),
    ]
    q = QUANTILES[watched.percentile]
    begin_s = _WELL_S + (1 - q) * WINDOW_S + watched.alert.for_s
    end_s = _WELL_S + slow_s + q * WINDOW_S
    name = f"{_named(watched)}: above {watched.threshold_s:g} s for its time, and back"
    return _test(slo, watched, name, phases, around(watched.alert, begin_s, end_s))


def _steady(slo: Slo, watched: _Watched, why: str, times: float, *, enough: bool) -> UnitTest:
    for_s = watched.alert.for_s + 2 * _LAG_S
    rate = requests_per_s(watched.percentile, enough=enough)
    phases = [Phase(for_s, rate, {watched.threshold_s * times: 1.0})]
    asked = (is_silent(watched.alert, for_s),)
    return _test(slo, watched, f"{_named(watched)}: {why}", phases, asked)


def _test(
    slo: Slo, watched: _Watched, name: str, phases: list[Phase], asked: tuple[Question, ...]
) -> UnitTest:
    inputs = tuple(histogram_inputs(slo, watched.clock, phases, STEP_S))
    return UnitTest(name, STEP_S, inputs, asked)


def around(alert: Alert, begin_s: float, end_s: float) -> tuple[Question, ...]:
    """Just before and just after an alert must begin and end."""
    return (
        is_silent(alert, _step(begin_s - _LAG_S)),
        fires(alert, _step(begin_s + _LAG_S)),
        fires(alert, _step(end_s - _LAG_S)),
        is_silent(alert, _step(end_s + _LAG_S)),
    )


def requests_per_s(percentile: str, *, enough: bool) -> float:
    """A whole number a step; over five minutes a tenth more than needed, or a tenth less."""
    needed = SAMPLES[percentile] * STEP_S / WINDOW_S
    return (math.ceil(needed * 1.1) if enough else math.floor(needed * 0.9)) / STEP_S


def _step(at_s: float) -> int:
    return round(at_s / STEP_S) * STEP_S


def _named(watched: _Watched) -> str:
    return f"{watched.alert.kind} {watched.alert.objective}"
