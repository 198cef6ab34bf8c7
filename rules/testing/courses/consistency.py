"""Consistency: the slowest of an hour against the usual."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.burn import MINUTE_S
from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules.alerts import consistency
from tailburn.rules.sources.histograms import histogram_of
from tailburn.rules.testing.asking import fires, is_silent
from tailburn.rules.testing.histograms import Phase, histogram_inputs
from tailburn.rules.testing.unit import Question, UnitTest

_STEP_S: Final = MINUTE_S
_USUAL_S: Final = 1.0
_SLOW_SHARE: Final = 0.1
_MANY_PER_S: Final = 100.0


def tests(slo: Slo) -> Iterator[UnitTest]:
    """A tenth of the requests a little over the ratio, and a little under it."""
    histogram = histogram_of(slo, Clock.E2E)
    if histogram is None or histogram.is_native or slo.consistency_p99_over_p50 is None:
        return
    for alert in consistency.alerts(slo):
        last_s = alert.for_s + 5 * MINUTE_S
        too_soon = is_silent(alert, alert.for_s - 2 * MINUTE_S)
        asked: tuple[tuple[str, float, tuple[Question, ...]], ...] = (
            ("over", 1.05, (too_soon, fires(alert, last_s))),
            ("under", 0.95, (is_silent(alert, last_s),)),
        )
        for word, times, questions in asked:
            slow_s = _USUAL_S * slo.consistency_p99_over_p50 * times
            durations = {_USUAL_S: 1 - _SLOW_SHARE, slow_s: _SLOW_SHARE}
            phases = [Phase(last_s, _MANY_PER_S, durations)]
            inputs = tuple(histogram_inputs(slo, Clock.E2E, phases, _STEP_S))
            yield UnitTest(f"{alert.kind}: just {word} the ratio", _STEP_S, inputs, questions)
