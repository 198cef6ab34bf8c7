"""Faults of the queue: what they move, what they leave, and what tells them apart."""

import numpy as np
import pytest

from tailburn.lab.records import Outcome
from tailburn.lab.world import layout as w
from tests.lab.faults.trials import Seen, e, queue_share, rising, trial_of


def tries(seen: Seen) -> float:
    """Attempts of a request, in the mean."""
    return len(seen.attempts) / len(np.unique(seen.attempts.request))


def answered(seen: Seen) -> int:
    return int((seen.attempts.outcome == Outcome.OK).sum())


def read_share(seen: Seen) -> float:
    """What gateways have in flight over what engines run and hold waiting."""
    inflight = seen.samples.gateways[:, :, w.G_INFLIGHT].sum()
    return float(inflight / (seen.running + seen.waiting).sum())


def test_a_surge_fills_the_batch_and_the_rest_waits() -> None:
    trial = trial_of("S1")
    quiet, medium = trial.quiet, trial.medium
    assert medium.offered / quiet.offered == pytest.approx(1.6, rel=0.05)
    assert medium.ttft(50) > 50 * quiet.ttft(50) and medium.ttft(99) > 20 * quiet.ttft(99)
    assert queue_share(quiet, medium) > 0.9
    short = medium.of(medium.attempts.prompt_tokens < np.median(quiet.attempts.prompt_tokens))
    assert 0.8 < short.ttft(50) / medium.ttft(50) < 1.25, "all lengths wait alike"
    assert 1.0 < medium.tpot(50) / quiet.tpot(50) < 1.35
    assert medium.running.max() == trial.fleet.pools[0].scheduler.max_num_seqs
    assert medium.capped_share > 0.9
    assert medium.kv_used.max() < 0.9
    assert medium.rho == pytest.approx(quiet.rho, rel=0.02)
    assert rising(*(seen.ttft(50) for seen in trial.all()))


def test_a_surge_is_told_from_slow_memory_by_its_steps_and_what_is_offered() -> None:
    surge, slow = trial_of("S1"), trial_of("S8")
    assert surge.medium.offered / surge.quiet.offered > 1.5
    assert slow.medium.offered == slow.quiet.offered
    assert surge.medium.rho / surge.quiet.rho < 1.02
    assert slow.medium.main.rho / slow.quiet.main.rho > 1.08


def test_a_surge_is_told_from_a_throttled_clock_by_what_is_offered() -> None:
    surge, throttled = trial_of("S1"), trial_of("S7")
    assert surge.medium.offered / surge.quiet.offered > 1.5
    assert throttled.medium.offered == throttled.quiet.offered

    def a_token(seen: Seen) -> float:
        """Ms of prefill of an uncached token."""
        a = seen.served
        tokens = a.prompt_tokens - a.cached_tokens
        took = (a.prefill_end - a.scheduled) / 1e6
        return float(np.percentile((took / tokens)[tokens > 1_000], 10))

    assert a_token(surge.medium) < 1.1 * a_token(surge.quiet)
    assert a_token(throttled.medium) > 1.2 * a_token(throttled.quiet)


def test_a_retry_storm_asks_again_for_what_it_gave_up() -> None:
    trial = trial_of("S2")
    quiet, medium = trial.quiet, trial.medium
    assert tries(quiet) < 1.01 and tries(medium) > 2.5
    assert 1.1 < medium.offered / quiet.offered < 1.3, "distinct requests: the bursts alone"
    assert medium.ttft(99) > 15 * quiet.ttft(99) and queue_share(quiet, medium) > 0.9
    assert answered(medium) < 0.5 * answered(quiet)
    assert medium.count(e.N_ABORTED) > 100 * max(quiet.count(e.N_ABORTED), 1)
    assert medium.rho == pytest.approx(quiet.rho, rel=0.02)
    late = medium.attempts.client_start > medium.attempts.client_start.max() - 120 * 10**9
    assert tries(medium.of(late)) > 1.5, "it outlives the burst that set it off"
    assert rising(*(tries(seen) for seen in trial.all()))


def test_a_retry_storm_is_told_from_a_surge_by_its_tries() -> None:
    assert tries(trial_of("S1").medium) < 1.01 < tries(trial_of("S2").weak)


def test_orphans_fill_the_batch_and_nobody_reads_them() -> None:
    trial = trial_of("S3")
    quiet, medium = trial.quiet, trial.medium
    assert medium.offered == quiet.offered
    cap = trial.fleet.pools[0].scheduler.max_num_seqs
    assert medium.running.mean() > 0.98 * cap > 1.25 * quiet.running.mean()
    assert medium.ttft(50) > 20 * quiet.ttft(50) and medium.ttft(99) > 20 * quiet.ttft(99)
    assert queue_share(quiet, medium) > 0.9
    assert medium.tpot(50) < 1.05 * quiet.tpot(50)
    done = [seen.count(e.N_FINISHED) for seen in trial.all()]
    assert rising(*(-d for d in done)) and done[-1] < 0.6 * done[0], "completions end"
    assert rising(*(seen.ttft(99) for seen in trial.all()))


def test_orphans_are_told_from_a_surge_by_what_the_gateway_has_in_flight() -> None:
    zombies, surge = trial_of("S3"), trial_of("S1")
    assert read_share(zombies.medium) < 0.85 * read_share(zombies.quiet)
    assert read_share(surge.medium) > 0.95 * read_share(surge.quiet)


def test_a_skewed_route_queues_on_one_replica_alone() -> None:
    trial = trial_of("S4")
    quiet, medium = trial.quiet, trial.medium
    assert medium.fault is not None
    (hit,) = medium.fault.truth.affected["replica"]
    others = [r.name for r in trial.fleet.replicas if r.name != hit]
    sent = medium.samples.replicas[-1, :, w.R_SENT] - medium.samples.replicas[0, :, w.R_SENT]
    at = [r.name for r in trial.fleet.replicas].index(hit)
    assert sent[at] / sent.sum() == pytest.approx(0.5, abs=0.02)
    assert medium.on(hit).ttft(50) > 100 * quiet.ttft(50)
    assert queue_share(quiet, medium.on(hit)) > 0.9
    assert medium.on(*others).ttft(99) < 1.1 * quiet.ttft(99)
    assert medium.on(*others).tpot(50) < 1.02 * quiet.tpot(50)
    assert medium.on(hit).rho == pytest.approx(quiet.rho, rel=0.02)
    assert rising(*(seen.on(hit).ttft(50) for seen in trial.all()))


def test_a_skewed_route_is_told_from_slow_memory_by_shares_and_steps() -> None:
    skew, slow = trial_of("S4").medium, trial_of("S8").medium
    sent = skew.samples.replicas[-1, :, w.R_SENT] - skew.samples.replicas[0, :, w.R_SENT]
    even = slow.samples.replicas[-1, :2, w.R_SENT] - slow.samples.replicas[0, :2, w.R_SENT]
    assert sent.max() / sent.mean() > 1.8 and even.max() / even.mean() < 1.1
    assert skew.rho < 1.02 < 1.08 < slow.main.rho
