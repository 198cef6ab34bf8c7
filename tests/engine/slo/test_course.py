"""Counts over a course of traffic, and when a window of it passes a threshold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.slo.course import Course, Stretch, both, gap, union

HOUR_S = 3600.0
WINDOW_S = 600.0

ratios = st.sampled_from([0.0, 0.003, 0.02, 0.1, 0.5, 1.0])
stretches = st.builds(
    Stretch,
    st.integers(1, 40).map(lambda minutes: minutes * 60.0),
    ratios,
    st.sampled_from([0.0, 0.5, 1.0, 20.0]),
)
courses = st.builds(
    Course,
    st.lists(st.one_of(stretches, st.just(gap(900.0))), min_size=1, max_size=8),
    st.booleans(),
)
spans = st.lists(
    st.tuples(st.integers(0, 90), st.integers(1, 20)).map(lambda s: (s[0] * 1.0, s[0] + s[1] * 1.0))
).map(union)


def test_counts_are_those_of_the_stretches() -> None:
    course = Course([Stretch(60, 0.5, 2.0), gap(30), Stretch(60, 0.0, 1.0)])
    at_s = np.array([0.0, 30.0, 60.0, 90.0, 150.0])
    assert course.requests(at_s).tolist() == [0, 60, 120, 120, 180]
    assert course.bad(at_s).tolist() == [0, 30, 60, 60, 60]


def test_before_the_course_all_was_well_at_the_same_traffic() -> None:
    course = Course([Stretch(60, 1.0, 2.0)])
    assert course.bad_ratio_in(600, 60) == pytest.approx(0.1)


def test_a_young_course_has_nothing_before_it() -> None:
    course = Course([Stretch(60, 0.5, 2.0)], is_young=True)
    assert course.bad_ratio_in(600, 60) == 0.5
    assert course.bad_ratio_in(600, 0) is None


def test_a_share_at_the_threshold_is_not_over_it() -> None:
    course = Course([Stretch(HOUR_S, 0.02)])
    assert course.over(WINDOW_S, 0.02) == ()
    assert course.over(WINDOW_S, 0.0199) != ()


def test_a_window_is_unmeasured_once_it_lies_in_a_gap() -> None:
    course = Course([Stretch(60, 0.0), gap(900), Stretch(60, 0.0)])
    assert course.unmeasured(WINDOW_S) == ((660, 960),)


def test_a_gap_shorter_than_the_window_leaves_it_measured() -> None:
    assert Course([Stretch(60, 0.0), gap(590)]).unmeasured(WINDOW_S) == ()


@given(courses, st.sampled_from([0.001, 0.05, 0.72]), st.sampled_from([60.0, 600.0, 7200.0]))
def test_spans_over_a_threshold_are_those_that_counting_gives(
    course: Course, threshold: float, window_s: float
) -> None:
    at_s = np.arange(0.5, course.end_s, 7.0)
    requests, bad = course.in_window(at_s, window_s)
    surplus = bad - threshold * requests
    over = course.over(window_s, threshold)
    within = np.any([(begin <= at_s) & (at_s < end) for begin, end in [*over, (-1.0, -1.0)]], 0)
    certain = np.abs(surplus) > 1e-6
    assert (within == (surplus > 0))[certain].all()


@given(spans, spans)
def test_both_holds_the_seconds_that_lie_in_each(
    one: tuple[tuple[float, float], ...], other: tuple[tuple[float, float], ...]
) -> None:
    shared = both(one, other)
    for at_s in np.arange(0.5, 115):
        within = [any(b <= at_s < e for b, e in s) for s in (one, other, shared)]
        assert within[2] == (within[0] and within[1])
    assert union(shared) == shared
    assert all(begin < end for begin, end in shared)
