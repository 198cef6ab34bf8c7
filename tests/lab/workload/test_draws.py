"""Draws by counter, judged by numpy's own generator and by what renewal theory says."""

import numpy as np
import pytest

from tailburn.lab.workload import draws
from tailburn.lab.workload.draws import first_wait, gamma_shape, intervals, units, weibull_shape
from tailburn.lab.workload.rates import thinned_cv

KEY = np.uint64(20240517)
N = 200_000
# Two samples of one distribution differ by more with odds of 1 in 1,000 (Smirnov).
SAME = 1.95 * np.sqrt(2 / N)


def _distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    both = np.sort(np.concatenate([ours, theirs]))
    ranks = [np.searchsorted(np.sort(x), both, side="right") / len(x) for x in (ours, theirs)]
    return float(np.abs(ranks[0] - ranks[1]).max())


@pytest.mark.parametrize("shape", [0.04, 0.5, 1.0, 1.7, 30.0])
def test_gamma_intervals_are_those_of_numpy(shape: float) -> None:
    theirs = np.random.default_rng(1).gamma(shape, 1 / shape, N)
    assert _distance(intervals(KEY, N, shape, False), theirs) < SAME


@pytest.mark.parametrize("shape", [0.3, 0.6, 1.0, 2.5])
def test_weibull_intervals_are_those_of_numpy(shape: float) -> None:
    theirs = np.random.default_rng(2).weibull(shape, N)
    ours = intervals(KEY, N, shape, True)
    assert _distance(ours, theirs / theirs.mean() * ours.mean()) < SAME


@pytest.mark.parametrize("cv", [0.3, 1.0, 2.5, 5.0])
def test_shapes_give_the_coefficient_of_variation_asked_for(cv: float) -> None:
    for shape, weibull in ((gamma_shape(cv), False), (weibull_shape(cv), True)):
        drawn = intervals(KEY, 2_000_000, float(shape), weibull)
        # A heavy tail settles slowly: the error of a sample CV grows with the CV.
        assert drawn.std() / drawn.mean() == pytest.approx(cv, rel=0.01 * (1 + cv))
        assert drawn.mean() == pytest.approx(1.0, abs=5 * cv / np.sqrt(2_000_000))


@pytest.mark.parametrize(("cv", "weibull"), [(0.5, False), (3.0, False), (2.0, True)])
def test_first_wait_is_as_long_as_renewal_theory_says(cv: float, weibull: bool) -> None:
    shape = float(weibull_shape(cv) if weibull else gamma_shape(cv))
    keys = [draws.key_of(KEY, np.uint64(i)) for i in range(100_000)]
    waits = np.array([first_wait(np.uint64(k), np.uint64(0), shape, weibull)[0] for k in keys])
    # Mean residual life of a renewal process of mean interval 1.
    assert waits.mean() == pytest.approx((1 + cv**2) / 2, abs=5 * waits.std() / np.sqrt(100_000))


def test_draw_i_is_the_same_wherever_counting_begins() -> None:
    assert units(KEY, 1000, 50).tolist() == units(KEY, 0, 1050)[1000:].tolist()


def test_draws_of_two_keys_have_nothing_to_do_with_each_other() -> None:
    a, b = units(np.uint64(1), 0, N), units(np.uint64(2), 0, N)
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(N)
    assert abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < 5 / np.sqrt(N)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_thinning_leaves_the_burstiness_it_says(share: float) -> None:
    rng = np.random.default_rng(3)
    at = np.cumsum(rng.gamma(1 / 16, 16, 3_000_000))  # CV 4
    kept = np.diff(at[rng.random(len(at)) < share])
    assert kept.std() / kept.mean() == pytest.approx(
        float(thinned_cv(np.array(4.0), share)), rel=0.06
    )
