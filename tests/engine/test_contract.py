"""What clients do and what changed: shares that add up, planted changes, abstentions."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine.contract import LEAST_COUNT, LEVEL, Check, Contract, Kind, Verdict, contract
from tests.engine.store.samples import request, requests

SHARES = ("streamed", "capped", "retried", "retried_more", "hedged", "cancelled", "timed_out")


def rows(client: str, count: int, **columns: Any) -> list[dict[str, Any]]:
    told = {"streamed": True, "attempts": 1, "hedged": False, "http_status": 200}
    return [request(i, **{**told, "client": client, **columns}) for i in range(count)]


def found(now: list[dict[str, Any]], before: list[dict[str, Any]]) -> Contract:
    return contract(requests(*now), requests(*before), "client")


def check(of: Contract, client: str, kind: Kind) -> Check:
    return next(c for c in of.checks if c.client.name == client and c.kind is kind)


def verdicts(of: Contract) -> dict[tuple[str, Kind], Verdict]:
    return {(c.client.name, c.kind): c.verdict for c in of.checks}


def test_a_client_that_stops_streaming_is_found_alone() -> None:
    before = [*rows("app", 200), *rows("bot", 200)]
    now = [*rows("app", 80), *rows("app", 120, streamed=False), *rows("bot", 200)]
    of = found(now, before)
    found_ones = [pair for pair, verdict in verdicts(of).items() if verdict is Verdict.FOUND]
    assert found_ones == [("app", Kind.NOT_STREAMING)]
    stopped = check(of, "app", Kind.NOT_STREAMING)
    assert stopped.client.now.streamed.value == 0.4 and stopped.p is not None
    assert stopped.p < 1e-12 and stopped.level == LEVEL / 4


def test_a_retry_wave_is_found() -> None:
    now = [*rows("app", 150), *rows("app", 50, attempts=4)]
    wave = check(found(now, rows("app", 200)), "app", Kind.RETRY_WAVE)
    assert wave.verdict is Verdict.FOUND
    assert wave.client.now.attempts_per_request == 1.75
    assert wave.client.before.attempts_per_request == 1


def test_more_tries_of_as_many_requests_are_a_wave_too() -> None:
    before = [*rows("app", 180), *rows("app", 20, attempts=2)]
    now = [*rows("app", 180), *rows("app", 20, attempts=4)]
    assert check(found(now, before), "app", Kind.RETRY_WAVE).verdict is Verdict.FOUND


def test_hedges_are_no_retries() -> None:
    now = rows("app", 200, attempts=2, hedged=True)
    wave = check(found(now, rows("app", 200)), "app", Kind.RETRY_WAVE)
    assert wave.verdict is Verdict.QUIET
    assert wave.client.now.hedged.value == 1 and wave.client.now.retried.value == 0
    assert wave.client.now.attempts_per_request == 2


def test_a_change_for_the_better_is_no_finding() -> None:
    before = rows("app", 200, streamed=False, attempts=3)
    assert set(verdicts(found(rows("app", 200), before)).values()) == {Verdict.QUIET}


def test_a_trifle_is_no_finding_however_sure() -> None:
    before = rows("app", 20_000)
    now = [*rows("app", 19_700), *rows("app", 300, streamed=False, attempts=2)]
    of = found(now, before)
    assert set(verdicts(of).values()) == {Verdict.QUIET}
    assert all(c.p is not None and c.level is not None and c.p < c.level for c in of.checks)


@pytest.mark.parametrize(("now", "before"), [(LEAST_COUNT - 1, 500), (500, LEAST_COUNT - 1)])
def test_thin_samples_abstain(now: int, before: int) -> None:
    of = found(rows("app", now, streamed=False, attempts=9), rows("app", before))
    assert set(verdicts(of).values()) == {Verdict.THIN}
    assert all(c.p is None for c in of.checks)


def test_what_nobody_tells_is_not_judged_and_not_zero() -> None:
    dumb = rows("app", 200, streamed=None, attempts=None, hedged=None, http_status=None)
    of = found([r | {"outcome": "unknown"} for r in dumb], rows("app", 200))
    assert set(verdicts(of).values()) == {Verdict.NOT_TOLD}
    assert [getattr(of.total.now, name).value for name in SHARES] == [None] * len(SHARES)
    assert of.total.now.attempts_per_request is None


def test_a_client_that_is_new_or_gone_is_shown_and_not_judged() -> None:
    of = found(rows("new", 200), rows("gone", 200))
    assert [(c.name, c.now.count, c.before.count) for c in of.clients] == [
        ("new", 200, 0),
        ("gone", 0, 200),
    ]
    assert set(verdicts(of).values()) == {Verdict.NOT_TOLD}


def test_an_answer_that_made_all_it_may_is_capped() -> None:
    now = [
        *rows("app", 3, output_tokens=64, max_output_tokens=64),
        *rows("app", 5, output_tokens=63, max_output_tokens=64),
        *rows("app", 7, output_tokens=64),
    ]
    capped = found(now, []).total.now.capped
    assert (capped.hits, capped.told) == (3, 8)


def test_given_up_and_timed_out_are_counted_apart() -> None:
    now = [
        *rows("app", 2, outcome="cancelled", http_status=499),
        *rows("app", 3, outcome="error", http_status=504),
        *rows("app", 5, outcome="error", http_status=408),
        *rows("app", 10),
    ]
    total = found(now, []).total.now
    assert (total.cancelled.value, total.timed_out.value) == (0.1, 0.4)


def test_sampled_requests_count_by_their_weight_and_test_by_their_number() -> None:
    of = found(rows("app", 40, weight=10.0), rows("app", 40, weight=10.0))
    assert of.total.now.count == 400 and of.total.now.streamed.effective == 40
    assert set(verdicts(of).values()) == {Verdict.THIN}


def test_many_clients_that_did_not_change_are_quiet() -> None:
    """One in a hundred such reports may find something; this one has a fixed draw."""
    now = [r for i in range(40) for r in _mixed(f"c{i}", i)]
    before = [r for i in range(40) for r in _mixed(f"c{i}", 7 * i + 3)]
    assert set(verdicts(found(now, before)).values()) == {Verdict.QUIET}


def _mixed(client: str, seed: int) -> list[dict[str, Any]]:
    off = 10 + seed % 5
    return [
        *rows(client, 100 - off),
        *rows(client, off, streamed=False, attempts=2),
    ]


def test_nothing_at_all_is_nothing() -> None:
    of = found([], [])
    assert of.clients == () and of.checks == () and of.total.now.count == 0


told = st.fixed_dictionaries(
    {
        "client": st.sampled_from([None, "a", "b", "c"]),
        "streamed": st.sampled_from([None, True, False]),
        "output_tokens": st.sampled_from([None, 0, 1, 64]),
        "max_output_tokens": st.sampled_from([None, 0, 1, 64]),
        "attempts": st.sampled_from([None, 0, 1, 2, 5]),
        "hedged": st.sampled_from([None, True, False]),
        "outcome": st.sampled_from([None, "unknown", "ok", "error", "cancelled"]),
        "http_status": st.sampled_from([None, 200, 408, 499, 504]),
        "weight": st.sampled_from([None, 0.5, 1.0, 3.0]),
    }
)
many = st.lists(told, max_size=30)


@settings(max_examples=60)
@given(many, many)
def test_shares_are_shares_and_clients_add_up_to_all(
    now: list[dict[str, Any]], before: list[dict[str, Any]]
) -> None:
    of = found(*([request(i, **columns) for i, columns in enumerate(t)] for t in (now, before)))
    for side in ("now", "before"):
        parts = [getattr(c, side) for c in of.clients]
        total = getattr(of.total, side)
        assert sum(p.count for p in parts) == total.count
        assert sum(p.attempts for p in parts) == total.attempts
        for name in SHARES:
            share = getattr(total, name)
            assert 0 <= share.hits <= share.told <= total.count
            assert share.value is None or 0 <= share.value <= 1
            assert share.effective <= len(now if side == "now" else before)
            assert sum(getattr(p, name).hits for p in parts) == share.hits
            assert sum(getattr(p, name).told for p in parts) == share.told
