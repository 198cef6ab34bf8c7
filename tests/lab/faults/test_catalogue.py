"""Scenarios are found by id and name, hold together, and run on their own fleets."""

import re
from dataclasses import replace

import pytest

from tailburn.lab.faults.catalogue import SCENARIOS, fleet_for, scenario
from tailburn.lab.faults.parts import STEPS, FaultError, Severity, Turn
from tailburn.lab.faults.ramps import ramped
from tailburn.lab.faults.scenario import Scenario
from tailburn.lab.fleet import arrays_of, standard
from tailburn.lab.world.world import World

S = 10**9
HOUR = 3_600 * S
ALL = list(SCENARIOS.values())


@pytest.mark.parametrize("text", ["S8", "s8", "memory-slowdown", " S8 "])
def test_a_scenario_is_found_by_id_and_by_name(text: str) -> None:
    assert scenario(text).id == "S8"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("demand-serge", "no scenario 'demand-serge'; did you mean demand-surge"),
        ("memory-slow", "did you mean memory-slowdown"),
        ("%", r"no scenario '%'; did you mean \S+ or \S+ or \S+\?$"),
    ],
)
def test_an_unknown_scenario_is_answered_with_the_nearest(text: str, says: str) -> None:
    with pytest.raises(FaultError, match=says):
        scenario(text)


def test_an_unknown_severity_is_answered_with_the_nearest() -> None:
    with pytest.raises(FaultError, match="no severity 'strnog'; did you mean strong"):
        Severity("strnog")


@pytest.mark.parametrize("one", ALL, ids=lambda s: s.id)
def test_a_scenario_says_what_it_is(one: Scenario) -> None:
    assert re.fullmatch(r"[SN]\d+", one.id) and re.fullmatch(r"[a-z0-9-]+", one.name)
    assert one.step in STEPS and one.hop and one.verdict and one.cause
    assert one.pages == (one.id[0] == "S")
    assert min(len(one.broken), len(one.expect), len(one.why)) > 30
    assert one.confusable and all(len(c.words) > 15 for c in one.confusable)
    named = [c.scenario for c in one.confusable]
    assert one.id not in named and set(named) <= set(SCENARIOS), named


@pytest.mark.parametrize("one", ALL, ids=lambda s: s.id)
def test_a_fault_can_be_set_on_its_fleet_at_every_severity_and_grown(one: Scenario) -> None:
    arrays_of(one.fleet(100.0))
    fleet, clients = one.fleet(1.0), one.profile().clients
    made = [one.fault(fleet, s, HOUR, 2 * HOUR, seed=7) for s in Severity]
    assert made == [one.fault(fleet, s, HOUR, 2 * HOUR, seed=7) for s in Severity]
    if one.pages:
        assert len({(f.settings, f.changes, f.telemetry) for f in made}) == 3
    for fault in made:
        for change in fault.changes:
            assert clients.scope(change.scope).any()
        assert fault.truth.scenario == one.id and fault.truth.as_json()["severity"]
        times = [
            *((t.start_ns, t.end_ns) for t in fault.settings),
            *((t.start_ns, t.end_ns) for t in fault.changes),
            *((t.start_ns, t.end_ns) for t in fault.telemetry),
        ]
        assert times and all(HOUR <= a < b <= 2 * HOUR for a, b in times)
    world = World(fleet, seed=1)
    for turn in one.fault(fleet, Severity.MEDIUM, HOUR, 2 * HOUR, 7, ramp_ns=180 * S).settings:
        world.set(turn.knob, turn.value, turn.scope, turn.start_ns, turn.end_ns)


def test_a_ramp_grows_evenly_to_the_whole_fault() -> None:
    fleet = scenario("S8").fleet(10.0)
    fault = scenario("S8").fault(fleet, Severity.STRONG, HOUR, 2 * HOUR, 1, ramp_ns=4 * 60 * S)
    values = [(t.value, (t.start_ns - HOUR) // S, (t.end_ns - HOUR) // S) for t in fault.settings]
    assert [(round(v, 3), a, b) for v, a, b in values] == [
        (0.95, 0, 60), (0.85, 60, 120), (0.75, 120, 180), (0.65, 180, 240), (0.6, 240, 3600),
    ]  # fmt: skip


def test_a_ramp_grows_a_train_of_bursts_from_burst_to_burst() -> None:
    whole = scenario("S8").fault(scenario("S8").fleet(10.0), Severity.STRONG, 0, HOUR, 1)
    bursts = tuple(Turn("hbm_ratio", 0.6, "all", a * 60 * S, a * 60 * S + S) for a in (0, 2, 9))
    grown = ramped(replace(whole, settings=bursts), standard(10.0), 4 * 60 * S)
    assert [(round(t.value, 3), t.start_ns // S) for t in grown.settings] == [
        (0.95, 0), (0.75, 120), (0.6, 540),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("start", "end", "ramp", "says"),
    [
        (5, 5, 0, "S8: from 5 until 5 ns; want 0 <= from < until"),
        (-1, 5, 0, "S8: from -1 until 5 ns"),
        (0, 5, 6, "S8: ramp of 6 ns; want 0 to 5 ns"),
    ],
)
def test_a_time_that_is_none_is_refused(start: int, end: int, ramp: int, says: str) -> None:
    with pytest.raises(FaultError, match=says):
        scenario("S8").fault(standard(1.0), Severity.WEAK, start, end, 1, ramp)


def test_one_fleet_serves_several_scenarios_unless_they_need_different_kinds() -> None:
    both = fleet_for([scenario("S1"), scenario("S8")], 10.0)
    assert both.pools[0].scheduler.max_num_seqs < 256 and both.pools[1].name == "small"
    assert fleet_for([], 10.0) == standard(10.0)
    talks = fleet_for([scenario("S1"), scenario("S15")], 10.0)
    assert talks == scenario("S15").fleet(10.0), "a surge can happen on any fleet"
    with pytest.raises(FaultError, match="S15 and S17 need fleets of different kinds"):
        fleet_for([scenario("S15"), scenario("S17"), scenario("S1")], 10.0)
