"""Alerts that wait until more is bad than chance gives: against counting at each second."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tailburn.engine.evaluation.chance import HEALTHY, floor, surprise
from tailburn.engine.evaluation.windows import STRAIGHT_UP_TO_S
from tailburn.engine.slo.beyond_chance import convex_spans
from tailburn.engine.slo.burn import DAY_S, HOUR_S, Pair, Severity
from tailburn.engine.slo.course import Course, Floats, Stretch, gap
from tailburn.engine.slo.simulate import Effect, firings, held

PAIR = Pair(Severity.PAGE, HOUR_S, 300, 14.4, 0.001, 14.4)
LONG = Pair(Severity.TICKET, DAY_S, 2 * HOUR_S, 3.0, 0.001, 3.0)

stretches = st.one_of(
    st.builds(
        Stretch,
        st.integers(60, 9000),
        st.sampled_from([0.0, 0.02, 0.1, 1.0]),
        st.sampled_from([0.0, 0.002, 0.01, 0.05, 1.0]),
    ),
    st.builds(gap, st.integers(60, 9000)),
)


def is_firing(course: Course, pair: Pair, series: int, at_s: Floats) -> NDArray[np.bool_]:
    """By the definition: both shares over, and the surprise of what the long window comes to."""
    requests, bad = course.in_window(at_s, pair.long_s)
    if pair.long_s > STRAIGHT_UP_TO_S:
        known_s = np.maximum(course.measured_s(at_s, pair.long_s), 1e-9)
        requests, bad = requests * pair.long_s / known_s, bad * pair.long_s / known_s
    recent, recent_bad = course.in_window(at_s, pair.short_s)
    over = (bad > pair.threshold_ratio * requests) & (recent_bad > pair.threshold_ratio * recent)
    return over & (surprise(bad, requests, HEALTHY * pair.budget_ratio) >= floor(series))


@given(
    st.lists(stretches, min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from([PAIR, LONG]),
    st.sampled_from([1, 50]),
)
def test_an_alert_fires_where_counting_says(
    parts: list[Stretch], is_young: bool, pair: Pair, series: int
) -> None:
    course = Course(parts, is_young)
    spans = [(f.begin_s, f.end_s or course.end_s) for f in firings(course, [pair], series)]
    frozen = course.unmeasured(pair.short_s)
    edges = [edge for span in (*spans, *frozen) for edge in span]
    times = np.linspace(0.0, course.end_s, 500)
    for at_s, fires in zip(times, is_firing(course, pair, series, times), strict=True):
        if any(abs(at_s - edge) < 1e-3 for edge in edges) or _is_in(frozen, at_s):
            continue
        assert fires == _is_in(spans, at_s)


def _is_in(spans: Iterable[tuple[float, float]], at_s: float) -> bool:
    return any(begin < at_s < end for begin, end in spans)


def test_few_bad_requests_delay_an_alert() -> None:
    course = Course([Stretch(HOUR_S, 0.0, 0.05), Stretch(HOUR_S, 1.0, 0.05)])
    (waits,) = held(course, [PAIR])
    assert waits.effect is Effect.DELAYED
    assert waits.begin_s == pytest.approx(HOUR_S + 51.84)
    # Of 180 requests an hour a healthy series has 0.09 bad: 4.66 of them surprise by 13.8.
    assert 0.05 * (waits.end_s - HOUR_S) == pytest.approx(4.66, abs=0.01)
    ((begin_s, _),) = [(f.begin_s, f.end_s) for f in firings(course, [PAIR])]
    assert begin_s == waits.end_s


def test_too_few_bad_requests_prevent_an_alert() -> None:
    course = Course([Stretch(HOUR_S, 0.0, 0.01), Stretch(300.0, 1.0, 0.01), Stretch(HOUR_S, 0.0)])
    (silent,) = held(course, [PAIR])
    assert silent.effect is Effect.PREVENTED
    assert not firings(course, [PAIR])


def test_an_alert_ends_when_what_is_bad_may_be_chance_again() -> None:
    course = Course(
        [
            Stretch(300.0, 1.0, 0.02),
            Stretch(3400.0, 0.0, 0.0),
            Stretch(300.0, 1.0, 0.005),
            Stretch(HOUR_S, 0.0),
        ],
        is_young=True,
    )
    effects = [one.effect for one in held(course, [PAIR])]
    assert effects == [Effect.DELAYED, Effect.ENDED]


def test_more_series_ask_for_more_bad_requests() -> None:
    course = Course([Stretch(HOUR_S, 0.0, 0.05), Stretch(HOUR_S, 1.0, 0.05)])
    alone, among = (firings(course, [PAIR], series)[0].begin_s for series in (1, 1000))
    assert 0.05 * (among - alone) == pytest.approx(1.7, abs=0.1)


def test_a_long_window_counts_what_its_mean_rate_comes_to() -> None:
    """A young service: an hour of bad requests stands for a day of them, as in the rules."""
    course = Course([Stretch(HOUR_S, 1.0, 0.01)], is_young=True)
    assert not held(course, [LONG])


def test_many_requests_are_never_chance() -> None:
    course = Course([Stretch(HOUR_S, 0.0, 1e4), Stretch(HOUR_S, 0.1, 1e4)])
    assert not held(course, [PAIR])


@given(
    st.floats(-3.0, 3.0),
    st.floats(0.1, 5.0),
    st.one_of(st.floats(-2.0, -0.01), st.floats(0.0, 2.0)),
)
def test_where_a_parabola_is_above_zero(at: float, steep: float, low: float) -> None:
    """Two spans, one or none, in two pieces that meet."""

    def value(at_s: Floats) -> Floats:
        return np.asarray(steep * (at_s - at) ** 2 + low)

    found = convex_spans(np.array([-4.0, 1.0]), np.array([1.0, 4.0]), value)
    half = np.sqrt(-low / steep) if low < 0 else 0.0
    if low >= 0:
        assert found == ((-4.0, 4.0),)
        return
    wanted = [(-4.0, at - half), (at + half, 4.0)]
    assert [pytest.approx(span) for span in wanted if span[0] < span[1]] == list(found)
