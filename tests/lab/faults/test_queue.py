"""Faults of the queue: what they move, and what they leave."""

import numpy as np

from tests.lab.faults.trials import rising, trial_of


def test_a_surge_fills_the_batch_and_the_rest_waits() -> None:
    trial = trial_of("S1")
    quiet, medium = trial.quiet, trial.medium
    assert medium.offered > 1.25 * quiet.offered
    assert medium.ttft(50) > 50 * quiet.ttft(50) and medium.ttft(99) > 20 * quiet.ttft(99)
    waits = medium.between("queued", "scheduled").mean()
    assert waits / (medium.between("engine_in", "engine_first").mean() - quiet.ttft(50)) > 0.9
    short = medium.of(medium.attempts.prompt_tokens < np.median(quiet.attempts.prompt_tokens))
    assert 0.8 < short.ttft(50) / medium.ttft(50) < 1.25, "all lengths wait alike"
    assert 1.0 < medium.tpot(50) / quiet.tpot(50) < 1.35
    assert medium.running.max() == trial.fleet.pools[0].scheduler.max_num_seqs
    assert medium.capped_share > 0.9
    assert medium.kv_used.max() < 0.9
    assert abs(medium.rho / quiet.rho - 1.0) < 0.03
    assert rising(*(seen.ttft(50) for seen in trial.all()))


def test_a_surge_is_told_from_a_slow_memory_by_its_steps_and_what_is_offered() -> None:
    surge, slow = trial_of("S1"), trial_of("S8")
    assert surge.medium.offered / surge.quiet.offered > 1.25
    assert abs(slow.medium.offered / slow.quiet.offered - 1.0) < 0.02
    assert surge.medium.rho / surge.quiet.rho < 1.03
    assert slow.medium.rho / slow.quiet.rho > 1.08
