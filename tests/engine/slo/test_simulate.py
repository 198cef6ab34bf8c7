"""Simulated alerts against the workbook's formulas and table, and budgets against counting."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tailburn.engine.evaluation.chance import healthy_ratio
from tailburn.engine.slo.burn import (
    DAY_S,
    HOUR_S,
    Pair,
    Severity,
    budget_used_ratio,
    detection_s,
    pairs,
    reset_s,
)
from tailburn.engine.slo.course import Course, Stretch, gap
from tailburn.engine.slo.simulate import Budget, Firing, firings, with_recovery
from tailburn.engine.slo.textbook import textbook_pairs
from tests.engine.slo.workbook import SHARES, TABLE, Cell

MONTH_S = 30.0 * DAY_S
MANY_PER_S = 1e6  # so many requests that nothing is chance
PAIR = Pair(Severity.PAGE, HOUR_S, 300, 14.4, 0.001, 14.4)

budgets = st.sampled_from([0.0001, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25])
windows_s = st.sampled_from([1.0, 7.0, 28.0, 30.0, 90.0]).map(lambda days: days * DAY_S)
shares = st.floats(0.0005, 1.0)


def step_of(bad_ratio: float, lasts_s: float, then_s: float) -> Course:
    """All was well, then this share is bad for so long, then all is well again."""
    return Course([Stretch(lasts_s, bad_ratio, MANY_PER_S), Stretch(then_s, 0.0, MANY_PER_S)])


def fired(course: Course, pair: Pair = PAIR) -> list[tuple[float, float | None]]:
    return [(f.begin_s, f.end_s) for f in firings(course, [pair])]


@given(budgets, windows_s, shares, st.floats(1.001, 20.0))
def test_a_step_fires_and_ends_when_the_formulas_say(
    budget: float, window_s: float, bad_ratio: float, lasts: float
) -> None:
    for pair in (*pairs(budget, window_s), *textbook_pairs(budget, window_s)):
        if pair.threshold_ratio <= healthy_ratio(budget):
            continue  # a textbook's pair that fires in health
        detection = detection_s(pair, bad_ratio)
        if detection is None:
            assert fired(step_of(bad_ratio, 4.0 * pair.long_s, pair.long_s), pair) == []
            continue
        assume(bad_ratio - pair.threshold_ratio > 1e-6)
        lasts_s = detection * lasts
        reset = reset_s(pair, bad_ratio)
        assert reset is not None
        ((begin_s, end_s),) = fired(step_of(bad_ratio, lasts_s, 2.0 * pair.long_s), pair)
        assert begin_s == pytest.approx(detection, rel=1e-3)
        assert end_s == pytest.approx(lasts_s + reset, rel=1e-3)


@pytest.mark.parametrize("row", TABLE, ids=[f"{objective} {pair}" for objective, pair in TABLE])
def test_the_workbook_s_table_comes_out(row: tuple[float, str]) -> None:
    objective, name = row
    threshold, cells = TABLE[row]
    pair = textbook_pair(objective, name)
    assert pair.threshold_ratio == pytest.approx(threshold)
    for bad_ratio, cell in zip(SHARES, cells, strict=True):
        assert simulated(pair, bad_ratio) == pytest.approx(
            cell, abs=0.51 if cell_is_whole(cell) else 0.051
        )


@pytest.mark.parametrize(
    ("days", "factors"), [(28, [13.44, 5.6, 2.8, 28 / 30]), (30, [14.4, 6, 3, 1])]
)
def test_the_workbook_s_factors_are_those_of_the_window(days: int, factors: list[float]) -> None:
    found = [pair.factor for pair in textbook_pairs(0.001, days * DAY_S)]
    assert found == pytest.approx(factors)


def textbook_pair(objective: float, name: str) -> Pair:
    long, short = name.split("/")
    units = {"m": 60, "h": HOUR_S, "d": DAY_S}
    long_s, short_s = (int(text[:-1]) * units[text[-1]] for text in (long, short))
    found = textbook_pairs(round(1 - objective, 12), MONTH_S)
    return next(p for p in found if (p.long_s, p.short_s) == (long_s, short_s))


def simulated(pair: Pair, bad_ratio: float) -> Cell:
    """Minutes to detect and to reset, of a step that lasts three days."""
    lasts_s = 3.0 * DAY_S
    found = fired(step_of(bad_ratio, lasts_s, float(DAY_S)), pair)
    if not found:
        return None
    ((begin_s, end_s),) = found
    assert end_s is not None
    return begin_s / 60, (end_s - lasts_s) / 60


def cell_is_whole(cell: Cell) -> bool:
    """The hand-made table gives long times in whole minutes."""
    return cell is not None and cell[1] == int(cell[1])


@given(budgets, shares)
def test_the_budget_that_is_gone_when_it_fires_is_the_formula_s(
    budget_ratio: float, bad_ratio: float
) -> None:
    for pair in pairs(budget_ratio, MONTH_S):
        detection = detection_s(pair, bad_ratio)
        if detection is None or bad_ratio - pair.threshold_ratio < 1e-6:
            continue
        budget = Budget(step_of(bad_ratio, detection, 60.0), budget_ratio, MONTH_S)
        left = budget.left_at(detection)
        assert left is not None
        assert 1 - left == pytest.approx(budget_used_ratio(pair, MONTH_S), rel=1e-6)


def test_an_alert_that_still_fires_has_no_end() -> None:
    ((begin_s, end_s),) = fired(Course([Stretch(HOUR_S, 1.0)]))
    assert begin_s == pytest.approx(51.84)
    assert end_s is None


def test_recovery_lasts_until_every_alert_ended() -> None:
    alerts = pairs(0.001, MONTH_S)
    course = with_recovery(Course([Stretch(MONTH_S, 1.0, 7.0)]), alerts)
    assert [f.end_s is not None for f in firings(course, alerts)] == [True] * len(alerts)
    assert course.stretches[-1] == Stretch(6 * HOUR_S, 0.0, 7.0)


def test_recovery_after_a_gap_goes_on_at_the_traffic_before_it() -> None:
    course = with_recovery(Course([Stretch(60, 1.0, 7.0), gap(60)]), [PAIR])
    assert course.stretches[-1] == Stretch(300, 0.0, 7.0)


def test_recovery_without_alerts_adds_nothing() -> None:
    course = Course([Stretch(60, 0.0)])
    assert with_recovery(course, []) is course


def test_a_gap_freezes_what_fires_until_data_come_back() -> None:
    course = Course([Stretch(600, 1.0), gap(7200), Stretch(HOUR_S, 0.0)])
    ((begin_s, end_s),) = fired(course)
    assert begin_s == pytest.approx(51.84)
    assert end_s == pytest.approx(600 + 7200)  # the first good requests end it


def test_a_gap_is_outlived_for_six_hours_at_most() -> None:
    course = Course([Stretch(600, 1.0), gap(2.0 * DAY_S), Stretch(60, 0.0)])
    ((_, end_s),) = fired(course)
    assert end_s == pytest.approx(600 + 300 + 6 * HOUR_S)


@pytest.mark.parametrize("short_s", [300, 1800, 6 * HOUR_S])
def test_those_six_hours_are_the_same_for_every_window(short_s: int) -> None:
    pair = Pair(Severity.TICKET, 12 * short_s, short_s, 1.0, 0.001, 1.0)
    course = Course([Stretch(600, 1.0), gap(2.0 * DAY_S), Stretch(60, 0.0)])
    ((_, end_s),) = fired(course, pair)
    assert end_s == pytest.approx(600 + 300 + 6 * HOUR_S)


def test_a_window_longer_than_those_six_hours_ends_with_its_last_data() -> None:
    pair = Pair(Severity.TICKET, 12 * DAY_S, DAY_S, 1.0, 0.001, 1.0)
    course = Course([Stretch(7200, 1.0), gap(2.0 * DAY_S), Stretch(60, 0.0)])
    ((_, end_s),) = fired(course, pair)
    assert end_s == pytest.approx(7200 + DAY_S)


def test_a_gap_begins_no_alert() -> None:
    assert fired(Course([Stretch(DAY_S, 0.0), gap(7200), Stretch(HOUR_S, 0.0)])) == []


def test_nobody_asking_is_no_missing_data_and_ends_an_alert() -> None:
    course = Course([Stretch(600, 1.0), Stretch(7200, 0.0, 0.0)])
    ((_, end_s),) = fired(course)
    assert end_s == pytest.approx(600 + 300)


def test_a_young_service_is_judged_by_what_there_is() -> None:
    course = Course([Stretch(HOUR_S, 0.02, MANY_PER_S)], is_young=True)
    ((begin_s, end_s),) = fired(course)
    assert begin_s < 0.01
    assert end_s is None


def test_busy_hours_weigh_more_than_quiet_ones() -> None:
    course = Course([Stretch(HOUR_S, 0.0, 90.0), Stretch(HOUR_S, 1.0, 10.0)], is_young=True)
    budget = Budget(course, 0.2, MONTH_S)
    assert budget.left_at(2 * HOUR_S) == pytest.approx(0.5)


def test_a_budget_without_requests_is_unknown() -> None:
    budget = Budget(Course([Stretch(60, 0.0, 0.0)], is_young=True), 0.01, MONTH_S)
    assert budget.left_at(30.0) is None
    assert budget.lowest() is None


def test_a_budget_is_overdrawn_from_the_first_bad_request_too_many() -> None:
    budget = Budget(step_of(1.0, 2.0 * HOUR_S, 60.0), 0.001, MONTH_S)
    ((begin_s, _),) = budget.overdrawn()
    assert begin_s == pytest.approx(0.001 * MONTH_S)


def test_a_budget_comes_back_once_the_window_has_passed() -> None:
    budget = Budget(step_of(1.0, 600.0, MONTH_S), 0.001, MONTH_S)
    at_s, left = budget.lowest() or (None, None)
    assert at_s == 600.0
    assert left == pytest.approx(1 - 600 / 2592)
    assert budget.left_at(600 + MONTH_S) == pytest.approx(1.0)


@given(
    st.lists(
        st.builds(Stretch, st.integers(1, 9000), shares, st.sampled_from([0.0, 1.0, 5.0])),
        min_size=1,
        max_size=6,
    )
)
def test_the_lowest_of_a_budget_is_not_above_any_other(stretches: list[Stretch]) -> None:
    budget = Budget(Course(stretches), 0.01, 7200.0)
    lowest = budget.lowest()
    left = budget.left(np.linspace(0, budget.course.end_s, 300))
    if lowest is not None:
        assert lowest[1] <= np.nanmin(left) + 1e-9


def test_firings_come_in_the_order_in_which_they_begin() -> None:
    found = firings(step_of(0.3, 7200.0, 7.0 * HOUR_S), pairs(0.001, MONTH_S))
    assert [f.begin_s for f in found] == sorted(f.begin_s for f in found)
    assert isinstance(found[0], Firing)
