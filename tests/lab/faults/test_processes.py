"""Faults of an engine's processes: what they move, what they leave, what tells them apart."""

import numpy as np
import pytest

from tailburn.lab.physics.step import ALLREDUCE, HOST
from tests.lab.faults.trials import Seen, e, rising, trial_of


def host_share(seen: Seen) -> float:
    """The host's part of a step."""
    return seen.part(HOST) / seen.step


def collective_share(seen: Seen) -> float:
    """The collectives' part of a step."""
    return seen.part(ALLREDUCE) / seen.step


def test_a_host_short_of_cpu_widens_the_gap_between_steps() -> None:
    trial = trial_of("S10")
    quiet, medium = trial.quiet, trial.medium
    assert 2.5 < medium.tpot(50) / quiet.tpot(50) < 10
    assert 1.2 < medium.ttft(50) / quiet.ttft(50) < medium.tpot(50) / quiet.tpot(50)
    assert medium.rho > 1.5
    assert host_share(medium) > 2.5 * host_share(quiet)
    assert medium.part(HOST) > 6 * quiet.part(HOST)
    assert medium.offered == quiet.offered and medium.count(e.N_PREEMPTIONS) == 0
    assert rising(*(seen.tpot(50) for seen in trial.all()))
    assert 1.5 * quiet.itl_max(50) < medium.itl_max(50) < 1.9 * quiet.itl_max(50)


def test_a_slow_host_is_told_from_slow_collectives_by_where_a_step_s_time_goes() -> None:
    host, links = trial_of("S10"), trial_of("S18")
    assert host_share(host.medium) / host_share(host.quiet) > 2
    assert host_share(links.medium.main) / host_share(links.quiet.main) < 1
    assert collective_share(links.medium.main) / collective_share(links.quiet.main) > 1.5
    assert collective_share(host.medium) / collective_share(host.quiet) < 1


def stopped(seen: Seen, least_ms: float) -> float:
    """Share of streams with a gap of at least so long."""
    longest = seen.served.itl_max_ns
    return float(np.mean(longest[longest >= 0] >= least_ms * 1e6))


def test_a_pause_stops_all_streams_and_leaves_the_rest() -> None:
    trial = trial_of("S11")
    quiet, medium = trial.quiet, trial.medium
    assert medium.ttft(50) / quiet.ttft(50) < 1.1 and medium.tpot(50) / quiet.tpot(50) < 1.1
    assert medium.rho == pytest.approx(quiet.rho, rel=0.02)
    assert medium.ttft(99) > 2 * quiet.ttft(99)
    assert medium.itl_max(99.9) > 1_900 > 4 * quiet.itl_max(99.9)
    pauses = medium.count(e.PAUSES)
    assert pauses == pytest.approx(2 * 10, abs=2), "one a minute on each replica"
    # Who streams when a pause falls: running x pauses; each of them has a gap of its length.
    expected = medium.running.mean() * pauses / len(medium.served)
    assert stopped(medium, 1_000) == pytest.approx(expected, rel=0.35)
    late = medium.attempts.client_start > np.median(medium.attempts.client_start)
    assert medium.of(late).itl_max(99.9) > 1.3 * medium.of(~late).itl_max(99.9), "they grow"
    assert rising(*(seen.itl_max(99.9) for seen in trial.all()))


def test_a_pause_is_told_from_slow_collectives_by_being_rare() -> None:
    pause, links = trial_of("S11"), trial_of("S18")
    assert pause.medium.rho < 1.02 < 1.15 < links.medium.main.rho
    assert stopped(pause.medium, 1_500) > 0.02 > stopped(links.medium.main, 1_500)
    assert pause.medium.tpot(50) / pause.quiet.tpot(50) < 1.1
    assert links.medium.main.tpot(50) / links.quiet.main.tpot(50) > 1.3
