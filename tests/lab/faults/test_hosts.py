"""One engine's hardware and host: a slow rank, kernels compiled anew, grammars."""

import numpy as np
import pytest

from tailburn.lab.physics.step import ALLREDUCE, HOST, STRAGGLE
from tailburn.lab.world import engine_layout as e
from tests.lab.faults.trials import Seen, rising, trial_of


def test_a_slow_rank_slows_its_replica_at_prefill_and_decode_alike() -> None:
    trial = trial_of("S20")
    (hit,) = trial.medium.fault.truth.affected["replica"]  # type: ignore[union-attr]
    assert trial.medium.fault.truth.affected["rank"] == ("3",)  # type: ignore[union-attr]
    others = [r.name for r in trial.fleet.replicas if r.name != hit]
    quiet, medium = trial.quiet.on(hit), trial.medium.on(hit)
    assert 1.1 < medium.tpot(50) / quiet.tpot(50) < 1.6
    assert 1.1 < medium.prefill(50) / quiet.prefill(50) < 1.6
    assert trial.medium.on(*others).part(STRAGGLE) == trial.quiet.on(*others).part(STRAGGLE)
    assert trial.medium.on(*others).step < 1.15 * trial.quiet.on(*others).step
    assert medium.queue(90) < 30.0
    assert rising(*(s.on(hit).tpot(50) for s in trial.all()))


def test_peers_wait_for_a_slow_rank_and_all_ranks_wait_for_a_slow_link() -> None:
    rank, link = trial_of("S20"), trial_of("S18")
    (hit,) = rank.medium.fault.truth.affected["replica"]  # type: ignore[union-attr]
    waits = rank.medium.on(hit).part(STRAGGLE)
    assert waits > 2.0 and rank.quiet.part(STRAGGLE) < 0.1 * waits
    grown = rank.medium.on(hit).part(ALLREDUCE) / rank.quiet.on(hit).part(ALLREDUCE)
    assert grown < 1.25
    assert link.medium.part(ALLREDUCE) > 2.0 * link.quiet.part(ALLREDUCE)
    assert link.medium.part(STRAGGLE) < 1.0


def test_slow_memory_leaves_prefill_where_a_slow_rank_does_not() -> None:
    memory, rank = trial_of("S8"), trial_of("S20")
    (hit,) = rank.medium.fault.truth.affected["replica"]  # type: ignore[union-attr]

    def moved(quiet: Seen, medium: Seen) -> float:
        few = [s.of(s.attempts.prompt_tokens > 1_500).prefill(50) for s in (quiet, medium)]
        return few[1] / few[0]

    assert moved(rank.quiet.on(hit), rank.medium.on(hit)) > 1.2
    assert moved(memory.quiet, memory.medium) < 1.15


COMPILING = 20
"""Minutes: shapes are forgotten four times or so."""


def test_kernels_compiled_in_serving_stop_all_streams_for_a_second_and_seldom() -> None:
    trial = trial_of("S22", minutes=COMPILING)
    quiet, medium = trial.quiet, trial.medium
    assert medium.itl_max(99) > 1_000.0 > quiet.itl_max(99)
    assert medium.itl_max(50) == pytest.approx(quiet.itl_max(50), rel=0.15)
    assert medium.ttft(99) > 2.0 * quiet.ttft(99)
    assert medium.ttft(50) == pytest.approx(quiet.ttft(50), rel=0.15)
    assert medium.attempts.preemptions.sum() == 0
    assert medium.count(e.COMPILES) > 20 > 0 == quiet.count(e.COMPILES)
    assert rising(*(s.tpot(99) for s in trial.all()))


def test_compilations_come_in_clusters_and_stop_where_pauses_go_on() -> None:
    trial, pauses = trial_of("S22", minutes=COMPILING), trial_of("S11").medium
    per_scrape = np.diff(trial.medium.gauge(e.COMPILES).sum(axis=1))
    assert np.sum(per_scrape > 0) < 0.25 * len(per_scrape)
    assert per_scrape.max() >= 5
    assert trial.medium.count(e.PAUSES) == 0 == pauses.count(e.COMPILES)
    assert pauses.count(e.PAUSES) > 0


def _structured(seen: Seen, yes: int) -> Seen:
    return seen.of(seen.attempts.structured == yes)


def test_a_burst_of_grammars_keeps_the_structured_waiting_and_slows_all() -> None:
    trial = trial_of("S28")
    quiet, medium = trial.quiet, trial.medium
    assert (
        4.0 < medium.tpot(50) / quiet.tpot(50) < 6.0 < 8.0 < trial.strong.tpot(50) / quiet.tpot(50)
    )
    assert _structured(medium, 1).queue(50) > 1_000.0
    assert _structured(medium, 0).queue(75) < 50.0
    assert medium.part(HOST) > 3.0 * quiet.part(HOST)
    share = [np.mean(s.attempts.structured) for s in (quiet, medium)]
    assert share[1] == pytest.approx(0.4, abs=0.02) and share[0] < 0.15
    assert rising(*(s.tpot(50) for s in trial.all()))
    assert rising(*(_structured(s, 1).ttft(50) for s in trial.all()))


def test_a_throttled_host_alone_has_no_more_structured_requests() -> None:
    trial = trial_of("S10")
    assert trial.medium.part(HOST) > 3.0 * trial.quiet.part(HOST)
    share = [np.mean(s.attempts.structured) for s in (trial.quiet, trial.medium)]
    assert share[1] == pytest.approx(share[0], abs=0.02)
    assert _structured(trial.medium, 1).queue(50) < 200.0


def test_a_grammar_burst_holds_up_structured_requests_and_a_slow_host_all_alike() -> None:
    burst, host = trial_of("S28").medium, trial_of("S10").medium
    waits = [
        (seen.of(seen.attempts.structured == 1).queue(50), seen.of(seen.attempts.structured == 0))
        for seen in (burst, host)
    ]
    (mine, others), (at_host, beside) = waits
    assert mine > 1_000.0 > 2.0 * others.queue(50)
    assert at_host < 2.0 * beside.queue(50) + 50.0
