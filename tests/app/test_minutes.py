"""Which minutes are evaluated, by clocks that stand, run, jump and go back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.app.minutes import CATCH_UP_NS, LAG_NS, Due, due
from tailburn.engine.evaluation.windows import MINUTE_NS

BASE = 29_000_000 * MINUTE_NS


def at(minutes: float) -> int:
    return BASE + round(minutes * MINUTE_NS)


def test_a_minute_is_due_once_its_rows_had_time_to_come() -> None:
    assert due(at(0), at(1) + LAG_NS - 1, False) is None
    assert due(at(0), at(1) + LAG_NS, False) == Due(at(0), at(1))


def test_a_few_missed_minutes_are_evaluated_one_by_one() -> None:
    found = due(at(0), at(5.5), False)

    assert found is not None
    assert list(found.minutes()) == [at(m) for m in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize("minutes", [6, 600], ids=["ten minutes", "ten hours"])
def test_more_of_them_are_a_gap_and_only_the_last_is_evaluated(minutes: int) -> None:
    found = due(at(0), at(minutes + 0.5), False)

    assert found == Due(at(minutes - 1), at(minutes), skipped=minutes - 1)
    assert list(found.minutes()) == [at(minutes)]


def test_a_clock_of_senders_may_pass_hours_at_a_time_and_no_minute_is_left_out() -> None:
    found = due(at(0), at(600.5), True)

    assert found is not None and found.skipped == 0
    assert len(list(found.minutes())) == 600


def test_a_clock_that_steps_back_is_followed() -> None:
    found = due(at(120), at(60.5), False)

    assert found == Due(at(59), at(60), set_back_ns=60 * MINUTE_NS)
    assert list(found.minutes()) == [at(60)]


def test_a_clock_that_wavers_by_less_than_a_minute_is_waited_for() -> None:
    assert due(at(10), at(9.5), False) is None


@given(st.lists(st.integers(-90, 90), min_size=1, max_size=40), st.booleans())
def test_whatever_a_clock_does_evaluation_goes_on_and_no_minute_comes_twice_without_a_step_back(
    steps: list[int], is_told: bool
) -> None:
    last, now, seen = at(0), at(0.5), [at(0)]
    for step in steps:
        now += step * MINUTE_NS
        found = due(last, now, is_told)
        if found is None:
            assert last - 2 * MINUTE_NS <= now
            continue
        minutes = list(found.minutes())
        assert minutes and minutes[-1] == found.until_ns <= now
        if not found.set_back_ns:
            assert minutes[0] > seen[-1]
        assert len(minutes) <= CATCH_UP_NS // MINUTE_NS or is_told
        seen += minutes
        last = found.until_ns
