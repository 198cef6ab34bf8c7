"""Controls: what they move, and that the fleet stays within its SLOs."""

from functools import cache

import numpy as np
import pytest

from tailburn.lab.faults.catalogue import scenario
from tailburn.lab.faults.controls import week_level
from tailburn.lab.faults.scenario import Fault, Severity
from tailburn.lab.faults.telemetry import KINDS
from tailburn.lab.run import Motion, Plan, Traffic
from tailburn.lab.world import layout as w
from tests.lab.faults.trials import BUSY_S, MINUTE, Seen, rising, seen_of, trial_of, warm

HOUR = 60 * MINUTE
SUNDAY_NOON_S = (6 * 24 + 12) * 3_600
MOST_TTFT_MS, MOST_TPOT_MS, MOST_FAILED = 2_000.0, 100.0, 0.01
"""At p99, which a fleet as healthy as these keeps by a wide margin."""


def _keeps_its_slos(seen: Seen) -> bool:
    return (
        seen.streamed.ms("client_start", "client_first", 99) < MOST_TTFT_MS
        and seen.tpot(99) < MOST_TPOT_MS
        and float(np.mean(seen.attempts.outcome != 0)) < MOST_FAILED
    )


@pytest.mark.parametrize(("name", "minutes"), [("N2", 10), ("N3", 10), ("N5", 20), ("N6", 10)])
def test_a_control_keeps_the_slos_of_a_busy_noon(name: str, minutes: int) -> None:
    trial = trial_of(name, minutes=minutes)
    assert not trial.medium.fault.truth.pages  # type: ignore[union-attr]
    assert all(_keeps_its_slos(seen) for seen in trial.all())


def test_the_measure_of_slos_tells_a_fault() -> None:
    assert not _keeps_its_slos(trial_of("S28").strong)


def _fault(name: str, start: int, end: int, severity: Severity = Severity.STRONG) -> Fault:
    one = scenario(name)
    return one.fault(one.fleet(10.0), severity, start, end, seed=1)


@pytest.mark.parametrize("hour", [0, 11, 36, 60, 130, 148, 160])
def test_a_monday_never_leaves_the_range_of_a_week_whenever_it_comes(hour: int) -> None:
    highest = max(week_level(h * HOUR) for h in range(24))
    fault = _fault("N1", hour * HOUR, (hour + 4) * HOUR)
    levels = [c.value * week_level(c.start_ns) for c in fault.changes]
    assert max(levels) == pytest.approx(highest, rel=1e-6)
    assert min(levels) >= 0.9 * week_level(3 * HOUR)
    assert levels[0] < 0.75 * highest
    for change in fault.changes:
        assert max(change.value * week_level(change.end_ns - 1), 0.0) <= 1.6 * highest


@cache
def _from_monday(name: str, severity: Severity | None, minutes: int = 30, start_s: int = 0) -> Seen:
    """Minutes from 00:10 of the first Monday on, where controls know which hour it is."""
    one = scenario(name)
    before = warm(Plan(one.fleet(10.0), (Traffic(one.profile(), 10.0),), 5, start_s))
    start = 10 * MINUTE
    faults: tuple[Fault, ...] = ()
    if severity:
        faults = (one.fault(before.plan.fleet, severity, start, start + minutes * MINUTE, 1),)
    return seen_of(Motion.of(before, faults), minutes)


def test_a_monday_raises_load_and_delay_and_keeps_its_slos() -> None:
    sunday = _from_monday("N1", None, 60, SUNDAY_NOON_S)
    seen = [sunday, *(_from_monday("N1", severity, 60) for severity in Severity)]
    strong = seen[-1]
    assert rising(*(s.offered for s in seen))
    assert rising(*(s.tpot(50) for s in seen)) and rising(*(s.ttft(99) for s in seen))
    assert 1.25 < strong.ttft(99) / sunday.ttft(99) < 4.0
    assert 1.3 < strong.tpot(99) / sunday.tpot(99) < 4.0
    assert strong.queue(90) < 50.0
    assert all(_keeps_its_slos(s) for s in seen)


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_monday_keeps_its_slos_through_the_waves_of_its_traffic(seed: int) -> None:
    """From a busy noon on, as in the bench of truth; a minute brings up to 2.5 times the mean."""
    one = scenario("N1")
    before = warm(Plan(one.fleet(10.0), (Traffic(one.profile(), 10.0),), seed, BUSY_S))
    start = 10 * MINUTE
    fault = one.fault(before.plan.fleet, Severity.STRONG, start, start + 45 * MINUTE, 1)
    seen = seen_of(Motion.of(before, (fault,)), 45)
    assert _keeps_its_slos(seen)
    minutes = (seen.attempts.arrival_ns - start) // MINUTE
    assert np.bincount(minutes).max() > 2.4 * 600


