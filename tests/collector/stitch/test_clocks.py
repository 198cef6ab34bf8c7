"""Offsets between clocks: bounds of many calls, intersected."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tailburn.collector.stitch.clocks import (
    UNKNOWN_WIDTH_NS,
    WINDOW_NS,
    OffsetPool,
    observe,
    offset_of,
)

CALLER, SERVER = 3, 4
MS = 1_000_000


def pooled(bounds: list[tuple[int, int]], at_ns: list[int] | None = None) -> tuple[int, int]:
    """(offset, half width) after the given (low, high) bounds."""
    pool = OffsetPool()
    for i, (low, high) in enumerate(bounds):
        observe(*pool.arrays(), CALLER, SERVER, low, high, at_ns[i] if at_ns else i)
    return offset_of(*pool.arrays(), CALLER, SERVER, 0)


def test_a_pair_never_seen_has_no_width() -> None:
    assert offset_of(*OffsetPool().arrays(), CALLER, SERVER, 0) == (0, UNKNOWN_WIDTH_NS)


def test_a_pair_not_seen_lately_has_no_width() -> None:
    pool = OffsetPool()
    observe(*pool.arrays(), CALLER, SERVER, 240 * MS, 260 * MS, 0)
    assert offset_of(*pool.arrays(), CALLER, SERVER, WINDOW_NS) == (250 * MS, 10 * MS)
    assert offset_of(*pool.arrays(), CALLER, SERVER, WINDOW_NS + 1) == (0, UNKNOWN_WIDTH_NS)


def test_no_correction_where_equal_clocks_are_possible() -> None:
    assert pooled([(-4 * MS, 2 * MS)]) == (0, 3 * MS)


def test_an_offset_is_the_middle_of_what_is_possible() -> None:
    assert pooled([(240 * MS, 260 * MS)]) == (250 * MS, 10 * MS)


@given(
    st.integers(-500 * MS, 500 * MS),
    st.lists(st.tuples(st.integers(1, 50 * MS), st.integers(1, 50 * MS)), min_size=1, max_size=19),
)
def test_the_true_offset_lies_within_the_half_width(
    true_ns: int, delays: list[tuple[int, int]]
) -> None:
    offset, half = pooled([(true_ns - back, true_ns + out) for out, back in delays])
    assert abs(offset - true_ns) <= max(2 * half, half + abs(offset)) + 1
    narrowest = min(out for out, _ in delays) + min(back for _, back in delays)
    assert half == narrowest // 2


@given(st.lists(st.tuples(st.integers(-90, -1), st.integers(1, 90)), min_size=1, max_size=60))
def test_more_calls_never_make_the_error_larger(bounds: list[tuple[int, int]]) -> None:
    bounds = bounds[:19]
    widths = [pooled(bounds[: n + 1])[1] for n in range(len(bounds))]
    assert widths == sorted(widths, reverse=True)


def test_a_few_wrong_bounds_among_many_change_little() -> None:
    sound = [(-5 * MS, 5 * MS)] * 99
    assert pooled([*sound, (400 * MS, 500 * MS)])[0] == 0


def test_bounds_older_than_the_window_do_not_count() -> None:
    before, after = (240 * MS, 260 * MS), (-10 * MS, 10 * MS)
    assert pooled([before, after], [0, WINDOW_NS + 1]) == (0, 10 * MS)


def test_a_restored_pool_answers_as_the_one_it_came_from() -> None:
    pool = OffsetPool()
    for server in range(40):
        observe(*pool.arrays(), CALLER, server + 10, server * MS, server * MS + 10, server)
    restored = OffsetPool()
    restored.restore({k: np.array(v) for k, v in pool.state().items()})
    for server in range(40):
        pair = CALLER, server + 10
        assert offset_of(*restored.arrays(), *pair, 0) == offset_of(*pool.arrays(), *pair, 0)
