import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.lab.score.intervals import (
    NOTHING,
    Estimate,
    bootstrap,
    median,
    p90,
    poisson,
    quantile,
    wilson,
)


def test_wilson_s_interval_is_that_of_the_literature() -> None:
    """Newcombe 1998, table I: 81/263 is .2553 to .3662, 0/20 is 0 to .1611."""
    for hits, count, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605),
                                   (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)):  # fmt: skip
        found = wilson(hits, count)
        assert found.low == pytest.approx(low, abs=6e-5)
        assert found.high == pytest.approx(high, abs=6e-5)


def test_poisson_s_interval_is_that_of_the_literature() -> None:
    """Garwood's limits: 0 events 0 to 3.689, 1 is .0253 to 5.572, 10 is 4.795 to 18.390."""
    for events, low, high in ((0, 0.0, 3.6889), (1, 0.0253, 5.5716), (10, 4.7954, 18.3904),
                              (100, 81.3640, 121.6270)):  # fmt: skip
        found = poisson(events, 1.0)
        assert found.low == pytest.approx(low, abs=1e-4)
        assert found.high == pytest.approx(high, abs=1e-3)


def test_poisson_is_per_unit_of_what_was_counted_over() -> None:
    once, twice = poisson(10, 1.0), poisson(10, 2.0)
    assert twice.value == 5.0
    assert twice.high is not None and once.high is not None
    assert twice.high == pytest.approx(once.high / 2)


def test_of_nothing_there_is_no_figure() -> None:
    assert wilson(0, 0) == NOTHING == poisson(0, 0.0) == bootstrap({}, median)


@given(st.integers(0, 60), st.integers(1, 60))
def test_a_share_lies_within_its_interval(hits: int, more: int) -> None:
    found = wilson(hits, hits + more)
    assert found.low is not None and found.value is not None and found.high is not None
    assert 0 <= found.low <= found.value < found.high <= 1


def test_a_poisson_interval_covers_at_least_what_it_says() -> None:
    """Of counts drawn with a mean of 4, the bounds hold 4 at least 95 % of the time."""
    counts = np.random.default_rng(5).poisson(4.0, 2_000)
    bounds = {k: poisson(int(k), 1.0) for k in np.unique(counts)}
    held = [(b.low or 0) <= 4.0 <= (b.high or 0) for b in (bounds[k] for k in counts)]
    assert np.mean(held) >= 0.94


def test_undetected_ones_count_as_infinite() -> None:
    values = np.array([1.0, math.inf, 2.0, math.inf, 3.0])
    assert median(values) == 3.0
    assert p90(values) == math.inf
    assert quantile(np.array([7.0]), 0.9) == 7.0


def test_never_is_written_as_a_word() -> None:
    assert Estimate(math.inf, 1.0, math.inf, 3).to_json() == {
        "value": "never",
        "low": 1.0,
        "high": "never",
        "count": 3,
    }


def test_the_bootstrap_draws_whole_seeds() -> None:
    """Seeds that agree within and differ from each other: an interval as wide as they differ."""
    by_seed = {seed: [float(seed)] * 100 for seed in range(10)}
    found = bootstrap(by_seed, median)
    assert found.low is not None and found.high is not None
    assert found.high - found.low >= 3
    together = bootstrap({0: [float(s) for s in range(10) for _ in range(100)]}, median)
    assert together.low is not None and together.high is not None
    assert together.high - together.low <= 2


def test_the_bootstrap_covers_the_median_it_estimates() -> None:
    draw = np.random.default_rng(1)
    held = 0
    for _ in range(60):
        by = {s: list(draw.lognormal(0, 1, 5)) for s in range(12)}
        found = bootstrap(by, median, resamples=200)
        held += (found.low or 0) <= 1.0 <= (found.high or math.inf)
    assert held >= 50
