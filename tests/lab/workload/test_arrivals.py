"""Rates and burstiness come back as asked; every window is cut from one stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.lab.records import Requests
from tailburn.lab.workload import FIGURES, Change, Workload, named
from tailburn.lab.workload.arrive import arrive
from tailburn.lab.workload.clients import concentrated
from tailburn.lab.workload.rates import ShapedRates, shapes_of
from tailburn.lab.workload.shapes import WeekShape, slow_noise

BLOCK_NS = 600 * 10**9
HOUR = 60
DAY = 24 * HOUR


def _same(a: Requests, b: Requests) -> None:
    for name, column in a.arrays().items():
        assert np.array_equal(column, getattr(b, name)), name


def _counts(seed: int, cv: float, weibull: bool, per_s: float, blocks: int) -> np.ndarray:
    """Arrivals of one client in each of some blocks."""
    rate, family = np.array([[per_s]]), np.array([weibull])
    shape = shapes_of(np.array([cv]), family)
    edges = np.array([0, BLOCK_NS])
    made = [arrive(np.uint64(seed), b, edges, rate, shape, family) for b in range(blocks)]
    return np.array([len(at) for _, at in made])


@pytest.mark.parametrize("weibull", [False, True])
@pytest.mark.parametrize(("per_s", "cv"), [(0.002, 1.0), (0.05, 4.0), (5.0, 0.6), (20.0, 3.0)])
def test_rate_comes_back_within_five_standard_errors(
    per_s: float, cv: float, weibull: bool
) -> None:
    counts = _counts(7, cv, weibull, per_s, 800)
    error = counts.std() / np.sqrt(len(counts))
    assert counts.mean() == pytest.approx(600 * per_s, abs=5 * error)


@pytest.mark.parametrize(("cv", "weibull"), [(0.6, False), (1.0, False), (3.0, False), (2.0, True)])
def test_dispersion_of_counts_tends_to_the_square_of_the_cv(cv: float, weibull: bool) -> None:
    counts = _counts(11, cv, weibull, 20.0, 1500)
    # 1,500 blocks: the error of a variance is sqrt(2 / 1500) = 3.7 %, five of them.
    assert counts.var() / counts.mean() == pytest.approx(cv**2, rel=0.2)


@pytest.mark.parametrize("cv", [0.5, 2.0, 5.0])
def test_intervals_within_a_block_have_the_cv_asked_for(cv: float) -> None:
    shape = shapes_of(np.array([cv]), np.array([False]))
    edges = np.array([0, 200 * BLOCK_NS])
    _, at = arrive(np.uint64(3), 0, edges, np.array([[10.0]]), shape, np.array([False]))
    gaps = np.diff(at)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03)


def test_arrivals_stay_inside_segments_that_have_a_rate() -> None:
    edges = np.array([0, 100, 200, 300]) * 10**9
    rate = np.array([[0.0, 5.0, 0.0], [1.0, 0.0, 9.0]])
    first, at = arrive(np.uint64(1), 4, edges, rate, np.ones(2), np.zeros(2, bool))
    mine, theirs = at[: first[1]] / 1e9, at[first[1] :] / 1e9
    assert mine.min() >= 100 and mine.max() < 200
    assert len(theirs) == first[2] - first[1] > 500
    assert not ((theirs >= 100) & (theirs < 200)).any()
    assert (np.diff(mine) >= 0).all() and (np.diff(theirs) >= 0).all()


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_week_mean_is_the_rate_asked_for(name: str) -> None:
    profile = named(name)
    mean = np.mean(
        [profile.rates.at(np.uint64(5), b).per_s.sum(axis=0).mean() for b in range(1008)]
    )
    # Noise of a week is noise: a day's level moves by up to .25, seven days average it.
    assert mean == pytest.approx(profile.per_s, rel=0.02 if "azure" in name else 0.35)


def test_counts_of_coding_traffic_are_as_dispersed_as_azures() -> None:
    r = Workload(named("azure-code"), seed=2, start_s=2 * 86_400 + 18 * 3600).window(0, 3 * HOUR)
    t = r.arrival_ns / 1e9
    for width, measured in ((1, 13), (10, 72), (60, 164), (300, 138)):
        counts = np.bincount((t // width).astype(int), minlength=10_800 // width)
        # At another hour of another week, so within a factor of 2.5 of the hour measured.
        assert 1 / 2.5 < counts.var() / counts.mean() / measured * 2.57 / (len(t) / 10_800) < 2.5


def test_counts_of_conversations_are_near_poisson_within_a_second_only() -> None:
    r = Workload(named("azure-conv"), seed=2, start_s=2 * 86_400 + 18 * 3600).window(0, 3 * HOUR)
    t = r.arrival_ns / 1e9
    counts = {w: np.bincount((t // w).astype(int), minlength=10_800 // w) for w in (1, 300)}
    assert counts[1].var() / counts[1].mean() < 2
    assert counts[300].var() / counts[300].mean() > 20


def test_mondays_and_weekends_are_those_of_azure() -> None:
    r = Workload(named("azure-conv"), seed=4).window(0, 8 * DAY)
    day = np.bincount(r.arrival_ns // (86_400 * 10**9), minlength=8)
    assert day[7] / day[6] == pytest.approx(1.90, rel=0.15)  # Monday after Sunday
    assert day[5:7].mean() / day[:5].mean() == pytest.approx(0.57, rel=0.1)


def test_start_moves_the_week_and_not_the_clock() -> None:
    monday = Workload(named("azure-code"), seed=4).window(0, DAY)
    sunday = Workload(named("azure-code"), seed=4, start_s=6 * 86_400).window(0, DAY)
    assert len(sunday) < 0.6 * len(monday)
    assert 0 <= sunday.arrival_ns[0] < sunday.arrival_ns[-1] < 86_400 * 10**9


@pytest.mark.parametrize(("clients", "top", "carry"), [(162, 0.16, 39), (43, 0.299, 9)])
def test_traffic_is_concentrated_as_asked(clients: int, top: float, carry: int) -> None:
    share = concentrated(clients, top, carry)
    assert share.sum() == pytest.approx(1.0)
    assert share.max() == pytest.approx(top, rel=0.01)
    assert np.searchsorted(np.cumsum(share), 0.9) + 1 == pytest.approx(carry, abs=1)


@settings(max_examples=12)
@given(
    name=st.sampled_from(sorted(FIGURES)),
    seed=st.integers(0, 2**63 - 1),
    first=st.integers(0, 90),
    cut=st.integers(1, 39),
)
def test_windows_joined_are_one_long_window(name: str, seed: int, first: int, cut: int) -> None:
    def workload() -> Workload:
        return Workload(named(name), seed, per_s=4.0)

    whole = workload().window(0, first + 40).take(slice(None))
    whole = whole.take(whole.arrival_ns >= first * 60 * 10**9)
    parts = [workload().window(first, first + cut), workload().window(first + cut, first + 40)]
    _same(whole, Requests.join(parts))


def test_one_workload_can_be_read_at_many_places_at_once() -> None:
    workload = Workload(named("azure-conv"), seed=1, per_s=20.0)
    early, late = workload.minutes(0, 40), workload.minutes(20, 60)
    mixed = [(next(early), next(late)) for _ in range(40)]
    fresh = Workload(named("azure-conv"), seed=1, per_s=20.0).window(0, 60)
    _same(Requests.join([a for a, _ in mixed] + [b for _, b in mixed[20:]]), fresh)


def test_other_seeds_give_other_requests() -> None:
    a, b = (Workload(named("azure-conv"), seed=s).window(0, 10) for s in (1, 2))
    assert not np.intersect1d(a.arrival_ns, b.arrival_ns).size


def test_a_change_leaves_what_was_before_it_and_who_is_out_of_scope() -> None:
    start = 25 * 60 * 10**9
    surge = Change("arrival_factor", 3.0, start, 50 * 60 * 10**9, "tenant:tenant-0")
    quiet = Workload(named("azure-conv"), seed=9, per_s=30.0).window(0, 60)
    loud = Workload(named("azure-conv"), seed=9, per_s=30.0, changes=[surge]).window(0, 60)
    _same(quiet.take(quiet.arrival_ns < start), loud.take(loud.arrival_ns < start))
    _same(quiet.take(quiet.tenant != 0), loud.take(loud.tenant != 0))
    assert (loud.tenant == 0).sum() > 1.5 * (quiet.tenant == 0).sum()


def test_each_of_many_segments_has_its_own_rate() -> None:
    edges = np.arange(301) * 2 * 10**9
    rate = np.tile([3.0, 40.0, 0.0], 100)[None, :]
    counts = np.zeros(300)
    for block in range(60):
        _, at = arrive(np.uint64(8), block, edges, rate, np.ones(1), np.zeros(1, bool))
        counts += np.bincount(at // (2 * 10**9), minlength=300)
    # Poisson: 60 blocks x 100 segments x 2 s of each rate; and of the last tenth alone.
    for part in (slice(0, 300), slice(270, 300)):
        segments = len(counts[part][0::3])
        for first, per_s in ((0, 3.0), (1, 40.0)):
            want = 60 * segments * 2 * per_s
            assert counts[part][first::3].sum() == pytest.approx(want, abs=4 * np.sqrt(want))
    assert not counts[2::3].any()


def test_slow_noise_is_standard_normal_and_slow() -> None:
    at_s = np.arange(0.0, 2_000_000.0, 10.0)
    noise = slow_noise(np.uint64(3), 7, 4, at_s, 1000.0)
    # 2,000 knots a client: five standard errors of mean and variance.
    assert noise.mean(axis=1) == pytest.approx(0, abs=0.12)
    assert noise.var(axis=1) == pytest.approx(1, abs=0.17)
    # In a hundredth of the period it moves little, in two periods it forgets all.
    assert np.abs(np.diff(noise, axis=1)).max() < 0.15
    later = [np.corrcoef(row[:-200], row[200:])[0, 1] for row in noise]
    assert later == pytest.approx([0] * 4, abs=0.15)
    assert np.corrcoef(noise) == pytest.approx(np.eye(4), abs=0.15)


def test_clients_that_come_and_go_ask_as_much_in_the_long_run() -> None:
    share = np.repeat([0.07, 0.3, 1.0], 100)
    one = np.ones(300)
    rates = ShapedRates(one, one, one < 0, WeekShape.flat(), share)
    # Every 6 h, twice the period of coming and going, so that each look is a new one.
    seen = np.array([rates.at(np.uint64(2), 36 * i).per_s[:, 0] for i in range(400)])
    there = (seen > 0).mean(axis=0).reshape(3, 100).mean(axis=1)
    assert there == pytest.approx([0.07, 0.3, 1.0], rel=0.1)
    assert seen.mean(axis=0).reshape(3, 100).mean(axis=1) == pytest.approx(1.0, rel=0.1)
