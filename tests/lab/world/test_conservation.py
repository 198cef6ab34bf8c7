"""Nothing is lost in the world and nothing comes from nowhere: laws over random fleets."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailburn.lab.fleet import Fleet
from tailburn.lab.records import Attempts, Outcome, Requests
from tailburn.lab.world import layout as w
from tailburn.lab.world.knobs import Level, knob
from tailburn.lab.world.world import World
from tests.lab.world.fleets import END, FAULTS, S, fleets, plain, requests

RANDOM = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
faults = st.lists(
    st.tuples(st.sampled_from(FAULTS), st.integers(0, 20), st.integers(1, 60)), max_size=3
)


def _ran(fleet: Fleet, asked: Requests, turned: list[tuple[tuple[str, float, str], int, int]]):  # type: ignore[no-untyped-def]
    world = World(fleet, seed=7)
    world.feed(asked)
    for (name, value, scope), start, length in turned:
        world.set(name, value, scope, start * S, (start + length) * S)
    return world, world.advance(END)


@RANDOM
@given(fleets(), st.integers(0, 1000), faults)
def test_every_request_comes_to_an_end_and_is_told(
    fleet: Fleet, seed: int, turned: list[tuple[tuple[str, float, str], int, int]]
) -> None:
    asked = requests(150, 12.0, seed)
    world, told = _ran(fleet, asked, turned)
    assert world.counts["requests"] == len(asked)
    assert world.counts["attempts"] == len(told) + world.under_way
    assert world.under_way == 0
    _each_has_one_last_try(told, len(asked))
    _instants_are_in_order(told)
    _nothing_is_held(world)
    for name, column in asked.arrays().items():
        if name != "streamed":
            np.testing.assert_array_equal(told.arrays()[name], column[told.request], err_msg=name)


def _each_has_one_last_try(told: Attempts, count: int) -> None:
    last = told.followed == 0
    assert np.bincount(told.request[last], minlength=count).tolist() == [1] * count
    ok = told.outcome == Outcome.OK
    assert np.bincount(told.request[ok], minlength=count).max() <= 1
    key = told.request * 256 + told.attempt * 2 + told.hedge
    assert len(np.unique(key)) == len(told)


ORDER = (
    "arrival_ns", "client_start", "client_slot", "client_connected", "gateway_in",
    "gateway_authed", "guardrail_start", "guardrail_end", "retrieval_start", "retrieval_end",
    "gateway_out", "router_in", "router_queued_end", "router_out", "engine_in",
    "tokenize_start", "tokenize_end", "queued", "scheduled", "prefill_end", "kv_transfer_start",
    "kv_transfer_end", "engine_first", "router_first", "gateway_first", "client_first",
    "client_last",
)  # fmt: skip
"""Of what happened, each no earlier than the one before."""
PAIRS = (
    ("engine_first", "engine_last"),
    ("engine_last", "engine_end"),
    ("router_first", "router_end"),
    ("gateway_first", "gateway_last"),
    ("kv_load_start", "kv_load_end"),
    ("lora_start", "lora_end"),
    ("model_start", "model_end"),
    ("engine_in", "aborted"),
    ("client_start", "client_end"),
    ("client_first", "client_end"),
    ("client_last", "client_end"),
)


def _instants_are_in_order(told: Attempts) -> None:
    last, name_of_last = told.arrival_ns.copy(), np.full(len(told), "arrival_ns", object)
    for name in ORDER[1:]:
        at = told.arrays()[name]
        early = (at >= 0) & (at < last)
        assert not early.any(), (name, name_of_last[early][0], at[early][0], last[early][0])
        name_of_last[at >= 0] = name
        last = np.where(at >= 0, at, last)
    for first, second in PAIRS:
        a, b = told.arrays()[first], told.arrays()[second]
        assert not ((a >= 0) & (b >= 0) & (b < a)).any(), (first, second)
    ok = told.outcome == Outcome.OK
    for name in ("gateway_in", "engine_in", "engine_first", "client_first", "client_last"):
        assert np.all(told.arrays()[name][ok] >= 0), name
    made = np.minimum(told.output_tokens, told.max_tokens)
    assert np.array_equal(told.output_done[ok], made[ok])
    assert np.all(told.output_done <= made)


def _nothing_is_held(world: World) -> None:
    """All servers, slots and counters of what is out are back where they began."""
    s = world._state
    assert not s.stations[:, [w.S_BUSY, w.S_WAITING]].any()
    assert np.array_equal(s.stations[:, w.S_ENTERED], s.stations[:, [w.S_BEGUN, w.S_QUIT]].sum(1))
    assert not s.gates[:, w.G_INFLIGHT].any()
    assert not s.replicas[:, w.R_INFLIGHT].any()
    assert s.vary[w.FREE_DEPTH] == len(s.calls)
    assert s.engines.free[0] == len(s.engines.seq)
    assert len(set(s.free[: len(s.calls)].tolist())) == len(s.calls)


@pytest.mark.parametrize("until", [3, 8, 15])
def test_what_is_under_way_is_what_was_begun_less_what_was_told(until: int) -> None:
    world = World(plain(timeout_s=0.3), seed=1)
    world.feed(requests(400, 20.0))
    told = world.advance(until * S)
    assert world.under_way > 0
    assert world.counts["attempts"] == len(told) + world.under_way


def test_little_s_law_holds_at_every_queue() -> None:
    fleet = plain(pool_limit=2, cancel_share=0.0)
    gates = tuple(replace(g, workers=1, work_ms=40.0) for g in fleet.gateways)
    pools = tuple(
        replace(p, tokenizer=replace(p.tokenizer, threads=1, us_per_token=60.0))
        for p in fleet.pools
    )
    world = World(replace(fleet, gateways=gates, pools=pools), seed=3)
    world.feed(requests(600, 15.0))
    told = world.advance(END)
    s = world._state
    pools_of_connections = world.pools_of_clients()
    waited = np.bincount(told.client, told.client_slot - told.client_start, 12)
    assert waited.sum() > 10 * S
    np.testing.assert_array_equal(pools_of_connections[:, w.S_WAIT_AREA], waited)
    held = np.bincount(told.client, told.client_end - told.client_slot, 12)
    np.testing.assert_array_equal(pools_of_connections[:, w.S_BUSY_AREA], held)
    tokenizers = s.stations[s.fixed[w.ST_TOKENIZER] :]
    for column, start, end in (
        (w.S_WAIT_AREA, told.engine_in, told.tokenize_start),
        (w.S_BUSY_AREA, told.tokenize_start, told.tokenize_end),
    ):
        spent = np.bincount(told.replica, end - start, len(tokenizers))
        assert spent.sum() > 10 * S
        np.testing.assert_array_equal(tokenizers[:, column], spent)


def test_a_server_never_idles_while_someone_waits() -> None:
    fleet = plain(1, cancel_share=0.0)
    pools = tuple(
        replace(p, tokenizer=replace(p.tokenizer, threads=2, us_per_token=200.0))
        for p in fleet.pools
    )
    world = World(replace(fleet, pools=pools), seed=3)
    world.feed(requests(300, 20.0))
    told = world.advance(END)
    order = np.argsort(told.engine_in, kind="stable")
    came, began, ended = (
        a[order] for a in (told.engine_in, told.tokenize_start, told.tokenize_end)
    )
    assert np.all(np.diff(began) >= 0)
    waited = began > came
    assert waited.sum() > 100
    # Whoever waited began the instant that one of the two threads was free.
    assert np.isin(began[waited], ended).all()


def test_knobs_back_where_they_were_leave_no_trace() -> None:
    plainly = World(plain(), seed=5)
    turned = World(plain(), seed=5)
    for world in (plainly, turned):
        world.feed(requests(100, 10.0))
    for one in FAULTS:
        if knob(one[0]).level != Level.REPLICA:
            turned.set(*one, start_ns=200 * S, end_ns=201 * S)
    a, b = plainly.advance(100 * S), turned.advance(100 * S)
    np.testing.assert_array_equal(a.client_end, b.client_end)
