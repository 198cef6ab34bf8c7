"""The exact test of two shares, against the sum over every outcome in whole numbers."""

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.proportions import chance_of_more

sides = st.integers(0, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(sides, sides)
def test_it_is_the_sum_over_all_outcomes_as_extreme(
    side: tuple[int, int], other: tuple[int, int]
) -> None:
    (hits, count), (other_hits, other_count) = side, other
    all_hits, total = hits + other_hits, count + other_count
    ways = sum(
        comb(all_hits, k) * comb(total - all_hits, count - k)
        for k in range(hits, min(count, all_hits) + 1)
        if count - k <= total - all_hits
    )
    exact = float(Fraction(ways, comb(total, count)))
    assert chance_of_more(hits, count, other_hits, other_count) == pytest.approx(exact, abs=1e-12)


def test_the_tea_tasting_lady() -> None:
    assert chance_of_more(3, 4, 1, 4) == pytest.approx(17 / 70)


def test_millions_are_counted_too() -> None:
    assert chance_of_more(500_000, 1_000_000, 500_000, 1_000_000) == pytest.approx(0.5, abs=1e-3)
    assert chance_of_more(600_000, 1_000_000, 500_000, 1_000_000) == 0.0
    assert chance_of_more(400_000, 1_000_000, 500_000, 1_000_000) == pytest.approx(1.0)


@pytest.mark.parametrize("given", [(5, 4, 0, 4), (-1, 4, 0, 4), (0, 4, 5, 4)])
def test_hits_beyond_their_count_are_refused(given: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="within counts"):
        chance_of_more(*given)
