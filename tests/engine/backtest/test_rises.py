"""What counters rose by: over resets, gaps, and pieces."""

import numpy as np
import pytest

from tailburn.engine.backtest.rises import Counter

NAN = float("nan")


def rises(*values: float, pieces: int = 1) -> list[tuple[int, int, int]]:
    """Begin, end and amount of a counter that is read each minute from 100 on; nan: it was not."""
    counter, found = Counter(), list[tuple[int, int, int]]()
    at = np.arange(100, 100 + len(values))
    for part in np.array_split(np.arange(len(values)), pieces):
        told = counter.take(at[part], np.array(values, np.float64)[part])
        found += zip(told.begin.tolist(), told.end.tolist(), told.amount.tolist(), strict=True)
    return found


def test_the_first_value_is_no_rise() -> None:
    assert rises(1_000, 1_007, 1_007) == [(100, 101, 7), (101, 102, 0)]
    assert rises(1_000) == []


def test_a_value_below_the_one_before_began_again_at_nothing() -> None:
    assert rises(90, 95, 3, 4) == [(100, 101, 5), (101, 102, 3), (102, 103, 1)]


def test_a_gap_is_one_rise_from_its_begin_to_its_end() -> None:
    assert rises(5, NAN, NAN, 26, 27) == [(100, 103, 21), (103, 104, 1)]
    assert rises(NAN, 5, float("inf"), 4) == [(101, 103, 4)]


@pytest.mark.parametrize("pieces", [2, 3, 4, 7])
def test_pieces_are_the_same_as_the_whole(pieces: int) -> None:
    values = (5.0, 9.0, NAN, 2.0, NAN, NAN, 30.0)
    assert rises(*values, pieces=pieces) == rises(*values)


def test_a_rise_over_unread_minutes_is_across() -> None:
    told = Counter().take(np.array([1, 2, 5]), np.array([0.0, 1.0, 2.0]))
    assert told.is_across.tolist() == [False, True]
