"""Self time per hop: exact sums, and the deepest active hop owns each instant."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.breakdown import DEPTHS, UNATTRIBUTED_INDEX, sweep
from tailburn.engine.names import HOP_INDEX

Interval = tuple[int, int, int]


def split(intervals: list[Interval], begin: int, end: int) -> list[int]:
    """`sweep` over (begin, end, hop) intervals, as a list of ns per hop."""
    columns = np.array(intervals, np.int64).reshape(-1, 3).T
    scratch = np.zeros(2 * len(intervals) + 2, np.int64)
    own = np.full(DEPTHS + 1, -1, np.int64)
    a, b, hop = (np.ascontiguousarray(c) for c in columns)
    sweep(a, b, hop, len(intervals), begin, end, scratch, own)
    return own.tolist()


def by_instant(intervals: list[Interval], begin: int, end: int) -> list[int]:
    """The same, asked of every nanosecond one by one."""
    own = [0] * (DEPTHS + 1)
    for t in range(begin, end):
        active = [hop for a, b, hop in intervals if a <= t < b]
        own[max(active, default=UNATTRIBUTED_INDEX)] += 1
    return own


moments = st.integers(-20, 80)
interval = st.tuples(moments, moments, st.integers(0, DEPTHS - 1))
many = st.lists(interval, max_size=12)


@given(many, st.integers(0, 40), st.integers(0, 60))
def test_each_instant_belongs_to_the_deepest_active_hop(
    intervals: list[Interval], begin: int, length: int
) -> None:
    assert split(intervals, begin, begin + length) == by_instant(intervals, begin, begin + length)


@given(st.lists(interval, min_size=65, max_size=90), st.integers(0, 60))
def test_many_intervals_are_owned_by_the_same_rule(intervals: list[Interval], length: int) -> None:
    assert split(intervals, 0, length) == by_instant(intervals, 0, length)


big = st.integers(1_700_000_000_000_000_000, 1_900_000_000_000_000_000)


@given(st.lists(st.tuples(big, big, st.integers(0, DEPTHS - 1)), max_size=20), big, big)
def test_the_parts_sum_to_the_window_exactly(
    intervals: list[Interval], begin: int, end: int
) -> None:
    assert sum(split(intervals, begin, end)) == max(end - begin, 0)


@given(st.lists(interval, max_size=12).flatmap(lambda i: st.tuples(st.just(i), st.permutations(i))))
def test_the_order_of_intervals_leaves_no_trace(
    orders: tuple[list[Interval], list[Interval]],
) -> None:
    assert split(orders[0], 0, 60) == split(orders[1], 0, 60)


def test_what_no_hop_covers_is_unattributed() -> None:
    gateway = HOP_INDEX["gateway"]
    own = split([(10, 20, gateway)], 0, 50)
    assert own[gateway] == 10
    assert own[UNATTRIBUTED_INDEX] == 40


def test_an_empty_window_has_no_owner() -> None:
    assert set(split([(0, 100, 3)], 50, 50)) == {0}
