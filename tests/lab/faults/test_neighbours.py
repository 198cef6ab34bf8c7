"""Faults of a batch: what they move, what they leave, and what tells them apart."""

import numpy as np
import pytest

from tests.lab.faults.trials import Seen, e, rising, trial_of


def others(seen: Seen) -> Seen:
    """What usual prompts see."""
    return seen.of(seen.attempts.prompt_tokens < 20_000)


def context(seen: Seen) -> float:
    """Tokens of context of a sequence in the batch."""
    used = seen.kv_used * seen.gauge(e.BLOCKS)
    return float(used.sum() * 16 / np.maximum(seen.running, 1).sum())


def test_long_prompts_make_gaps_for_others_and_leave_p50() -> None:
    trial = trial_of("S5")
    quiet, medium = others(trial.quiet), others(trial.medium)
    assert medium.itl_max(99) > 2 * quiet.itl_max(99)
    assert medium.itl_max(99) / quiet.tpot(50) > 10, "of a usual step"
    assert medium.tpot(99) > 2.5 * quiet.tpot(99) and medium.tpot(50) < 1.25 * quiet.tpot(50)
    assert medium.ttft(99) > 3 * quiet.ttft(99) and medium.ttft(50) < 1.25 * quiet.ttft(50)
    own = trial.medium.of(trial.medium.attempts.prompt_tokens >= 60_000)
    assert own.ttft(50) > 3_000
    assert trial.medium.kv_used.max() < 0.8 and trial.medium.count(e.N_PREEMPTIONS) == 0
    assert trial.medium.rho == pytest.approx(trial.quiet.rho, rel=0.02)
    assert trial.medium.step > 1.2 * trial.quiet.step, "its prompts are in some of the steps"
    assert rising(*(others(seen).tpot(99) for seen in trial.all()))


def test_long_prompts_are_told_from_preemption_by_preemptions_and_kv() -> None:
    prompts, preempted = trial_of("S5").medium, trial_of("S13").medium
    assert prompts.count(e.N_PREEMPTIONS) == 0 < preempted.count(e.N_PREEMPTIONS)
    assert prompts.kv_used.max() < 0.8 < 0.98 < preempted.kv_used.max()


def test_a_neighbour_s_context_slows_every_step_as_its_batch_predicts() -> None:
    trial = trial_of("S6", minutes=20)
    quiet, medium = others(trial.quiet), others(trial.medium)
    assert 1.3 < medium.tpot(50) / quiet.tpot(50) < 2.5
    assert medium.tpot(10) / quiet.tpot(10) > 1.15, "all of them, not the unlucky"
    assert medium.ttft(50) < 1.6 * quiet.ttft(50)
    assert trial.medium.count(e.N_PREEMPTIONS) == 0
    assert context(trial.medium) > 3 * context(trial.quiet)
    assert trial.medium.rho == pytest.approx(trial.quiet.rho, rel=0.02)
    assert rising(*(others(seen).tpot(50) for seen in trial.all()))


def test_a_neighbour_is_told_from_slow_memory_by_context_and_steps() -> None:
    neighbour, slow = trial_of("S6", minutes=20), trial_of("S8")
    assert neighbour.medium.rho / neighbour.quiet.rho < 1.02
    assert slow.medium.main.rho / slow.quiet.main.rho > 1.08
    assert context(slow.medium.main) < 1.1 * context(slow.quiet.main)
