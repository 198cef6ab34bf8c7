"""Faults of links between GPUs: what they move, what they leave, and what tells them apart."""

import numpy as np
import pytest

from tailburn.lab.physics.step import ALLREDUCE, STRAGGLE
from tests.lab.faults.trials import Seen, e, rising, trial_of


def transfer(seen: Seen, percent: float = 50.0) -> float:
    return seen.ms("kv_transfer_start", "kv_transfer_end", percent)


def test_a_hand_off_over_tcp_delays_every_first_token_by_its_prompt() -> None:
    trial = trial_of("S17")
    quiet, medium = trial.quiet, trial.medium
    assert transfer(quiet) < 30 < 10 * transfer(quiet) < transfer(medium)
    grown = medium.ttft(50) - quiet.ttft(50)
    assert (transfer(medium) - transfer(quiet)) / grown > 0.7
    assert 1_000 < grown < 2_000
    assert medium.ttft(5) > 1.2 * quiet.ttft(5), "the fastest too"
    assert medium.tpot(50) / quiet.tpot(50) == pytest.approx(1.0, abs=0.03)
    assert medium.prefill(50) / quiet.prefill(50) == pytest.approx(1.0, abs=0.05)
    a = medium.served
    short = a.prompt_tokens < np.percentile(a.prompt_tokens, 20)
    long = a.prompt_tokens > np.percentile(a.prompt_tokens, 80)
    took = a.kv_transfer_end - a.kv_transfer_start
    assert took[long].min() > 2 * took[short].min()
    held = medium.gauge(e.HELD_COUNT).mean(), quiet.gauge(e.HELD_COUNT).mean()
    assert held[0] > 3 * held[1], "prefill replicas hold the KV meanwhile"
    assert rising(*(seen.ttft(50) for seen in trial.all()))


def test_a_hand_off_is_told_from_a_slow_tier_by_who_waits() -> None:
    handed, tier = trial_of("S17"), trial_of("S16")
    assert np.mean(handed.medium.served.kv_transfer_end >= 0) == 1.0
    assert 0.1 < np.mean(tier.medium.served.kv_load_end >= 0) < 0.95
    assert handed.medium.ttft(10) / handed.quiet.ttft(10) > 1.3, "the luckiest wait as well"
    lucky = [seen.of(seen.attempts.kv_load_end < 0).ttft(50) for seen in (tier.quiet, tier.medium)]
    assert lucky[1] / lucky[0] < 1.1


def test_slow_collectives_slow_prefill_and_decode_of_split_models() -> None:
    trial = trial_of("S18")
    quiet, medium = trial.quiet.main, trial.medium.main
    assert 1.15 < medium.rho / quiet.rho < 1.4
    assert 1.3 < medium.tpot(50) / quiet.tpot(50) < 2.2
    assert 1.3 < medium.prefill(50) / quiet.prefill(50) < 2.0
    assert medium.part(ALLREDUCE) > 2 * quiet.part(ALLREDUCE)
    small, was = trial.medium.on("small-0"), trial.quiet.on("small-0")
    assert small.rho == pytest.approx(was.rho, rel=0.02)
    assert small.tpot(50) == pytest.approx(was.tpot(50), rel=0.03)
    assert trial.medium.offered == trial.quiet.offered
    assert rising(*(seen.main.rho for seen in trial.all()))
    assert rising(*(seen.main.tpot(50) for seen in trial.all()))


def test_slow_collectives_are_told_from_a_straggler_by_who_waits() -> None:
    links, rank = trial_of("S18"), trial_of("S20")
    assert links.medium.main.part(ALLREDUCE) / links.quiet.main.part(ALLREDUCE) > 2
    assert links.medium.main.part(STRAGGLE) == links.quiet.main.part(STRAGGLE) == 0
    assert rank.medium.part(ALLREDUCE) / rank.quiet.part(ALLREDUCE) < 1.3
    assert rank.medium.part(STRAGGLE) > 0
