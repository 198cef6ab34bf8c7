"""Faults of the KV cache: what they move, what they leave, and what tells them apart."""

import pytest

from tests.lab.faults.trials import Seen, e, queue_share, rising, trial_of


def recomputed(seen: Seen) -> float:
    """Share of the tokens computed that had been computed before."""
    return seen.count(e.RECOMPUTED_TOKENS) / seen.count(e.COMPUTED_TOKENS)


def hits(seen: Seen) -> float:
    """Prompt tokens found, in the GPUs' cache or the tier behind it, over those looked up."""
    found = seen.count(e.PREFIX_HITS) + seen.count(e.TIER_HITS)
    return found / max(seen.count(e.PREFIX_QUERIES), 1.0)


def computed(quiet: Seen, broken: Seen) -> float:
    return broken.count(e.COMPUTED_TOKENS) / quiet.count(e.COMPUTED_TOKENS)


def test_preemption_makes_gaps_and_computes_again() -> None:
    trial = trial_of("S13")
    quiet, medium = trial.quiet, trial.medium
    assert quiet.count(e.N_PREEMPTIONS) == 0 < 100 < medium.count(e.N_PREEMPTIONS)
    assert quiet.kv_used.max() < 0.1 and medium.kv_used.max() >= 0.98
    assert 2 < medium.itl_max(99) / quiet.itl_max(99) < 9
    victims = medium.of(medium.attempts.preemptions > 0)
    assert victims.itl_max(50) > 1.7 * quiet.itl_max(50) and victims.itl_max(95) > 1_000
    assert medium.ttft(99) > 5 * quiet.ttft(99) and medium.tpot(50) < 1.15 * quiet.tpot(50)
    assert recomputed(quiet) == 0 < 0.03 < recomputed(medium)
    assert medium.rho == pytest.approx(quiet.rho, rel=0.02)
    assert rising(*(seen.count(e.N_PREEMPTIONS) for seen in trial.all()))
    assert rising(*(seen.itl_max(99) for seen in trial.all()))


def test_preemption_is_told_from_the_wall_by_who_pays() -> None:
    preempted, wall = trial_of("S13"), trial_of("S14")

    def gaps(quiet: Seen, broken: Seen) -> float:
        return broken.itl_max(99) / quiet.itl_max(99)

    assert gaps(preempted.quiet, preempted.medium) > 2 > 1.2 > gaps(wall.quiet, wall.medium)
    rate = [
        seen.count(e.N_PREEMPTIONS) / len(seen.served) for seen in (preempted.medium, wall.medium)
    ]
    assert rate[0] > 0.1 > 0.01 > rate[1]


def test_the_wall_holds_requests_back_below_the_cap() -> None:
    trial = trial_of("S14")
    quiet, medium = trial.quiet, trial.medium
    assert medium.offered == quiet.offered
    assert medium.ttft(50) > 5 * quiet.ttft(50) and queue_share(quiet, medium) > 0.9
    assert medium.tpot(50) / quiet.tpot(50) < 1.15
    assert medium.kv_used.mean() > 0.9 > 0.1 > quiet.kv_used.max()
    assert medium.capped_share < 0.1
    assert medium.count(e.N_PREEMPTIONS) < 0.01 * len(medium.served)
    assert medium.rho == pytest.approx(quiet.rho, rel=0.02)
    assert rising(*(seen.ttft(50) for seen in trial.all()))


def test_the_wall_is_told_from_a_surge_by_the_cap_and_kv() -> None:
    wall, surge = trial_of("S14").medium, trial_of("S1").medium
    assert wall.capped_share < 0.1 < 0.9 < surge.capped_share
    assert surge.kv_used.max() < 0.1 < 0.9 < wall.kv_used.mean()


def test_an_evicted_cache_computes_what_was_found() -> None:
    trial = trial_of("S15")
    quiet, medium = trial.quiet, trial.medium
    assert medium.offered == quiet.offered
    assert hits(quiet) == pytest.approx(0.37, abs=0.03)
    assert hits(medium) == pytest.approx(0.10, abs=0.03)
    assert 1.4 < computed(quiet, medium) < 1.6
    assert 1.3 < medium.ttft(50) / quiet.ttft(50) < 1.8
    assert 1.05 < medium.tpot(50) / quiet.tpot(50) < 1.5
    assert medium.rho == pytest.approx(quiet.rho, rel=0.02)

    def first_turns(seen: Seen) -> Seen:
        return seen.of(seen.attempts.prefix_tokens < 0.1 * seen.attempts.prompt_tokens)

    assert len(first_turns(quiet).served) > 1_000
    assert first_turns(medium).prefill(50) / first_turns(quiet).prefill(50) < 1.2
    assert rising(*(-hits(seen) for seen in trial.all()))
    assert rising(*(seen.prefill(50) for seen in trial.all()))


def test_an_evicted_cache_is_told_from_a_surge_by_what_is_offered() -> None:
    evicted, surge = trial_of("S15"), trial_of("S1")
    assert evicted.medium.offered / evicted.quiet.offered == 1.0
    assert surge.medium.offered / surge.quiet.offered > 1.5
    assert evicted.medium.queue(50) == 0.0 < 1_000 < surge.medium.queue(50)


def test_a_slow_tier_is_waited_for_by_those_with_a_hit() -> None:
    trial = trial_of("S16")
    quiet, medium = trial.quiet, trial.medium

    def with_hit(seen: Seen, yes: bool) -> Seen:
        return seen.of((seen.attempts.kv_load_end >= 0) == yes)

    def load(seen: Seen) -> float:
        return seen.ms("kv_load_start", "kv_load_end")

    assert load(medium) > 3 * load(quiet)
    assert with_hit(medium, True).ttft(50) > 1.3 * with_hit(quiet, True).ttft(50)
    assert with_hit(medium, False).ttft(50) < 1.1 * with_hit(quiet, False).ttft(50)
    assert medium.tpot(50) / quiet.tpot(50) == pytest.approx(1.0, abs=0.05)
    assert hits(medium) == pytest.approx(hits(quiet), rel=0.05)
    assert medium.kv_used.max() < 0.5
    assert medium.gauge(e.BLOCKED_COUNT).mean() > 2 * quiet.gauge(e.BLOCKED_COUNT).mean()
    assert rising(*(load(seen) for seen in trial.all()))


def test_a_slow_tier_is_told_from_an_evicted_cache_by_its_hits() -> None:
    slow, evicted = trial_of("S16"), trial_of("S15")
    assert hits(slow.medium) / hits(slow.quiet) > 0.95
    assert hits(evicted.medium) / hits(evicted.quiet) < 0.4
    assert computed(slow.quiet, slow.medium) < 1.02 < 1.1 < computed(evicted.quiet, evicted.medium)
