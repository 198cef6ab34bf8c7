"""How a budget stands: exact where it can be counted by hand, and by brute force elsewhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine.slo.budget import Budget, Counts, Outlook, budget
from tailburn.engine.slo.model import Calendar, Rolling

HOUR_NS = 3_600_000_000_000
DAY_NS = 24 * HOUR_NS
NOW_NS = 1_780_000_000_000_000_000 // HOUR_NS * HOUR_NS
DAY = Rolling(86_400.0)


def counts(*hours: tuple[int, int], ago: int | None = None, unmeasured: int = 0) -> Counts:
    """(requests, bad) of each hour up to now."""
    begin = NOW_NS - (len(hours) if ago is None else ago) * HOUR_NS
    requests, bad = (np.array(c, np.int64) for c in zip(*hours, strict=True))
    return Counts(
        begin + HOUR_NS * np.arange(len(hours), dtype=np.int64),
        requests,
        bad,
        np.full(len(hours), unmeasured, np.int64),
    )


def of_day(given: Counts, budget_ratio: float = 0.01) -> Budget:
    return budget(given, budget_ratio, DAY, NOW_NS)


def test_what_is_burned_is_weighed_by_requests_not_by_hours() -> None:
    stood = of_day(counts((1000, 10), (10, 10)))

    assert stood.burned_ratio == pytest.approx(20 / 1010 / 0.01)
    assert stood.outlook is Outlook.GONE


def test_a_budget_without_a_verdict_is_unmeasured_and_never_whole() -> None:
    stood = of_day(counts((0, 0), unmeasured=7))

    assert (stood.left_ratio, stood.burn, stood.gone_ns) == (None, None, None)
    assert stood.outlook is Outlook.UNMEASURED
    assert stood.unmeasured_ratio == 1
    assert {left for _, left in stood.course} == {None}


def test_nothing_in_the_last_hour_says_nothing_of_the_next() -> None:
    stood = of_day(counts((1000, 5), (0, 0)))

    assert stood.left_ratio == pytest.approx(0.5)
    assert (stood.burn, stood.outlook) == (None, Outlook.UNMEASURED)


def test_a_steady_burn_of_two_takes_what_is_left_in_half_its_window() -> None:
    """A day of no bad requests behind, then twice the budget: after 12 h half the day is bad."""
    healthy = [(100_000, 0)] * 23

    stood = of_day(counts(*healthy, (100_000, 2_000)))

    assert stood.burn == pytest.approx(2)
    assert stood.outlook is Outlook.RUNS_OUT
    assert stood.gone_ns is not None
    assert (stood.gone_ns - NOW_NS) / HOUR_NS == pytest.approx(11)


def test_what_leaves_the_window_is_given_back() -> None:
    """A burn under 1 lasts for ever, however little is left."""
    stood = of_day(counts(*[(1000, 10)] * 23, (1000, 9)))

    assert stood.left_ratio == pytest.approx(0.1 / 24)
    assert (stood.outlook, stood.gone_ns) == (Outlook.LASTS, None)


def test_a_calendars_budget_lasts_where_its_period_ends_first() -> None:
    month = Calendar("month")
    hours = 24 * 28

    stood = budget(counts(*[(100, 0)] * (hours - 1), (100, 2)), 0.01, month, NOW_NS)

    assert stood.burn == pytest.approx(2)
    assert stood.outlook is Outlook.LASTS
    assert stood.begin_ns < NOW_NS < stood.end_ns


def test_a_calendars_budget_is_gone_when_the_excess_has_used_it_up() -> None:
    """100 requests an hour, 1 allowed, 3 bad: what 24 quiet hours saved is gone in 11 more."""
    week = Calendar("week")
    begin_ns = budget(counts((1, 0)), 0.01, week, NOW_NS).begin_ns
    now_ns = begin_ns + 25 * HOUR_NS
    at_ns = begin_ns + HOUR_NS * np.arange(25, dtype=np.int64)
    bad = np.append(np.zeros(24, np.int64), 3)

    given = Counts(at_ns, np.full(25, 100, np.int64), bad, np.zeros(25, np.int64))
    stood = budget(given, 0.01, week, now_ns)

    assert stood.gone_ns is not None
    assert (stood.gone_ns - now_ns) / HOUR_NS == pytest.approx((25 - 3) / 2)


def test_what_lies_before_the_window_is_not_of_it() -> None:
    stood = of_day(counts((1000, 1000), *[(1000, 1)] * 24))

    assert (stood.requests, stood.bad) == (24_000, 24)
    assert stood.since_ns == stood.begin_ns


def test_the_course_ends_at_what_is_left_and_only_falls() -> None:
    stood = of_day(counts((10, 0), (1000, 3), (500, 0), (1000, 2)))

    known = [left for _, left in stood.course if left is not None]
    assert known[-1] == pytest.approx(stood.left_ratio)
    assert known == sorted(known, reverse=True)
    assert stood.course[0][1] is None, "nothing was measured yet"


_hour = st.integers(0, 50).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@settings(max_examples=60, deadline=None)
@given(st.lists(_hour, min_size=2, max_size=24), st.sampled_from([0.05, 0.2, 0.5]))
def test_the_time_it_is_gone_is_that_of_going_on_minute_by_minute(
    hours: list[tuple[int, int]], budget_ratio: float
) -> None:
    stood = of_day(counts(*hours), budget_ratio)
    if stood.outlook not in (Outlook.RUNS_OUT, Outlook.LASTS):
        return

    found = _by_minutes(hours, budget_ratio)

    if stood.gone_ns is None:
        assert found is None
    else:
        assert found is not None
        assert (stood.gone_ns - NOW_NS) / HOUR_NS == pytest.approx(found, abs=1.5 / 60)


def _by_minutes(hours: list[tuple[int, int]], budget_ratio: float) -> float | None:
    """Hours until more than the budget is bad, each hour's requests spread over its minutes."""
    blank = np.zeros((24 - len(hours)) * 60)
    requests, bad = (np.append(blank, np.repeat([h[i] / 60 for h in hours], 60)) for i in (0, 1))
    coming = np.arange(1, 24 * 60 + 1)
    gone_requests, gone_bad = np.cumsum(requests), np.cumsum(bad)
    at_requests = requests.sum() + coming * hours[-1][0] / 60 - gone_requests
    at_bad = bad.sum() + coming * hours[-1][1] / 60 - gone_bad
    over = np.flatnonzero(at_bad > budget_ratio * at_requests + 1e-9)
    return float(coming[over[0]] / 60) if len(over) else None
