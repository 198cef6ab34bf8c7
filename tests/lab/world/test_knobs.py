"""Knobs: names, scopes, times; each acts where it is set and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest

from tailburn.lab.fleet import Fleet, FleetError, arrays_of, split, standard
from tailburn.lab.physics.step import ALLREDUCE
from tailburn.lab.records import Attempts, Outcome
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import layout as w
from tailburn.lab.world.knobs import KNOBS, TABLE, KnobError, Level
from tailburn.lab.world.scopes import things
from tailburn.lab.world.world import World
from tests.lab.world.fleets import CLIENTS, END, S, behaving, plain, requests

TWO = arrays_of(standard(10, clients=CLIENTS, replicas=3))


def _told(*turned: tuple[str, float, str], fleet: Fleet | None = None, **fixed: int) -> Attempts:
    world = World(fleet or plain(cancel_share=0.0), seed=3)
    world.feed(requests(250, 8.0, **({"lora": -1} | fixed)))
    for one in turned:
        world.set(*one)
    told = world.advance(END)
    return told.take(np.lexsort((told.attempt, told.request)))


def _ms(told: Attempts, first: str, last: str) -> np.ndarray:
    a, b = told.arrays()[first], told.arrays()[last]
    return np.asarray((b - a)[(a >= 0) & (b >= 0)] / 1e6)


def test_every_knob_has_a_name_of_its_own_a_unit_and_a_cause() -> None:
    assert len(KNOBS) == len(TABLE)
    for knob in TABLE:
        assert knob.unit and knob.cause and knob.low < knob.high, knob.name
        assert knob.default is None or knob.low <= knob.default <= knob.high, knob.name


def test_a_fleet_s_own_figures_lie_within_the_knobs_bounds() -> None:
    for fleet in (TWO, arrays_of(split(10, clients=CLIENTS))):
        for level in Level:
            of_level = [k for k in TABLE if k.level == level]
            for knob, values in zip(of_level, fleet.knobs[level].T, strict=True):
                assert np.all((values >= knob.low) & (values <= knob.high)), knob.name


@pytest.mark.parametrize(
    ("level", "scope", "found"),
    [
        (Level.REPLICA, "vllm-1", [1]),
        (Level.REPLICA, "pool:main", [0, 1, 2]),
        (Level.REPLICA, "host:node-0", [0, 1]),
        (Level.REPLICA, "zone:zone-b", [2]),
        (Level.GATEWAY, "gateway:gateway-2", [1]),
        (Level.HOST, "node-1", [3]),
        (Level.CLIENT, "client:7", [7]),
        (Level.WORLD, "all", [0]),
        (Level.EDGE, "client>gateway:zone-b>zone-a", [3]),
        (Level.EDGE, "client>gateway:zone-b", [1, 3, 4, 5, 7]),
    ],
)
def test_a_scope_names_its_things(level: Level, scope: str, found: list[int]) -> None:
    assert things(level, scope, TWO).tolist() == found


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("hbm_ration", 0.5, "all"), "did you mean hbm_ratio"),
        (("hbm_ratio", 0.0, "all"), r"hbm_ratio = 0.0: want 0.001 to 1e\+06 \(ratio\)"),
        (("hbm_ratio", 0.5, "vllm-9"), "no replica 'vllm-9'; there are vllm-0, vllm-1"),
        (("hbm_ratio", 0.5, "rack:3"), "replica knobs take all, replica:NAME, pool:NAME"),
        (("edge_loss", 0.5, "client>engine:x"), "no zone 'x'"),
        (("edge_loss", 0.5, "client>moon"), "edges are client>gateway, gateway>router"),
        (("hbm_ratio", float("nan"), "all"), "want 0.001 to"),
    ],
)
def test_what_a_knob_does_not_take_is_refused_with_what_it_takes(
    given: tuple[str, float, str], says: str
) -> None:
    if "client>engine" in given[2]:
        given = (given[0], given[1], given[2].replace("client>engine", "client>gateway"))
    with pytest.raises(KnobError, match=says):
        World(plain(), seed=1).set(*given)


def test_a_setting_in_the_past_or_without_length_is_refused() -> None:
    world = World(plain(), seed=1)
    world.advance(10 * S)
    with pytest.raises(KnobError, match="start 5000000000 ns is past"):
        world.set("hbm_ratio", 0.5, "all", 5 * S, 20 * S)
    with pytest.raises(KnobError, match="want an end after its start"):
        world.set("hbm_ratio", 0.5, "all", 20 * S, 20 * S)


def test_overlapping_settings_multiply_add_or_the_last_holds() -> None:
    world = World(plain(), seed=1)
    world.set("hbm_ratio", 0.5, "all", 10 * S, 30 * S)
    world.set("hbm_ratio", 0.4, "vllm-1", 20 * S, 40 * S)
    world.set("edge_delay_s", 0.1, "client>gateway", 0, 9 * S)
    world.set("edge_delay_s", 0.2, "client>gateway", 0, 9 * S)
    world.set("max_num_seqs", 7, "all", 0, 30 * S)
    world.set("max_num_seqs", 9, "all", 10 * S, 20 * S)

    def over(name: str, thing: int, *at_s: int) -> list[float]:
        return [round(world.value_at(name, thing, s * S), 6) for s in at_s]

    assert over("hbm_ratio", 1, 5, 15, 25, 35, 45) == [1.0, 0.5, 0.2, 0.4, 1.0]
    assert over("hbm_ratio", 0, 25, 35) == [0.5, 1.0]
    assert over("edge_delay_s", 0, 5, 9) == [0.3, 0.0]
    assert over("max_num_seqs", 0, 5, 15, 25, 35) == [7.0, 9.0, 7.0, 256.0]


def test_a_knob_acts_from_its_start_to_its_end() -> None:
    world = World(plain(cancel_share=0.0), seed=3)
    world.feed(requests(400, 10.0, lora=-1))
    world.set("gateway_stall_share", 1.0, "gateway-1", 10 * S, 20 * S)
    world.set("gateway_stall_s", 5.0, "gateway-1", 10 * S, 20 * S)
    told = world.advance(END)
    wait = told.gateway_authed - told.gateway_in
    hit = (told.gateway_in > 10.1 * S) & (told.gateway_in < 19.9 * S) & (told.gateway == 0)
    clear = (told.gateway_in < 9.9 * S) | (told.gateway_in > 20.1 * S) | (told.gateway == 1)
    assert hit.sum() > 10 and np.all(wait[hit] > 5 * S)
    assert clear.sum() > 100 and np.all(wait[clear] < 1 * S)


CASES = [
    ("hbm_ratio", 0.4, ("prefill_end", "engine_last"), ("gateway_in", "tokenize_end")),
    ("tokenizer_factor", 40.0, ("engine_in", "tokenize_end"), ("gateway_in", "gateway_out")),
    ("retrieval_factor", 20.0, ("retrieval_start", "retrieval_end"), ("router_in", "engine_in")),
    ("guardrail_factor", 20.0, ("guardrail_start", "guardrail_end"), ("router_in", "engine_in")),
    ("gateway_factor", 30.0, ("gateway_in", "gateway_authed"), ("engine_in", "tokenize_end")),
    ("client_loop_delay_s", 0.3, ("client_start", "client_slot"), ("gateway_in", "engine_in")),
]


@pytest.mark.parametrize(("name", "value", "moves", "stays"), CASES, ids=[c[0] for c in CASES])
def test_a_fault_shows_where_its_cause_is(
    name: str, value: float, moves: tuple[str, str], stays: tuple[str, str]
) -> None:
    before, after = _told(), _told((name, value, "all"))
    moved = np.median(_ms(after, *moves)) - np.median(_ms(before, *moves))
    stayed = np.median(_ms(after, *stays)) - np.median(_ms(before, *stays))
    assert moved > 10.0
    assert abs(stayed) < 2.0


def test_a_buffering_gateway_holds_the_first_byte_and_not_the_last() -> None:
    before, after = _told(streamed=1), _told(("gateway_buffer_bytes", 16_384, "all"), streamed=1)
    held = np.median(_ms(after, "engine_first", "gateway_first"))
    assert held > 20 * np.median(_ms(before, "engine_first", "gateway_first"))
    np.testing.assert_array_equal(before.gateway_last, after.gateway_last)
    np.testing.assert_array_equal(before.engine_first, after.engine_first)


def test_a_dead_replica_gets_nothing_and_comes_back_when_loaded() -> None:
    world = World(plain(cancel_share=0.0), seed=3)
    world.feed(requests(3_000, 12.0, lora=-1))
    world.set("replica_down", 1, "vllm-0", 20 * S, 40 * S)
    told = world.advance(END)
    sent = told.engine_in[(told.replica == 0) & (told.engine_in >= 0)] / S
    # 70 GB of weights at 8 GB/s, then 60 s of preparation, then the health check.
    away = sent[(sent > 20) & (sent < 200)]
    assert 108 < away.min() < 120
    assert np.any(sent < 20)
    failed = told.outcome != Outcome.OK
    assert failed.sum() > 5
    assert told.client_start[failed].max() < 30 * S
    assert np.all(np.isin(told.http_status[failed], [200, 502, 503]))


def test_replicas_that_load_at_once_share_the_storage() -> None:
    ready = []
    for together in (1, 3):
        world = World(plain(3), seed=3)
        for r in range(together):
            world.set("replica_down", 1, f"vllm-{r}", 0, 10 * S)
        world.advance(400 * S)
        ready.append(world._state.replicas[0, w.R_READY] / S - 10 - 60)
    assert ready[1] == pytest.approx(3 * ready[0], rel=0.01)


def test_retries_multiply_the_tries_of_impatient_clients() -> None:
    fleet = plain(cancel_share=0.0, timeout_s=0.1, retry_max=3)
    told = _told(fleet=fleet)
    assert np.bincount(told.attempt)[3] > 30
    late = told.outcome == Outcome.CLIENT_TIMEOUT
    wait = told.client_end - told.client_start
    assert np.all(wait[late] == S // 10)


def test_lost_aborts_leave_the_engine_at_work_for_nobody() -> None:
    fleet = behaving(plain(), cancel_share=1.0, patience_s=0.3)
    heard, lost = _told(fleet=fleet), _told(("abort_lost", 1.0, "all"), fleet=fleet)
    assert np.any(heard.aborted >= 0) and not np.any(lost.aborted >= 0)
    left = (lost.outcome == Outcome.CANCELLED) & (lost.engine_in >= 0)
    whole = np.minimum(lost.output_tokens, lost.max_tokens)
    assert left.sum() > 50
    np.testing.assert_array_equal(lost.output_done[left], whole[left])
    assert np.any(lost.engine_end[left] > lost.client_end[left])
    longer = _told(
        ("abort_lost", 1.0, "all"), ("orphans_run_on", 1.0, "all"), fleet=fleet, max_tokens=600
    )
    left = (longer.outcome == Outcome.CANCELLED) & (longer.engine_in >= 0)
    made = longer.output_done[left]
    assert np.all((made == 600) | (made == longer.output_tokens[left]))
    assert np.mean(made == 600) > 0.5


def test_a_split_pool_prefills_on_one_side_and_decodes_on_the_other() -> None:
    fleet = behaving(split(10, clients=CLIENTS), cancel_share=0.0)
    fast = _told(fleet=fleet)
    slow = _told(("transfer_gbps", 0.2, "all"), fleet=fleet)
    assert set(fast.prefill_replica.tolist()) == {2, 3}
    assert set(fast.replica.tolist()) == {0, 1}
    kv = _ms(slow, "kv_transfer_start", "kv_transfer_end")
    assert np.median(kv) > 50 * np.median(_ms(fast, "kv_transfer_start", "kv_transfer_end"))
    # 320 KiB a token at 0.2 bytes/ns, and the wait for those before it.
    assert np.all(kv * 1e6 >= slow.prompt_tokens * 327_680 / 0.2)
    flows = _told(("transfer_flow_gbps", 0.2, "all"), fleet=fleet)
    kv = _ms(flows, "kv_transfer_start", "kv_transfer_end")
    alone = (flows.prompt_tokens * 327_680 / 0.2) / 1e6 + fleet.pools[0].transfer_latency_ms
    np.testing.assert_allclose(kv, alone, rtol=1e-6)


@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_a_replica_gets_traffic_by_its_weight(weight: float) -> None:
    told = _told(("route_policy", 0, "all"), ("route_weight", weight, "vllm-1"))
    share = np.mean(told.replica == 1)
    assert share == pytest.approx(weight / (weight + 1.0), abs=0.02)


def test_a_fleet_that_does_not_hold_together_is_refused_by_name() -> None:
    fleet = plain()
    with pytest.raises(FleetError, match="no host 'nowhere'"):
        World(replace(fleet, gateways=(replace(fleet.gateways[0], host="nowhere"),)), 1)
    with pytest.raises(FleetError, match="timeout_s = -1.0: want a number of at least 0"):
        World(behaving(fleet, timeout_s=-1.0), 1)


def test_requests_that_cannot_be_are_refused_by_row_and_column() -> None:
    world = World(plain(), 1)
    asked = requests(5, 1.0)
    asked.client[3] = 99
    with pytest.raises(ValueError, match="row 3, column client: 99; want 0 to 11"):
        world.feed(asked)
    world.advance(100 * S)
    with pytest.raises(ValueError, match="row 0, column arrival_ns: .* not past"):
        world.feed(requests(5, 1.0))


def test_a_flapping_link_spreads_the_steps_and_leaves_their_mean() -> None:
    means, lows = [], []
    for sigma in (0.0, 1.0):
        world = World(replace(plain(cancel_share=0.0), scrape_s=0.1), seed=3)
        world.feed(requests(250, 8.0, lora=-1))
        world.set("allreduce_jitter", sigma)
        world.advance(30 * S)
        seen = world.samples(30 * S)
        spent = seen.engine_real[-1, 0, c.PARTS_SUM + ALLREDUCE]
        means.append(spent / seen.engine[-1, 0, c.STEPS])
        lows.append(np.quantile(seen.engine_real[10:, 0, c.PARTS_NOW + ALLREDUCE], 0.1))
    assert means[1] == pytest.approx(means[0], rel=0.15)
    assert lows[1] < 0.6 * lows[0]


def test_a_replica_back_at_once_does_not_serve_before_it_has_loaded() -> None:
    for waits in (0.0, 1.0):
        world = World(plain(3, cancel_share=0.0), seed=3)
        world.feed(requests(1_300, 12.0, lora=-1))
        world.set("route_to_loading", waits)
        world.set("replica_down", 1, "vllm-2", 10 * S, 12 * S)
        told = world.advance(END)
        late = (told.replica == 2) & (told.client_start > 13 * S)
        ready = world._state.replicas[2, w.R_READY]
        first = told.prefill_end[late & (told.prefill_end > 0)].min()
        assert first > ready > 75 * S
        sent = (told.engine_in[late & (told.engine_in > 0)]).min()
        assert (sent < 20 * S) == bool(waits)
        assert world.under_way == 0
