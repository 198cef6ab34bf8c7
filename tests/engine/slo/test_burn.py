"""Burn pairs: the workbook's where it detects in time, stated times to detect where it does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.slo.burn import (
    DAY_S,
    HOUR_S,
    Limit,
    Pair,
    Severity,
    budget_used_ratio,
    detection_s,
    pairs,
    reset_s,
    window_s,
)
from tailburn.engine.slo.model import Calendar, Rolling

MONTH_S = 30 * DAY_S
BUDGETS = st.floats(0.0001, 0.3)
WINDOWS = st.integers(1, 120).map(lambda days: days * DAY_S)


def shapes(budget_ratio: float, days: float = 30) -> list[tuple[str, int, int, float]]:
    """Severity, windows in minutes and factor of every pair."""
    return [
        (str(p.severity), p.long_s // 60, p.short_s // 60, round(p.factor, 6))
        for p in pairs(budget_ratio, days * DAY_S)
    ]


def test_three_nines_over_thirty_days_have_the_workbooks_pairs() -> None:
    assert shapes(0.001) == [
        ("page", 60, 5, 14.4),
        ("page", 360, 30, 6.0),
        ("ticket", 1440, 120, 3.0),
        ("ticket", 4320, 360, 1.0),
    ]


def test_four_weeks_scale_the_factors_and_keep_the_windows() -> None:
    factors = [(long, factor) for _, long, _, factor in shapes(0.001, 28)]
    assert factors == [(60, 13.44), (360, 5.6), (1440, 2.8), (4320, 0.933333)]


def test_a_week_scales_the_windows_and_keeps_the_factors() -> None:
    assert [(long, factor) for _, long, _, factor in shapes(0.001, 7)] == [
        (14, 14.4),
        (84, 6.0),
        (336, 3.0),
        (1008, 1.0),
    ]


@pytest.mark.parametrize("objective", [0.99, 0.98, 0.95, 0.9, 0.8])
def test_a_page_comes_within_ten_minutes_when_all_requests_are_bad(objective: float) -> None:
    pages = [p for p in pairs(1 - objective, MONTH_S) if p.severity is Severity.PAGE]
    assert min(detection_s(p, 1.0) or float("inf") for p in pages) <= 600


@pytest.mark.parametrize("objective", [0.99, 0.98, 0.95, 0.9])
def test_a_page_comes_within_an_hour_and_a_half_when_a_quarter_is_bad(objective: float) -> None:
    pages = [p for p in pairs(1 - objective, MONTH_S) if p.severity is Severity.PAGE]
    assert min(detection_s(p, 0.25) or float("inf") for p in pages) <= 5400


def test_p95_is_told_what_moved_its_factors() -> None:
    fast, slow, day, days = pairs(0.05, MONTH_S)
    assert (fast.textbook_factor, fast.limit, fast.factor) == (14.4, Limit.DETECTION, 5.76)
    assert (slow.textbook_factor, slow.limit, slow.factor) == (6.0, Limit.DETECTION, 3.6)
    assert fast.textbook_factor * fast.budget_ratio == pytest.approx(0.72)
    assert (day.limit, days.limit) == (Limit.DETECTION, Limit.NONE)


def test_a_factor_that_could_not_fire_is_capped_at_half() -> None:
    fast = pairs(0.2, MONTH_S)[0]
    assert (fast.threshold_ratio, fast.limit, fast.was_reachable) == (0.5, Limit.HALF, False)


def test_pairs_that_limits_made_alike_are_one() -> None:
    assert [p.limit for p in pairs(0.45, MONTH_S)] == [Limit.HALF, Limit.NONE]


def test_a_calendar_window_is_as_long_as_its_period() -> None:
    assert window_s(Calendar("month")) == window_s(Rolling(MONTH_S)) == MONTH_S


@pytest.mark.parametrize("budget", [0, 1, -0.1, float("nan")])
def test_what_is_no_budget_is_refused(budget: float) -> None:
    with pytest.raises(ValueError, match="a budget is a ratio"):
        pairs(budget, MONTH_S)


def test_a_window_of_minutes_is_refused() -> None:
    with pytest.raises(ValueError, match="an hour or more"):
        pairs(0.01, 600)


@given(BUDGETS, WINDOWS)
def test_every_pair_can_fire_and_none_fires_in_health(budget: float, window: int) -> None:
    for pair in pairs(budget, window):
        assert 0 < pair.threshold_ratio <= 0.5
        assert pair.threshold_ratio > budget or pair.factor >= 0.9
        assert pair.severity is Severity.TICKET or pair.threshold_ratio > 1.2 * budget
        assert pair.short_s < pair.long_s


@given(BUDGETS, WINDOWS)
def test_slower_pairs_are_more_sensitive(budget: float, window: int) -> None:
    found = pairs(budget, window)
    for quicker, slower in zip(found, found[1:], strict=False):
        assert quicker.threshold_ratio > slower.threshold_ratio
        assert quicker.long_s < slower.long_s


@given(BUDGETS, WINDOWS, st.floats(0.001, 1))
def test_what_fires_first_has_taken_its_share_of_the_budget(
    budget: float, window: int, bad: float
) -> None:
    for pair in pairs(budget, window):
        seconds = detection_s(pair, bad)
        if seconds is None:
            assert bad <= pair.threshold_ratio
        else:
            used = seconds * bad / (window * budget)
            assert used == pytest.approx(budget_used_ratio(pair, window))


@given(BUDGETS, WINDOWS, st.floats(0.001, 1))
def test_it_ends_within_its_short_window(budget: float, window: int, bad: float) -> None:
    for pair in pairs(budget, window):
        ends_s = reset_s(pair, bad)
        assert (ends_s is None) == (detection_s(pair, bad) is None)
        assert ends_s is None or 0 < ends_s <= pair.short_s


def test_windows_are_never_shorter_than_five_minutes() -> None:
    shortest: Pair = min(pairs(0.001, DAY_S), key=lambda pair: pair.short_s)
    assert (shortest.short_s, shortest.long_s) == (300, 600)
    assert pairs(0.001, HOUR_S)
