"""How a run is cut, copied or resumed changes nothing of what comes out."""

import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailburn.lab.fleet import Fleet
from tailburn.lab.records import Attempts, Requests
from tailburn.lab.world.samples import Samples
from tailburn.lab.world.world import World
from tests.lab.world.fleets import END, FAULTS, S, fleets, plain, requests, same


def _cut(world: World, asked: Requests, cuts: list[int]) -> tuple[Attempts, Samples]:
    """Feed and run the world piece by piece."""
    told, found, begin = [], [], 0
    for end in [*sorted(cuts), END]:
        inside = (asked.arrival_ns >= begin) & (asked.arrival_ns < end)
        world.feed(asked.take(inside))
        told.append(world.advance(end))
        if end < END:
            found.append(world.samples(end))
        begin = end
    return Attempts.join(told), Samples.join(found)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(
    fleets(),
    st.lists(st.integers(0, 60 * S), min_size=1, max_size=6),
    st.sampled_from(FAULTS),
)
def test_cuts_change_nothing(fleet: Fleet, cuts: list[int], fault: tuple[str, float, str]) -> None:
    asked = requests(150, 12.0, seed=4)
    whole, pieces = World(fleet, seed=9), World(fleet, seed=9)
    for world in (whole, pieces):
        world.set(*fault, start_ns=4 * S, end_ns=30 * S)
    one, sampled = _cut(whole, asked, [61 * S])
    other, _ = _cut(pieces, asked, [*cuts, 61 * S])
    same(one, other)
    assert len(sampled) == 5


def test_a_setting_given_late_is_as_one_given_early() -> None:
    asked = requests(200, 10.0)
    early, late = World(plain(), seed=2), World(plain(), seed=2)
    early.set("hbm_ratio", 0.5, "all", 10 * S, 15 * S)
    early.feed(asked)
    late.feed(asked)
    told = [late.advance(5 * S)]
    late.set("hbm_ratio", 0.5, "all", 10 * S, 15 * S)
    same(early.advance(END), Attempts.join([*told, late.advance(END)]))


def test_a_window_s_end_is_left_to_the_next_so_that_a_knob_set_there_still_acts() -> None:
    asked = requests(3, 1.0)
    asked.arrival_ns[:] = 10 * S
    early, late = World(plain(), seed=2), World(plain(), seed=2)
    for world in (early, late):
        world.feed(asked)
    early.set("client_loop_delay_s", 0.5, "all", 10 * S, 11 * S)
    assert len(late.advance(10 * S)) == 0
    late.set("client_loop_delay_s", 0.5, "all", 10 * S, 11 * S)
    told = early.advance(END)
    assert np.all(told.client_slot - told.client_start == S // 2)
    same(told, late.advance(END))


def test_a_cut_at_an_arrival_s_own_instant_changes_nothing() -> None:
    asked = requests(60, 10.0)
    cuts = asked.arrival_ns[::7].tolist()
    one, _ = _cut(World(plain(), seed=2), asked, [61 * S])
    other, _ = _cut(World(plain(), seed=2), asked, [*cuts, 61 * S])
    same(one, other)


def test_another_seed_gives_another_run() -> None:
    asked = requests(60, 10.0)
    ends = []
    for seed in (1, 2):
        world = World(plain(), seed=seed)
        world.feed(asked)
        ends.append(world.advance(END).client_end)
    assert not np.array_equal(ends[0], ends[1])


@pytest.mark.parametrize("tokens", [False, True], ids=["without token instants", "with them"])
def test_a_fork_goes_on_as_the_world_it_came_from(tokens: bool) -> None:
    world = World(plain(timeout_s=2.0), seed=2, tokens=tokens)
    world.feed(requests(200, 10.0))
    world.set("hbm_ratio", 0.5, "all", 10 * S, 15 * S)
    world.advance(5 * S)
    snapshot = pickle.loads(pickle.dumps(world.snapshot()))
    on = world.advance(END)
    same(on, World.of(snapshot).advance(END))
    fork = World.of(snapshot)
    fork.set("hbm_ratio", 0.2, "all", 6 * S, 9 * S)
    forked = fork.advance(END)
    assert forked.client_end.max() != on.client_end.max()
    world.restore(snapshot)
    same(on, world.advance(END))


def test_scrapes_come_at_their_period_and_once() -> None:
    world = World(plain(), seed=2)
    world.feed(requests(200, 10.0))
    world.advance(50 * S)
    first = world.samples(40 * S)
    assert first.at_ns.tolist() == [0, 15 * S, 30 * S]
    assert world.samples(50 * S).at_ns.tolist() == [45 * S]
    assert len(world.samples(50 * S)) == 0
    assert first.engine.shape[:2] == (3, 2)


def test_token_instants_are_those_of_first_and_last() -> None:
    world = World(plain(), seed=2, tokens=True)
    world.feed(requests(100, 10.0))
    told = world.advance(END)
    lengths = np.diff(told.token_offset)
    np.testing.assert_array_equal(lengths, told.output_done)
    np.testing.assert_array_equal(told.tokens[told.token_offset[:-1]], told.engine_first)
    np.testing.assert_array_equal(told.tokens[told.token_offset[1:] - 1], told.engine_last)
    gaps = np.diff(told.tokens)
    inside = np.ones(len(told.tokens), bool)
    inside[told.token_offset[1:] - 1] = False
    assert np.all(gaps[inside[:-1]] >= 0)
