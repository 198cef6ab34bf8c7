"""Percentiles that dashboards show: of five minutes, of the worst minute, per dimension."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.windows import SLOW_S
from tailburn.engine.names import (
    SLO_LABEL,
    slo_quantile_record,
    slo_view_record,
    slo_worst_record,
)
from tailburn.engine.slo.burn import HOUR_S, MINUTE_S
from tailburn.engine.slo.model import QUANTILES, Clock, EngineSource, Rolling, Slo
from tailburn.rules.promql import duration, selector
from tailburn.rules.recording.percentiles import HOUR, PUBLISHED, WINDOW, clocks_of
from tailburn.rules.sources.engines import labelled_by
from tailburn.rules.sources.histograms import histogram_of, views_of
from tailburn.rules.testing.courses.percentiles import requests_per_s
from tailburn.rules.testing.histograms import Phase, histogram_inputs, quantile
from tailburn.rules.testing.labels import troubled
from tailburn.rules.testing.unit import Input, Question, UnitTest, sample_name

_STEP_S: Final = 15  # several scrapes make the rate of one minute
_MANY_PER_S: Final = 1000.0
_SLOW: Final = {0.5: 0.9, 4.0: 0.08, 16.0: 0.02}
_QUICK: Final = {0.1: 0.6, 0.2: 0.34, 0.4: 0.05, 0.8: 0.0095, 1.6: 0.0005}
_EVEN: Final = {0.5: 1.0}
_BAD_S: Final = 9.0
_WORST: Final = "p95"
_SEEN: Final = "one-of-it"


def tests(slo: Slo) -> Iterator[UnitTest]:
    """Values; and that there are none where too few requests came to know them."""
    for clock in clocks_of(slo):
        histogram = histogram_of(slo, clock)
        if histogram is None or histogram.is_native:
            continue
        yield _values(slo, clock)
        for percentile in PUBLISHED:
            yield _just(slo, clock, percentile, enough=True)
            yield _just(slo, clock, percentile, enough=False)
        yield _hour(slo, clock, enough=True)
        yield _hour(slo, clock, enough=False)
        yield _worst_minutes(slo, clock)


def _values(slo: Slo, clock: Clock) -> UnitTest:
    """Slow minutes, then quick ones: the five minutes are quick, the worst minute is slow."""
    phases = [Phase(3 * MINUTE_S, _MANY_PER_S, _SLOW), Phase(6 * MINUTE_S, _MANY_PER_S, _QUICK)]
    inputs = tuple(_with_views(slo, i) for i in histogram_inputs(slo, clock, phases, _STEP_S))
    questions = tuple(_questions(slo, clock, sum(phase.for_s for phase in phases)))
    return UnitTest(f"percentiles of {clock.upper()}", _STEP_S, inputs, questions)


def _just(slo: Slo, clock: Clock, percentile: str, *, enough: bool) -> UnitTest:
    """A tenth more requests in five minutes than it takes to know a percentile, or fewer."""
    last_s = 6 * MINUTE_S
    phases = [Phase(last_s, requests_per_s(percentile, enough=enough), _EVEN)]
    inputs = tuple(_with_views(slo, i) for i in histogram_inputs(slo, clock, phases, MINUTE_S))
    value = quantile(_EVEN, QUANTILES[percentile]) if enough else None
    own = {SLO_LABEL: slo.name} | troubled(slo)
    questions = [_about(slo_quantile_record(clock, percentile, WINDOW), own, value, last_s)]
    for name in views_of(slo):
        labels = own | {name: slo.select.get(name, _SEEN)}
        questions.append(_about(slo_view_record(clock, percentile, name), labels, value, last_s))
    name = f"{clock.upper()} {percentile}: {'just enough' if enough else 'too few'} requests"
    return UnitTest(name, MINUTE_S, inputs, tuple(questions))


def _hour(slo: Slo, clock: Clock, *, enough: bool) -> UnitTest:
    """Just enough requests for p99 of an hour, as it is known after most of it; or too few."""
    last_s, step_s = 40 * MINUTE_S, 2 * MINUTE_S
    phases = [Phase(last_s, (11 if enough else 9) / step_s, _EVEN)]
    inputs = tuple(histogram_inputs(slo, clock, phases, step_s))
    own = {SLO_LABEL: slo.name} | troubled(slo)
    value = quantile(_EVEN, QUANTILES["p99"]) if enough else None
    question = _about(slo_quantile_record(clock, "p99", HOUR), own, value, last_s)
    name = f"{clock.upper()} p99 of an hour: {'just enough' if enough else 'too few'} requests"
    return UnitTest(name, step_s, inputs, (question,))


def _worst_minutes(slo: Slo, clock: Clock) -> UnitTest:
    """One bad minute, given as recorded: each window forgets it in its time."""
    own = {SLO_LABEL: slo.name} | troubled(slo)
    minutes = Input(slo_worst_record(clock, _WORST, duration(SLOW_S)), own, f"_ {_BAD_S:g} 1+0x74")
    asked = [
        _about(slo_worst_record(clock, _WORST, window), own, value, hours * HOUR_S)
        for window, hours, value in (
            (HOUR, 1, _BAD_S),
            (HOUR, 3, 1.0),
            ("1d", 20, _BAD_S),
            ("1d", 30, 1.0),
            ("3d", 60, _BAD_S),
            ("3d", 76, 1.0),
        )
    ]
    if isinstance(slo.window, Rolling) and slo.window.seconds > 76 * HOUR_S:
        longest = slo_worst_record(clock, _WORST, duration(slo.window.seconds))
        asked.append(_about(longest, own, _BAD_S, 76 * HOUR_S))
    return UnitTest(f"worst minute of {clock.upper()}", HOUR_S, (minutes,), tuple(asked))


def _with_views(slo: Slo, one: Input) -> Input:
    return Input(one.metric, _scraped(slo) | dict(one.labels), one.values)


def _scraped(slo: Slo) -> dict[str, str]:
    """A value for each dimension that is looked along, under the source's own label."""
    labels = {name: _SEEN for name in views_of(slo) if name not in slo.select}
    if isinstance(slo.source, EngineSource):
        return {labelled_by(slo.source, name): value for name, value in labels.items()}
    return labels


def _questions(slo: Slo, clock: Clock, at_s: int) -> Iterator[Question]:
    own = {SLO_LABEL: slo.name} | troubled(slo)
    for percentile in PUBLISHED:
        value = quantile(_QUICK, QUANTILES[percentile])
        yield _about(slo_quantile_record(clock, percentile, WINDOW), own, value, at_s)
        for name in views_of(slo):
            labels = own | {name: slo.select.get(name, _SEEN)}
            yield _about(slo_view_record(clock, percentile, name), labels, value, at_s)
    worst = quantile(_SLOW, QUANTILES[_WORST])
    yield _about(slo_worst_record(clock, _WORST, HOUR), own, worst, at_s)


def _about(record: str, labels: dict[str, str], value: float | None, at_s: int) -> Question:
    known = {} if value is None else {sample_name("", labels): round(value, 4)}
    return Question(at_s, f"round({selector(record, labels)}, 1e-4)", known)
