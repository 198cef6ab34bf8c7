"""Upstream calls that gateways and routers try again, and the client never knows of."""

from dataclasses import replace

import numpy as np
import pytest

from tailburn.lab.fleet import Fleet
from tailburn.lab.records import Attempts, Outcome
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.world import World
from tests.lab.world.fleets import END, S, plain, requests

SLOW_S = 20.0


def _fleet(where: str, retries: int, timeout_s: float = 0.0) -> Fleet:
    """Two replicas; gateways or their router try again, as said."""
    fleet = plain(cancel_share=0.0, retry_max=0)
    tries = {"retries": retries, "timeout_s": timeout_s}
    if where == "gateway":
        return replace(fleet, gateways=tuple(replace(g, **tries) for g in fleet.gateways))  # type: ignore[arg-type]
    pools = tuple(replace(p, router=replace(p.router, **tries)) for p in fleet.pools)  # type: ignore[arg-type]
    return replace(fleet, pools=pools)


def _told(fleet: Fleet, *turned: tuple[str, float, str], tokens: bool = False) -> Attempts:
    world = World(fleet, seed=3, tokens=tokens)
    world.feed(requests(250, 8.0, lora=-1, structured=0))
    for one in turned:
        world.set(*one)
    told = world.advance(END)
    assert world.under_way == 0
    return told


def _dying(fleet: Fleet) -> Attempts:
    """One of two replicas dies while it is at work, and its health check takes long."""
    world = World(fleet, seed=3)
    world.feed(requests(250, 8.0, lora=-1))
    world.set("health_check_s", 60.0)
    world.set("replica_down", 1, "vllm-0", 10 * S)
    return world.advance(END)


@pytest.mark.parametrize("where", ["gateway", "router"])
def test_a_dead_replica_s_requests_go_to_the_other_and_no_client_sees_it(where: str) -> None:
    without, told = _dying(_fleet(where, 0)), _dying(_fleet(where, 2))
    lost = without.outcome != Outcome.OK
    assert lost.sum() > 20 and without.upstream_tries.max() == 1
    again = told.upstream_tries > 1
    assert again.sum() > 20
    assert np.all(told.replica[again] == 1)
    # What had been passed on of a stream cannot be taken back.
    failed = told.outcome != Outcome.OK
    assert failed.sum() < lost.sum() / 2
    assert np.all(told.engine_first[failed] >= 0)
    assert np.all(told.attempt == 0)


@pytest.mark.parametrize("where", ["gateway", "router"])
def test_the_seconds_of_a_call_given_up_lie_before_the_engine_s_instants(where: str) -> None:
    limit_s = 2.0
    stuck = ("tokenizer_factor", 1e6, "vllm-0")
    told = _told(_fleet(where, 3, limit_s), stuck)
    again = (told.upstream_tries > 1) & (told.outcome == Outcome.OK)
    assert again.sum() > 50
    lost_s = (told.engine_in - told.upstream_first)[again] / S
    tries = told.upstream_tries[again] - 1
    np.testing.assert_allclose(lost_s, limit_s * tries, rtol=0.02)
    assert np.all(told.replica[again] == 1)
    assert np.all(told.client_first[again] - told.client_start[again] > limit_s * S)
    out = told.gateway_out if where == "gateway" else told.router_out
    assert np.all((told.engine_in - out)[again] < S / 10)
    first_call = told.upstream_first == told.gateway_out
    assert np.all(first_call[again] == (where == "router"))


@pytest.mark.parametrize("where", ["gateway", "router"])
def test_when_no_try_is_left_the_client_has_504(where: str) -> None:
    stuck = ("tokenizer_factor", 1e6, "all")
    told = _told(_fleet(where, 1, 2.0), stuck)
    late = told.http_status == 504
    assert late.mean() > 0.9
    assert np.all(told.upstream_tries[late] == 2)
    took = (told.client_end - told.upstream_first)[late] / S
    assert np.all((took > 4.0) & (took < 4.5))


def test_a_call_given_up_still_costs_the_engine_when_the_hang_up_is_lost() -> None:
    slow = ("hbm_ratio", 0.02, "all")
    busy = {}
    for lost in (0.0, 1.0):
        world = World(_fleet("gateway", 2, 0.4), seed=3)
        world.feed(requests(250, 8.0, lora=-1))
        world.set(*slow)
        world.set("abort_lost", lost)
        told = world.advance(END)
        assert (told.upstream_tries > 1).sum() > 100
        made = world.samples(END).engine[-1].sum(axis=0)
        busy[lost] = made[c.GENERATION_TOKENS] - told.output_done.sum()
    assert busy[1.0] > busy[0.0] + 1_000


def test_token_instants_are_those_of_the_call_that_answered() -> None:
    pauses = (("gc_pause_s", 3.0, "vllm-0"), ("gc_every_s", 5.0, "vllm-0"))
    told = _told(_fleet("gateway", 2, 1.5), *pauses, tokens=True)
    ok = (told.outcome == Outcome.OK) & (told.upstream_tries > 1)
    assert ok.sum() > 5
    first = told.tokens[told.token_offset[:-1][ok]]
    last = told.tokens[told.token_offset[1:][ok] - 1]
    np.testing.assert_array_equal(first, told.engine_first[ok])
    np.testing.assert_array_equal(last, told.engine_last[ok])


def test_without_retries_nothing_is_tried_twice() -> None:
    told = _told(_fleet("gateway", 0))
    assert np.all(told.upstream_tries == 1)
    np.testing.assert_array_equal(told.upstream_first, told.gateway_out)
