"""A run goes on from where it stood, and faults begin when they are told to."""

import numpy as np
import pytest

from tailburn.lab.faults.parts import Fault, Severity, Truth, Turn
from tailburn.lab.fleet import standard
from tailburn.lab.records import Attempts
from tailburn.lab.run import FORK_MINUTES, Motion, MotionSnapshot, Plan, RunError, Traffic
from tailburn.lab.workload import Change, named

MINUTE = 60 * 10**9


def broken(*turns: Turn, changes: tuple[Change, ...] = ()) -> Fault:
    truth = Truth("S0", "a knob", "none", "none", "none", Severity.STRONG, 0, 1)
    return Fault(turns, changes, (), truth)


def plan(seed: int = 5, **more: object) -> Plan:
    traffic = (Traffic(named("azure-conv"), 4.0),)
    return Plan(standard(4.0, clients=200), traffic, seed, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def quiet() -> MotionSnapshot:
    motion = Motion(plan())
    for _ in motion.minutes(FORK_MINUTES):
        pass
    return motion.snapshot()


def run_on(motion: Motion, minutes: int = FORK_MINUTES) -> Attempts:
    return Attempts.join([each.attempts for each in motion.minutes(minutes)])


def same(one: Attempts, other: Attempts) -> bool:
    return all(np.array_equal(getattr(one, c.name), getattr(other, c.name)) for c in one.columns())


def test_a_fork_without_a_fault_is_the_run_itself(quiet: MotionSnapshot) -> None:
    whole = Attempts.join([each.attempts for each in Motion(plan()).minutes(2 * FORK_MINUTES)])
    forked = run_on(Motion.of(quiet))
    assert len(forked) > 1_000
    assert same(forked, whole.take(slice(len(whole) - len(forked), None)))


def test_a_run_is_the_same_in_slices_of_any_length(quiet: MotionSnapshot) -> None:
    whole = run_on(Motion.of(quiet))
    motion, parts = Motion.of(quiet), []
    for until_s in (601, 607, 650.5, 719, 720, 1_011, 1_200):
        parts.append(motion.advance(round(until_s * 1e9)).attempts)
    assert same(Attempts.join(parts), whole)


def test_a_fault_of_the_world_begins_and_ends_at_its_instants(quiet: MotionSnapshot) -> None:
    start, end = quiet.fed_minutes * MINUTE + 2 * MINUTE, quiet.fed_minutes * MINUTE + 5 * MINUTE
    stall = broken(
        Turn("gateway_stall_share", 1.0, "all", start, end),
        Turn("gateway_stall_s", 7.0, "all", start, end),
    )
    told = run_on(Motion.of(quiet, [stall]))
    took_s = (told.gateway_authed - told.gateway_in) / 1e9
    inside = (told.gateway_in >= start) & (told.gateway_in < end)
    reached = told.gateway_authed >= 0
    assert np.all(took_s[inside & reached] >= 7.0)
    assert np.all(took_s[~inside & reached] < 3.0)


def test_a_change_of_the_workload_begins_and_ends_at_its_instants(quiet: MotionSnapshot) -> None:
    begin = quiet.fed_minutes * MINUTE
    surge = Change("arrival_factor", 3.0, begin + 3 * MINUTE, begin + 6 * MINUTE)
    before = run_on(Motion.of(quiet)).arrival_ns
    after = run_on(Motion.of(quiet, [broken(changes=(surge,))])).arrival_ns
    edges = begin + np.array([0, 3, 6, 9]) * MINUTE
    grew = np.histogram(after, edges)[0] / np.histogram(before, edges)[0]
    assert 2.3 < grew[1] < 3.7
    assert grew[0] == 1.0
    assert 0.7 < grew[2] < 1.3


def test_two_workloads_keep_their_models_clients_and_prefixes_apart() -> None:
    fleet = standard(4.0, clients=400)
    both = (
        Traffic(named("azure-conv"), 3.0, groups=("app",)),
        Traffic(named("mooncake"), 2.0, groups=("laptop",)),
    )
    motion = Motion(Plan(fleet, both, seed=2))
    told = run_on(motion, 20)
    groups = motion.world.arrays.client_group[told.client]
    assert set(groups.tolist()) == {0, 2}
    ours, theirs = told.take(groups == 0), told.take(groups == 2)
    assert not set(ours.prefix[ours.prefix > 0]) & set(theirs.prefix[theirs.prefix > 0])
    assert np.median(theirs.prompt_tokens) > 2 * np.median(ours.prompt_tokens)


def test_a_model_or_a_group_that_is_not_there_is_named() -> None:
    conv = named("azure-conv")
    with pytest.raises(RunError, match="no model 'gpt' in the fleet; it has llama-3.1-70b"):
        Motion(Plan(standard(4.0), (Traffic(conv, 1.0, model="gpt"),), seed=1))
    with pytest.raises(RunError, match="no clients 'web' in the fleet; it has app, app-b, laptop"):
        Motion(Plan(standard(4.0), (Traffic(conv, 1.0, groups=("app", "web")),), seed=1))
    with pytest.raises(RunError, match="at least one workload"):
        Motion(Plan(standard(4.0), (), seed=1))
