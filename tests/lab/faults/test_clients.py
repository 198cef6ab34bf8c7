"""One client's own program."""

import numpy as np
import pytest

from tests.lab.faults.trials import Seen, rising, trial_of


def _largest(seen: Seen, yes: bool = True) -> Seen:
    return seen.of((seen.attempts.client == 0) == yes)


def test_a_slow_program_is_one_client_s_and_nobody_else_sees_it() -> None:
    trial = trial_of("S27")
    quiet, medium = trial.quiet, trial.medium
    first = [_largest(s).streamed.ms("client_start", "client_first") for s in (quiet, medium)]
    assert first[1] - first[0] == pytest.approx(1_000.0, abs=60.0)
    late = _largest(medium)
    assert late.ms("client_start", "client_slot") == pytest.approx(500.0, abs=20.0)
    assert late.ttft(50) == pytest.approx(_largest(quiet).ttft(50), rel=0.06)
    assert late.ms("client_slot", "gateway_in", 90) < 120.0
    others = [_largest(s, False) for s in (quiet, medium)]
    for percent in (50, 90):
        times = [s.streamed.ms("client_start", "client_first", percent) for s in others]
        assert times[1] == pytest.approx(times[0], rel=0.05)
    read = [_largest(s).streamed.ms("client_first", "client_end", 90) for s in (quiet, medium)]
    assert read[1] > 1.1 * read[0]
    assert rising(*(_largest(s).ms("client_start", "client_first") for s in trial.all()))


def test_a_client_that_stops_streaming_gets_first_bytes_at_the_end() -> None:
    trial = trial_of("S34")
    quiet, medium, strong = trial.quiet, trial.medium, trial.strong
    shares = [1.0 - np.mean(_largest(s).attempts.streamed) for s in (quiet, medium, strong)]
    assert shares[0] < 0.1 and shares[1] == pytest.approx(0.6, abs=0.05) and shares[2] == 1.0
    whole = _largest(strong)
    assert whole.ms("client_first", "client_end", 99) == 0.0
    for column in ("engine_first", "engine_last", "engine_end"):
        np.testing.assert_array_equal(
            getattr(quiet.attempts, column), getattr(strong.attempts, column)
        )
    others = [_largest(s, False).ms("client_start", "client_first") for s in (quiet, strong)]
    assert others[0] == others[1]
    ends = [_largest(s).ms("client_start", "client_end") for s in (quiet, strong)]
    assert ends[1] == pytest.approx(ends[0], rel=0.02)
    assert rising(*(_largest(s).ms("client_start", "client_first", 75) for s in trial.all()))


def test_a_late_program_waits_before_it_asks_and_one_that_does_not_stream_does_not() -> None:
    assert _largest(trial_of("S34").strong).ms("client_start", "client_slot", 99) < 1.0
    assert _largest(trial_of("S27").medium).ms("client_start", "client_slot", 10) > 400.0


def _held(name: str) -> set[int]:
    """Clients whose streams' first tokens a gateway holds, of those that ask often."""
    a = trial_of(name).medium.streamed.served
    held = a.gateway_first - a.engine_first
    of = {int(c): held[(a.client == c) & (a.gateway_first >= 0)] for c in np.unique(a.client)}
    return {c for c, times in of.items() if len(times) >= 20 and np.median(times) > 0.3e9}


def test_a_late_program_is_held_at_no_gateway_and_a_buffer_holds_many_clients() -> None:
    assert not _held("S27") and len(_held("S23")) > 5
    for client in _held("S23"):
        seen = trial_of("S23").medium
        assert seen.of(seen.attempts.client == client).ms("client_start", "client_slot", 90) < 50.0
