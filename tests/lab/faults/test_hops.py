"""Hops before the engine's queue: tokenizer, gateway, retrieval."""

import numpy as np
import pytest

from tailburn.lab.records import Attempts, Outcome
from tailburn.lab.world import engine_layout as e
from tests.lab.faults.trials import Seen, rising, trial_of


def _by_prompt(seen: Seen, low: int, high: int) -> Seen:
    tokens = seen.attempts.prompt_tokens
    return seen.of((tokens >= low) & (tokens < high))


def test_a_slow_tokenizer_holds_prompts_by_their_length_before_an_empty_queue() -> None:
    trial = trial_of("S21")
    quiet, medium = trial.quiet, trial.medium
    held = [s.ms("engine_in", "tokenize_end", 50) for s in (quiet, medium)]
    assert held[0] < 10.0 and held[1] > 100.0
    assert medium.ttft(99) > 2.5 * quiet.ttft(99)
    assert medium.ms("engine_in", "tokenize_end", 99) > 5.0 * held[1]
    short, long = _by_prompt(medium, 0, 400), _by_prompt(medium, 2_000, 4_000)
    work = [s.ms("tokenize_start", "tokenize_end", 50) for s in (short, long)]
    assert work[1] > 4.0 * work[0]
    assert medium.queue(90) == pytest.approx(quiet.queue(90), abs=10.0)
    assert medium.tpot(50) == pytest.approx(quiet.tpot(50), rel=0.05)
    assert medium.waiting.mean() < 1.0
    assert rising(*(s.ttft(90) for s in trial.all()))


def test_a_surge_waits_in_the_scheduler_and_a_tokenizer_before_it() -> None:
    surge, tokenizer = trial_of("S1").medium, trial_of("S21").medium
    assert surge.queue(50) > 100.0 > surge.ms("engine_in", "tokenize_end", 99)
    assert tokenizer.queue(90) < 50.0 < tokenizer.ms("engine_in", "tokenize_end", 50)
    assert surge.waiting.mean() > 3.0 > tokenizer.waiting.mean()


def test_grammars_hold_the_structured_after_tokenizing_and_a_tokenizer_all_before() -> None:
    grammars, tokenizer = trial_of("S28").medium, trial_of("S21").medium
    assert grammars.ms("engine_in", "tokenize_end", 50) < 50.0
    for yes in (0, 1):
        of = tokenizer.of(tokenizer.attempts.structured == yes)
        assert of.ms("engine_in", "tokenize_end", 50) > 80.0


def _at_gateway(seen: Seen, gateway: int) -> Seen:
    return seen.of((seen.attempts.gateway == gateway) & (seen.attempts.streamed == 1))


def _in_order(seen: Seen) -> Attempts:
    a = seen.attempts
    return a.take(np.lexsort((a.attempt, a.request)))


def test_a_buffering_gateway_holds_first_tokens_and_nothing_else_moves() -> None:
    trial = trial_of("S23")
    quiet, medium = trial.quiet, trial.medium
    for column in ("engine_first", "engine_last", "gateway_last"):
        same = [getattr(_in_order(s), column) for s in (quiet, medium)]
        np.testing.assert_array_equal(*same)
    here, there = _at_gateway(medium, 0), _at_gateway(medium, 1)
    assert there.ms("engine_first", "gateway_first", 99) < 20.0
    long, short = here.attempts.output_done > 80, here.attempts.output_done < 60
    waited = here.of(long)
    tokens = 65.0 / (waited.attempts.output_done - 1)
    a = waited.attempts
    expected = (a.engine_last - a.engine_first) * tokens / 1e6
    found = (a.gateway_first - a.engine_first) / 1e6
    assert np.median(np.abs(found - expected)) < 5.0
    assert here.of(short).ms("gateway_first", "gateway_last", 99) < 1.0
    assert rising(*(_at_gateway(s, 0).ms("client_start", "client_first") for s in trial.all()))


def _with_late_answers(name: str) -> tuple[int, int]:
    """Clients whose answers' first bytes wait at the gateway, and clients that stream at all."""
    seen = trial_of(name).medium
    late = of_all = 0
    for client in np.unique(seen.attempts.client):
        a = seen.attempts.take(seen.attempts.client == client)
        a = a.take((a.engine_first >= 0) & (a.gateway_first >= 0))
        if len(a) >= 20:
            of_all += 1
            late += bool(np.median(a.gateway_first - a.engine_first) > 0.3e9)
    return late, of_all


