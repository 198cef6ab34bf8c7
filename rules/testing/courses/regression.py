"""Tail regression: today's hour against the same hour of the days before.

Three days are few steps: what is recorded of each hour is given as recorded. The hours of four
stretches of the day tell apart what a baseline is made of.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Final

from tailburn.engine.evaluation.chance import floor, requests_each
from tailburn.engine.names import SLO_LABEL, slo_baseline_record, slo_quantile_record
from tailburn.engine.slo.burn import DAY_S, HOUR_S, MINUTE_S
from tailburn.engine.slo.model import QUANTILES, Clock, Slo
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.alerts import regression
from tailburn.rules.promql import number, selector
from tailburn.rules.recording.baseline import clocks_compared
from tailburn.rules.recording.percentiles import HOUR, WINDOW, WINDOW_S, buckets
from tailburn.rules.sources.histograms import histogram_of
from tailburn.rules.testing.asking import fires, is_silent
from tailburn.rules.testing.labels import troubled
from tailburn.rules.testing.unit import Input, Question, UnitTest, sample_name

_STEP_S: Final = 30 * MINUTE_S
_PART_S: Final = 6 * HOUR_S
_MOST_DAYS: Final = 3
_JUST_UNDER: Final = 0.98
_JUST_OVER: Final = 1.02
_WORSE: Final = 1.1


@dataclass(frozen=True)
class Part:
    """A quarter of the day: p99 in seconds on the days before, latest first, and trouble then."""

    name: str
    p99_s: tuple[float, float, float]
    in_trouble: tuple[bool, bool, bool] = (False, False, False)

    def baseline_s(self, days: int) -> float | None:
        """The median of the days that count; None where there is none."""
        days_s = zip(self.p99_s[:days], self.in_trouble[:days], strict=True)
        known = [p99_s for p99_s, in_trouble in days_s if not in_trouble]
        return median(known) if known else None


PARTS: Final = (
    Part("steady days", (1.1, 1.0, 0.9)),
    Part("yesterday's incident, unnoticed", (7.0, 1.0, 1.1)),
    Part("incidents yesterday and the day before, paged", (7.0, 6.0, 1.2), (True, True, False)),
    Part("yesterday's tail, known to be worse", (5.0, 1.0, 1.4), (True, False, False)),
)


def tests(slo: Slo) -> Iterator[UnitTest]:
    """For each clock: three days of history, and one with today just over and just under it."""
    compared = zip(clocks_compared(slo), regression.alerts(slo), strict=True)
    for clock, alert in compared:
        yield UnitTest(
            f"{alert.kind} {alert.objective}: " + "; ".join(part.name for part in PARTS),
            _STEP_S,
            tuple(_inputs(slo, clock)),
            tuple(_questions(slo, clock, alert)),
        )
        yield UnitTest(
            f"{alert.kind} {alert.objective}: no history",
            _STEP_S,
            (_now(slo, clock, "p99", f"{number(9.0)}+0x4"),),
            (is_silent(alert, 2 * HOUR_S),),
        )
        if slo.regression is not None and slo.regression.days > 1 and _can_be_counted(slo, clock):
            yield _few(slo, clock, alert)


def _can_be_counted(slo: Slo, clock: Clock) -> bool:
    """Native histograms have no notation."""
    histogram = histogram_of(slo, clock)
    return histogram is not None and not histogram.is_native


def _few(slo: Slo, clock: Clock, alert: Alert) -> UnitTest:
    """A long tail, of just too few requests and then of just enough; then p95 is over too."""
    histogram = histogram_of(slo, clock)
    assert histogram is not None and slo.regression is not None
    limit_s = slo.regression.ratio
    labels = {SLO_LABEL: slo.name} | troubled(slo)
    enough_per_s = requests_each(1 - QUANTILES["p99"]) * floor(1) / WINDOW_S
    rates = [enough_per_s * times for times in (_JUST_UNDER, _JUST_OVER, _JUST_UNDER)]
    came = " ".join(_level(rate, _PART_S) for rate in rates)
    p95 = " ".join(_level(limit_s * t, _PART_S) for t in (_JUST_UNDER, _JUST_UNDER, _JUST_OVER))
    past, now = _gap(_MOST_DAYS * DAY_S), _level(limit_s * _WORSE, 3 * _PART_S)
    hours = _level(1.0, (_MOST_DAYS + 1) * DAY_S)
    inputs = (
        Input(slo_quantile_record(clock, "p99", HOUR), labels, hours),
        _now(slo, clock, "p99", f"{past} {now}"),
        _now(slo, clock, "p95", f"{past} {p95}"),
        Input(buckets(histogram, WINDOW), labels | {"le": "+Inf"}, f"{past} {came}"),
    )
    ends_s = [_MOST_DAYS * DAY_S + part * _PART_S - _STEP_S for part in (1, 2, 3)]
    asked = (is_silent(alert, ends_s[0]), fires(alert, ends_s[1]), fires(alert, ends_s[2]))
    return UnitTest(f"{alert.kind} {alert.objective}: a tail of few", _STEP_S, inputs, asked)


def _questions(slo: Slo, clock: Clock, alert: Alert) -> Iterator[Question]:
    assert slo.regression is not None
    record = selector(slo_baseline_record(clock), {SLO_LABEL: slo.name})
    name = sample_name("", {SLO_LABEL: slo.name} | troubled(slo))
    for index, part in enumerate(PARTS):
        begin_s = _MOST_DAYS * DAY_S + index * _PART_S
        baseline_s = part.baseline_s(slo.regression.days)
        before_s, after_s = begin_s + _PART_S // 2 - _STEP_S, begin_s + _PART_S - 2 * HOUR_S
        known = {} if baseline_s is None else {name: baseline_s}
        yield Question(before_s, f"round({record}, 1e-6)", known)
        yield is_silent(alert, before_s)
        yield is_silent(alert, after_s) if baseline_s is None else fires(alert, after_s)


def _inputs(slo: Slo, clock: Clock) -> Iterator[Input]:
    assert slo.regression is not None
    days = range(_MOST_DAYS - 1, -1, -1)  # the oldest first
    hours = " ".join(_level(part.p99_s[day], _PART_S) for day in days for part in PARTS)
    hour_labels = {SLO_LABEL: slo.name} | troubled(slo)
    yield Input(slo_quantile_record(clock, "p99", HOUR), hour_labels, hours)
    for index, labels in ((2, _page(slo)), (3, _worse(slo))):
        flags = (
            index == i and part.in_trouble[day] for day in days for i, part in enumerate(PARTS)
        )
        values = " ".join(_level(1.0, _PART_S) if flag else _gap(_PART_S) for flag in flags)
        yield Input("ALERTS", {"alertstate": "firing"} | labels | troubled(slo), values)
    today = []
    for part in PARTS:
        baseline_s = part.baseline_s(slo.regression.days)
        limit_s = (baseline_s if baseline_s is not None else 1.0) * slo.regression.ratio
        today.append(_level(limit_s * _JUST_UNDER, _PART_S // 2))
        today.append(_level(limit_s * _JUST_OVER, _PART_S // 2))
    for percentile in ("p99", "p95"):  # all requests are slower, so that few are enough
        yield _now(slo, clock, percentile, f"{_gap(_MOST_DAYS * DAY_S)} {' '.join(today)}")


def _page(slo: Slo) -> dict[str, str]:
    return {"alertname": "AnotherPage", "severity": "page", SLO_LABEL: slo.name}


def _worse(slo: Slo) -> dict[str, str]:
    labels = {"severity": "ticket", SLO_LABEL: slo.name, "objective": "another"}
    return {"alertname": str(Kind.REGRESSION)} | labels


def _now(slo: Slo, clock: Clock, percentile: str, values: str) -> Input:
    """A percentile of 5 min, given as recorded: so far apart, nothing is left to rate."""
    labels = {SLO_LABEL: slo.name} | troubled(slo)
    return Input(slo_quantile_record(clock, percentile, WINDOW), labels, values)


def _level(value: float, for_s: int) -> str:
    return f"{number(round(value, 9))}+0x{for_s // _STEP_S - 1}"


def _gap(for_s: int) -> str:
    return f"_x{for_s // _STEP_S}"