def test_a_surge_leaves_the_range_that_a_monday_stays_in() -> None:
    surge = trial_of("S1")
    assert surge.medium.offered > 1.2 * surge.quiet.offered
    assert surge.medium.queue(50) > 100.0 > _from_monday("N1", Severity.STRONG).queue(95)


def _alike(seen: Seen) -> float:
    """Ms to prefill prompts of much the same uncached tokens."""
    tokens = seen.attempts.prompt_tokens - seen.attempts.cached_tokens
    return seen.of(tokens // 500 == 3).prefill(25)


def test_longer_prompts_prefill_as_their_tokens_predict() -> None:
    trial = trial_of("N2")
    quiet, medium = trial.quiet, trial.medium
    assert rising(*(float(s.attempts.prompt_tokens.mean()) for s in trial.all()))
    assert rising(*(s.prefill(50) for s in trial.all()))
    assert medium.rho == pytest.approx(1.0, abs=0.06)
    assert _alike(medium) == pytest.approx(_alike(quiet), rel=0.12)
    assert len(medium.attempts) == pytest.approx(len(quiet.attempts), rel=0.02)


def test_longer_prompts_are_told_from_a_throttled_clock_by_what_the_same_tokens_take() -> None:
    longer, throttled = trial_of("N2"), trial_of("S7")
    assert _alike(longer.medium) < 1.12 * _alike(longer.quiet)
    assert _alike(throttled.medium) > 1.2 * _alike(throttled.quiet)
    means = [
        t.medium.attempts.prompt_tokens.mean() / t.quiet.attempts.prompt_tokens.mean()
        for t in (longer, throttled)
    ]
    assert means[0] > 1.5 and means[1] == pytest.approx(1.0, abs=0.01)


def test_longer_answers_fill_batches_and_leave_first_tokens() -> None:
    trial = trial_of("N3")
    quiet, medium = trial.quiet, trial.medium
    assert rising(*(float(s.running.mean()) for s in trial.all()))
    assert medium.running.mean() > 2.0 * quiet.running.mean()
    assert medium.ttft(50) < 1.15 * quiet.ttft(50)
    assert rising(*(s.tpot(50) for s in trial.all()))
    assert medium.rho == pytest.approx(1.0, abs=0.06)


def _of_tenants(seen: Seen) -> dict[int, float]:
    """Mean tokens of an answer, of tenants that ask often."""
    a = seen.served
    means = {t: a.output_done[a.tenant == t] for t in np.unique(a.tenant).tolist()}
    return {t: float(of.mean()) for t, of in means.items() if len(of) >= 100}


def test_longer_answers_are_everybody_s_and_a_neighbour_s_contexts_are_one_tenant_s() -> None:
    longer, neighbour = trial_of("N3"), trial_of("S6", minutes=20)
    for trial, grown in ((longer, True), (neighbour, False)):
        before, after = _of_tenants(trial.quiet), _of_tenants(trial.medium)
        assert len(before) > 3 and before.keys() <= after.keys()
        growth = [after[tenant] / before[tenant] for tenant in before]
        assert min(growth) > 1.5 if grown else max(growth) < 1.1
    contexts = [
        len(np.unique(s.attempts.tenant[s.attempts.prompt_tokens >= 30_000]))
        for s in (longer.medium, neighbour.quiet, neighbour.medium)
    ]
    assert contexts == [contexts[0], contexts[1], contexts[1] + 1]


def test_a_night_s_tail_jumps_with_nothing_wrong() -> None:
    seen = _from_monday("N4", Severity.MEDIUM, minutes=60)
    a = seen.attempts
    assert len(a) / 3_600 == pytest.approx(0.5, rel=0.2)
    window = (a.arrival_ns - 10 * MINUTE) // (5 * MINUTE)
    counts, tails = [], []
    for number in range(12):
        of = seen.of((window == number) & (a.streamed == 1))
        counts.append(len(of.attempts))
        tails.append(of.ms("client_start", "client_first", 99))
    assert min(counts) > 20 and max(counts) < 300
    assert max(tails) > 1.5 * min(tails)
    assert seen.queue(99) < 100.0 and seen.tpot(99) < 15.0
    rates = [len(_from_monday("N4", s).attempts) for s in (Severity.WEAK, Severity.STRONG)]
    assert rates[0] > 3 * rates[1]


def test_a_night_s_slowest_are_its_longest_prompts_and_slow_retrieval_s_are_not() -> None:
    night, store = _from_monday("N4", Severity.MEDIUM, minutes=60), trial_of("S31").medium

    def slowest(seen: Seen) -> float:
        """Uncached tokens of the slowest twentieth over those of all, in the median."""
        a = seen.streamed.served
        took = a.client_first - a.client_start
        tokens = a.prompt_tokens - a.cached_tokens
        return float(np.median(tokens[took >= np.percentile(took, 95)]) / np.median(tokens))

    assert slowest(night) > 3.0 > 2.0 > slowest(store)
    stores = [s.ms("retrieval_start", "retrieval_end", 99) for s in (trial_of("S31").quiet, store)]
    assert stores[1] > 3.5 * stores[0]
    assert night.ms("retrieval_start", "retrieval_end", 99) < 1.3 * stores[0]


def test_a_warm_rolling_restart_dips_the_hit_rate_and_fails_nothing() -> None:
    trial = trial_of("N5", minutes=20)
    quiet, medium = trial.quiet, trial.medium
    restarted = medium.fault.truth.affected["replica"]  # type: ignore[union-attr]
    assert set(restarted) == {r.name for r in trial.fleet.replicas}

    def hits(seen: Seen, after_s: float, until_s: float) -> float:
        """Share of prompt tokens found on the first replica, some seconds after it serves."""
        a = seen.on(restarted[0]).told
        since = (a.arrival_ns - 10 * MINUTE) / 1e9 - 65.0
        of = a.take((since >= after_s) & (since < until_s))
        return float(of.cached_tokens.sum() / of.prompt_tokens.sum())

    assert hits(medium, 0.0, 60.0) < 0.7 * hits(quiet, 0.0, 60.0)
    assert hits(medium, 600.0, 1_100.0) > 0.7 * hits(quiet, 600.0, 1_100.0)
    assert np.mean(medium.attempts.outcome != 0) <= np.mean(quiet.attempts.outcome != 0) + 0.001
    assert medium.ttft(99) < 1.5 * quiet.ttft(99)


def test_cold_weights_keep_replicas_away_longer_than_warm_ones() -> None:
    cold, warm = trial_of("S35", minutes=20), trial_of("N5", minutes=20)
    away = [np.mean(_up(t.medium) < 4) for t in (cold, warm)]
    assert away[0] > 3.0 * away[1] > 0.0


def _up(seen: Seen) -> np.ndarray:
    return np.asarray(np.sum(seen.samples.replicas[:, :, w.R_STATE] == w.UP, axis=1))


def test_spoilt_telemetry_leaves_the_fleet_as_it_was() -> None:
    trial = trial_of("N6")
    assert trial.medium.fault.settings == () == trial.medium.fault.changes  # type: ignore[union-attr]
    for name, column in trial.quiet.attempts.arrays().items():
        np.testing.assert_array_equal(column, trial.medium.attempts.arrays()[name])
    kinds = {f.kind for f in trial.medium.fault.telemetry}  # type: ignore[union-attr]
    assert kinds == set(KINDS)