def test_a_buffer_is_all_its_clients_and_a_client_that_does_not_stream_is_alone() -> None:
    buffered, of_all = _with_late_answers("S23")
    whole, _ = _with_late_answers("S34")
    already = sum(
        bool(np.mean(a.streamed) < 0.5)
        for a in (
            trial_of("S34").quiet.attempts.take(trial_of("S34").quiet.attempts.client == c)
            for c in np.unique(trial_of("S34").quiet.attempts.client)
        )
        if len(a) >= 20
    )
    assert buffered > 0.4 * of_all
    assert whole <= already + 1


def test_a_stalled_lookup_adds_one_constant_to_some() -> None:
    trial = trial_of("S24")
    quiet, medium = trial.quiet, trial.medium
    a = medium.attempts
    known = (a.gateway_in >= 0) & (a.gateway_authed >= 0)
    took = (a.gateway_authed - a.gateway_in) / 1e6
    stalled = known & (took > 1_000.0)
    assert np.mean(stalled[known & (a.gateway == 0)]) == pytest.approx(0.2, abs=0.03)
    assert not np.any(stalled & (a.gateway == 1))
    assert np.all(np.abs(took[stalled] - 5_000.0) < 50.0)
    lengths = a.prompt_tokens.astype(float)
    assert lengths[stalled].mean() == pytest.approx(lengths[known].mean(), rel=0.15)
    assert medium.ttft(90) == pytest.approx(quiet.ttft(90), rel=0.05)
    assert medium.tpot(50) == pytest.approx(quiet.tpot(50), rel=0.05)
    assert rising(*(s.streamed.ms("client_start", "client_first", 98) for s in trial.all()))
    left = [float(np.mean(s.attempts.outcome == Outcome.CANCELLED)) for s in trial.all()]
    assert rising(*left) and left[0] < 0.05 and left[-1] > 0.15, "499s"


def test_a_queue_spreads_where_a_stall_is_one_mode() -> None:
    stall, surge = trial_of("S24").medium, trial_of("S1").medium
    over = stall.between("gateway_in", "gateway_authed")
    over = over[over > 1_000.0]
    waits = surge.between("queued", "scheduled")
    waits = waits[waits > 100.0]
    assert np.std(over) / np.mean(over) < 0.01
    assert np.std(waits) / np.mean(waits) > 0.2


def _rag(seen: Seen, yes: int) -> Seen:
    return seen.of((seen.attempts.rag == yes) & (seen.attempts.streamed == 1))


def test_a_slow_vector_store_is_the_rag_route_s_and_its_slowest_most() -> None:
    trial = trial_of("S31")
    quiet, medium = trial.quiet, trial.medium
    spans = [s.ms("retrieval_start", "retrieval_end", 99) for s in (quiet, medium)]
    assert 3.5 < spans[1] / spans[0] < 6.5
    late = [_rag(s, 1).ms("client_start", "client_first", 98) for s in (quiet, medium)]
    assert late[1] - late[0] > 150.0
    others = [_rag(s, 0).ms("client_start", "client_first", 90) for s in (quiet, medium)]
    assert others[1] == pytest.approx(others[0], rel=0.05)
    assert medium.ttft(50) == pytest.approx(quiet.ttft(50), rel=0.05)
    assert medium.tpot(50) == pytest.approx(quiet.tpot(50), rel=0.05)
    assert rising(*(_rag(s, 1).ms("client_start", "client_first", 90) for s in trial.all()))


def test_longer_prompts_prefill_longer_where_slow_retrieval_does_not() -> None:
    drift, store = trial_of("N2"), trial_of("S31")
    assert drift.medium.prefill(50) > 1.3 * drift.quiet.prefill(50)
    assert drift.medium.count(e.COMPUTED_TOKENS) > 1.4 * drift.quiet.count(e.COMPUTED_TOKENS)
    assert store.medium.prefill(50) == pytest.approx(store.quiet.prefill(50), rel=0.06)
    assert drift.medium.ms("retrieval_start", "retrieval_end", 99) == pytest.approx(
        drift.quiet.ms("retrieval_start", "retrieval_end", 99), rel=0.1
    )
