"""Faults of an engine's pace: what they move, what they leave, and what tells them apart."""

import pytest

from tests.lab.faults.trials import Seen, e, rising, trial_of


def a_step(seen: Seen) -> float:
    """Tokens that a sequence gains in a step."""
    a = seen.served
    return float((a.output_done - 1).sum() / a.decode_steps.sum())


def test_a_slow_memory_slows_decode_at_all_batches_and_hardly_prefill() -> None:
    trial = trial_of("S8")
    quiet, medium = trial.quiet.main, trial.medium.main
    assert 1.06 < medium.tpot(50) / quiet.tpot(50) < 1.25
    assert 1.08 < medium.rho / quiet.rho < 1.2
    assert medium.ttft(95) / quiet.ttft(95) < 1.1
    assert medium.queue(99) - quiet.queue(99) < 10.0
    small, was = trial.medium.on("small-0"), trial.quiet.on("small-0")
    assert small.rho / was.rho > 1.08, "a model on one GPU slows down as well"
    assert rising(*(seen.main.rho for seen in trial.all()))
    assert rising(*(seen.main.tpot(50) for seen in trial.all()))


def test_a_slow_memory_is_told_from_slow_collectives_by_a_model_on_one_gpu() -> None:
    memory, collectives = trial_of("S8"), trial_of("S18")
    assert memory.medium.on("small-0").rho > 1.08
    assert collectives.medium.on("small-0").rho < 1.02
    assert memory.medium.main.rho > 1.08 and collectives.medium.main.rho > 1.15


def test_a_low_clock_slows_prefill_and_hardly_steps_that_only_decode() -> None:
    trial = trial_of("S7")
    quiet, medium = trial.quiet, trial.medium
    assert 1.2 < medium.prefill(50) / quiet.prefill(50) < 1.5
    assert 1.2 < medium.ttft(50) / quiet.ttft(50) < 1.5
    assert 1.02 < medium.rho / quiet.rho < 1.1
    assert medium.tpot(50) / quiet.tpot(50) < 1.35
    assert medium.offered == quiet.offered
    assert medium.queue(50) == 0.0
    assert rising(*(seen.prefill(50) for seen in trial.all()))


def test_a_low_clock_is_told_from_slow_memory_by_what_slows_more() -> None:
    clock, memory = trial_of("S7"), trial_of("S8")

    def leans(quiet: Seen, broken: Seen) -> float:
        return broken.prefill(50) / quiet.prefill(50) - broken.rho / quiet.rho

    assert leans(clock.quiet, clock.medium) > 0.1
    assert leans(memory.quiet.main, memory.medium.main) < -0.02


def test_a_low_clock_is_told_from_an_evicted_cache_by_what_is_computed() -> None:
    clock, evicted = trial_of("S7"), trial_of("S15")
    assert clock.medium.count(e.COMPUTED_TOKENS) / clock.quiet.count(e.COMPUTED_TOKENS) < 1.02
    assert evicted.medium.count(e.COMPUTED_TOKENS) / evicted.quiet.count(e.COMPUTED_TOKENS) > 1.1


def test_a_release_slows_the_replicas_that_have_it() -> None:
    trial = trial_of("S9")
    medium = trial.medium
    assert medium.fault is not None
    new = medium.fault.truth.affected["replica"]
    old = [r.name for r in trial.fleet.replicas if r.name not in new]
    was = trial.quiet.on(*new)
    assert 1.3 < medium.on(*new).rho / was.rho < 1.5
    assert 1.3 < medium.on(*new).tpot(50) / was.tpot(50) < 2.5
    assert 1.2 < medium.on(*new).prefill(50) / was.prefill(50) < 2.0
    assert medium.on(*old).rho == pytest.approx(1.0, abs=0.02)
    assert medium.on(*old).tpot(50) / trial.quiet.on(*old).tpot(50) < 1.15
    assert rising(*(seen.on(*new).rho for seen in trial.all()))


def test_a_release_is_told_from_a_low_clock_by_its_boundary() -> None:
    release, clock = trial_of("S9"), trial_of("S7")
    assert release.medium.fault is not None
    new = release.medium.fault.truth.affected["replica"]
    old = [r.name for r in release.fleet.replicas if r.name not in new]
    assert release.medium.on(*new).rho - release.medium.on(*old).rho > 0.3
    first, second = (clock.medium.on(r.name).rho for r in clock.fleet.replicas)
    assert abs(first - second) < 0.02


def test_fewer_accepted_drafts_leave_the_step_and_slow_the_stream() -> None:
    trial = trial_of("S12")
    quiet, medium = trial.quiet, trial.medium
    assert a_step(quiet) == pytest.approx(2.53, rel=0.03)
    assert a_step(medium) == pytest.approx(1.42, rel=0.03)
    assert 1.5 < medium.tpot(50) / quiet.tpot(50) < 2.4
    assert medium.rho == pytest.approx(quiet.rho, rel=0.02)
    assert medium.ttft(50) / quiet.ttft(50) < 1.2
    assert medium.count(e.ACCEPTED) / medium.count(e.DRAFTED) < 0.2
    assert rising(*(seen.tpot(50) for seen in trial.all()))


def test_fewer_accepted_drafts_are_told_from_slow_memory_by_the_step() -> None:
    drafts, memory = trial_of("S12"), trial_of("S8")
    assert drafts.medium.rho < 1.02 < 1.08 < memory.medium.main.rho
    assert a_step(drafts.medium) / a_step(drafts.quiet) < 0.65
    assert a_step(memory.medium) / a_step(memory.quiet) > 0.99
