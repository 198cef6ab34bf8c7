"""Histograms against exact quantiles, and their algebra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tailburn.engine import histogram
from tailburn.engine.names import QUANTILES

F64 = NDArray[np.float64]
RNG = np.random.default_rng(20260101)
N = 200_000
DISTRIBUTIONS = {
    "lognormal": RNG.lognormal(-1.5, 0.8, N),
    "pareto 1.5": 0.02 * (1 + RNG.pareto(1.5, N)).clip(max=40_000),
    "exponential": RNG.exponential(0.3, N).clip(min=1e-4),
    "uniform": RNG.uniform(0.001, 2, N),
    "bimodal with a stall": np.where(RNG.random(N) < 0.99, RNG.normal(0.2, 0.01, N), 30.0),
    "one value": np.full(N, 0.25),
}
inside = st.floats(histogram.LOWEST_S, histogram.HIGHEST_S)
durations = st.lists(inside, min_size=1, max_size=200).map(np.array)


def exact(values: F64, q: float) -> float:
    return float(np.sort(values)[histogram.rank_of(q, len(values)) - 1])


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("q", [0.01, 0.25, *QUANTILES])
def test_a_quantile_is_within_the_promised_error(name: str, q: float) -> None:
    values = DISTRIBUTIONS[name]
    counted = histogram.counts(values)
    found = histogram.quantile(counted, q, float(values.min()), float(values.max()))
    assert found == pytest.approx(exact(values, q), rel=histogram.RELATIVE_ERROR)


@given(durations, st.floats(0, 1))
def test_any_quantile_of_any_durations_is_within_the_promised_error(values: F64, q: float) -> None:
    counted = histogram.counts(values)
    found = histogram.quantile(counted, q, float(values.min()), float(values.max()))
    assert found == pytest.approx(exact(values, q), rel=histogram.RELATIVE_ERROR + 1e-12)


def test_the_promised_error_is_the_one_that_is_printed() -> None:
    assert 0.0108 < histogram.RELATIVE_ERROR < 0.011


@given(durations, durations, durations)
def test_merging_is_free_of_order_and_equal_to_counting_at_once(a: F64, b: F64, c: F64) -> None:
    one, two, three = (histogram.counts(x) for x in (a, b, c))
    before = one.copy()
    together = histogram.counts(np.concatenate([a, b, c]))
    assert np.array_equal(histogram.merge(histogram.merge(one, two), three), together)
    assert np.array_equal(histogram.merge(three, histogram.merge(two, one)), together)
    assert np.array_equal(one, before)


@given(st.lists(inside, min_size=1, max_size=50), st.data())
def test_a_weight_counts_a_duration_that_often(values: list[float], data: st.DataObject) -> None:
    weights = [data.draw(st.integers(1, 5)) for _ in values]
    weighted = histogram.counts(np.array(values), np.array(weights, np.int64))
    assert np.array_equal(weighted, histogram.counts(np.repeat(values, weights)))


@given(inside)
def test_a_duration_lies_within_the_bounds_of_its_bucket(value: float) -> None:
    bucket = int(histogram.bucket_of(np.array([value]))[0])
    upper = float(histogram.UPPER_BOUNDS_S[bucket])
    assert value <= upper * (1 + 1e-14)
    assert value >= upper / 2 ** (1 / 32) * (1 - 1e-14)


def test_the_ends_are_sixty_one_microseconds_and_a_thousand_seconds() -> None:
    bounds = histogram.UPPER_BOUNDS_S
    assert bounds[0] == pytest.approx(2.0**-14 * 2 ** (1 / 32))
    assert bounds[-1] == 1024.0
    assert histogram.bucket_of(np.array([0.0, 1e-9, 2.0**-14])).tolist() == [0, 0, 0]
    assert histogram.bucket_of(np.array([1024.0, 1e300])).tolist() == [767, 767]


def test_powers_of_two_end_their_bucket_as_in_open_telemetry() -> None:
    powers = [2.0**k for k in range(-13, 11)]
    assert histogram.UPPER_BOUNDS_S[histogram.bucket_of(np.array(powers))].tolist() == powers


@pytest.mark.parametrize("values", [[1e-6, 2e-6, 3e-6], [2000.0, 3000.0, 50_000.0]])
def test_beyond_the_ends_the_true_minimum_and_maximum_tell(values: list[float]) -> None:
    counted = histogram.counts(np.array(values))
    middle = histogram.quantile(counted, 0.5, values[0], values[-1])
    assert middle in (values[0], values[-1])
    assert histogram.quantile(counted, 1, values[0], values[-1]) == values[-1]
    assert histogram.quantile(counted, 0, values[0], values[-1]) == values[0]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -1e-9])
def test_what_is_no_duration_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        histogram.bucket_of(np.array([0.1, wrong]))
    with pytest.raises(ValueError, match="finite"):
        histogram.counts(np.array([wrong]))


def test_nothing_counted_has_no_quantile() -> None:
    assert histogram.quantile(np.zeros(histogram.BUCKETS, np.int64), 0.5, 0, 0) is None


@pytest.mark.parametrize("q", [-0.1, 1.1, 95, float("nan")])
def test_a_quantile_outside_0_and_1_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="within 0 and 1"):
        histogram.quantile(histogram.counts(np.array([0.1])), q, 0.1, 0.1)


def test_histograms_of_another_shape_are_not_merged() -> None:
    with pytest.raises(ValueError, match="768"):
        histogram.merge(np.zeros(768, np.int64), np.zeros(160, np.int64))


def test_exposed_bounds_are_finer_than_a_factor_of_one_and_a_half_and_count_exactly() -> None:
    bounds = histogram.exposition_bounds_s(16)
    assert len(bounds) == 48
    assert bounds[-1] == 1024.0
    assert float((bounds[1:] / bounds[:-1]).max()) < 1.5
    values = DISTRIBUTIONS["lognormal"]
    found = histogram.cumulative(histogram.counts(values), 16)
    assert found.tolist() == [int((values <= bound).sum()) for bound in bounds]
