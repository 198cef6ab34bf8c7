"""Few requests, all at once: a large share of them is bad by chance, or by more than chance."""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from tailburn.engine.evaluation import chance
from tailburn.engine.slo.burn import Pair
from tailburn.engine.slo.course import Course, Stretch
from tailburn.engine.slo.model import Slo
from tailburn.rules.alerting import Alert
from tailburn.rules.alerts import burn
from tailburn.rules.testing.asking import fires, is_silent
from tailburn.rules.testing.courses.traffic import INTERVALS_S
from tailburn.rules.testing.inputs import Scrapes, inputs_of
from tailburn.rules.testing.labels import well
from tailburn.rules.testing.unit import Question, UnitTest

_SURE: Final = 1.3  # so far from the floor that rates' own rounding decides nothing
_OVER: Final = 1.1
_JUST: Final = 1.05
_MOST_BAD: Final = 1_000


def tests(slo: Slo) -> Iterator[UnitTest]:
    """For each pair of windows of each budget: enough bad ones, just enough, and too few."""
    alerts = [alert for alert in burn.alerts(slo) if alert.pair is not None]
    for alert in alerts:
        assert alert.pair is not None
        series = 1 if well(slo) is None else 2
        for word, is_enough, (requests, bad) in (
            ("more than", True, _counts(alert.pair, series, is_enough=True)),
            ("just more than", True, _just_enough(alert.pair, series)),
            ("no more than", False, _counts(alert.pair, series, is_enough=False)),
        ):
            if bad:
                name = f"few requests: {bad} bad ones of {requests} are {word} chance"
                yield from _test(slo, alert, alerts, (requests, bad), is_enough, name)


def _test(
    slo: Slo, alert: Alert, alerts: list[Alert], counts: tuple[int, int], is_enough: bool, name: str
) -> Iterator[UnitTest]:
    pair, (requests, bad) = alert.pair, counts
    assert pair is not None
    interval_s = next(s for s in INTERVALS_S if 3 * s <= pair.short_s)
    quiet_s = math.ceil(pair.long_s / interval_s) * interval_s
    stretches = (
        Stretch(quiet_s, 0.0, 0.0),
        Stretch(interval_s, bad / requests, requests / interval_s),
        Stretch(interval_s, 0.0, 0.0),
    )
    names = {a.objective for a in alerts}
    courses = {name: Course(stretches, is_young=True) for name in names}
    fed = inputs_of(slo, Scrapes(interval_s, courses))
    if alert.objective in fed.objectives:
        at_s = quiet_s + 2 * interval_s
        asked: Question = fires(alert, at_s) if is_enough else is_silent(alert, at_s)
        named = f"{name}, {alert.objective} over {pair.long_s} s"
        yield UnitTest(named, interval_s, fed.inputs, (asked,))


def _counts(pair: Pair, series: int, is_enough: bool) -> tuple[int, int]:
    """Requests and bad ones: over the threshold, and on that side of the floor."""
    healthy, floor = chance.healthy_ratio(pair.budget_ratio), chance.floor(series)
    each = float(chance.surprise(np.ones(1), np.ones(1), healthy)[0])
    requests = math.ceil(_SURE * _SURE * floor / each)
    bad = np.arange(1, requests + 1).astype(np.float64)
    surprise = chance.surprise(bad, np.full(len(bad), float(requests)), healthy)
    over = bad / requests > _OVER * pair.threshold_ratio
    if is_enough:
        fit = bad[over & (surprise >= _SURE * floor)]
        return requests, int(fit[0]) if len(fit) else 0
    fit = bad[over & (surprise * _SURE <= floor)]
    return requests, int(fit[-1]) if len(fit) else 0


def _just_enough(pair: Pair, series: int) -> tuple[int, int]:
    """As many requests as chance lets pass: what a healthy series expects then counts."""
    healthy = chance.healthy_ratio(pair.budget_ratio)
    wanted = _JUST * chance.floor(series)
    bad = np.arange(1, _MOST_BAD).astype(np.float64)
    requests = np.floor(bad / (_OVER * pair.threshold_ratio))
    fit = np.flatnonzero(chance.surprise(bad, requests, healthy) >= wanted)
    return (int(requests[fit[0]]), int(bad[fit[0]])) if len(fit) else (0, 0)
