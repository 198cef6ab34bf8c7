"""Faults of an engine's pace: what they move, and what they leave."""

from tests.lab.faults.trials import rising, trial_of


def test_a_slow_memory_slows_decode_at_all_batches_and_hardly_prefill() -> None:
    trial = trial_of("S8")
    quiet, medium = trial.quiet, trial.medium
    assert 1.06 < medium.tpot(50) / quiet.tpot(50) < 1.25
    assert 1.08 < medium.rho / quiet.rho < 1.25
    assert medium.ttft(99) / quiet.ttft(99) < 1.1
    assert medium.queue(99) - quiet.queue(99) < 10.0
    small, was = medium.on("small-0"), quiet.on("small-0")
    assert small.rho / was.rho > 1.08, "a model on one GPU slows down as well"
    assert rising(*(seen.rho for seen in trial.all()))
    assert rising(*(seen.tpot(50) for seen in trial.all()))
