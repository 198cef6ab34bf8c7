"""Scenarios become a plan: a fleet that all of them fit, who asks it, what breaks when.

composed = compose(["S8"], per_s=10.0, seed=1, severity="medium", begin_ns=..., end_ns=...)
Motion(composed.plan)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tailburn.lab.faults.catalogue import fleet_for, scenario
from tailburn.lab.faults.scenario import Scenario, Severity, usual
from tailburn.lab.fleet import Fleet
from tailburn.lab.run.companion import with_companion
from tailburn.lab.run.motion import Plan
from tailburn.lab.run.stacks import with_stacks
from tailburn.lab.run.traffic import Traffic
from tailburn.lab.telemetry.spans import Wiring
from tailburn.lab.workload import Change, Profile
from tailburn.lab.workload.rates import BLOCK_S
from tailburn.lab.workload.shapes import WEEK_S

BUSY_S: Final = 13 * 3600
"""A Monday's 13:00 UTC: when most is asked of a fleet."""


@dataclass(frozen=True)
class Thin:
    """Fewer requests at first: so many times the rate until then, to have a past soon."""

    factor: float
    until_ns: int


@dataclass(frozen=True)
class Composed:
    """What runs, and which product stands where."""

    plan: Plan
    wiring: Wiring
    scenarios: tuple[Scenario, ...]


def compose(
    names: Sequence[str],
    *,
    per_s: float,
    seed: int,
    begin_ns: int,
    end_ns: int,
    severity: str = "medium",
    ramp_ns: int = 0,
    profile: Profile | None = None,
    stacks: Mapping[str, str] | None = None,
    services: int = 1,
    thin: Thin | None = None,
    at_noon: bool = False,
) -> Composed:
    """A plan of these scenarios at once, all from `begin_ns` to `end_ns`; of none, a quiet fleet.

    `profile`: who asks, in place of whom the scenarios bring. `services`: 2 for code completion
    beside it, with half as many requests. `at_noon`: the faults begin in a Monday's busy hours,
    as they do for scenarios that need those; else the run begins on a Monday at 00:00.
    Raises FaultError for an unknown scenario and for scenarios whose fleets cannot be one.
    """
    found = tuple(dict.fromkeys(scenario(name) for name in names))
    asking = [Traffic(profile or _one_profile(found), per_s)]
    fleet = fleet_for(found, per_s)
    if services > 1:
        fleet, beside, first = with_companion(fleet, per_s / 2)
        asking = [replace(asking[0], model=fleet.models[0], groups=first), beside]
    fleet, wiring = with_stacks(with_room(fleet, asking), stacks or {})
    faults = tuple(
        each.fault(fleet, Severity(severity), begin_ns, end_ns, seed, ramp_ns=ramp_ns)
        for each in found
    )
    plan = Plan(
        fleet,
        tuple(asking),
        seed,
        start_s=_start_s(found, begin_ns, at_noon),
        faults=faults,
        shape=(*_thinned(thin), *_shape(found, begin_ns, seed)),
    )
    return Composed(plan, wiring, found)


def _thinned(thin: Thin | None) -> tuple[Change, ...]:
    return () if thin is None else (Change("arrival_factor", thin.factor, 0, thin.until_ns),)


def _shape(scenarios: Sequence[Scenario], until_ns: int, seed: int) -> tuple[Change, ...]:
    """What the time before them is like."""
    return tuple(change for each in scenarios for change in each.shape(until_ns, seed))


def _start_s(scenarios: Sequence[Scenario], begin_ns: int, at_noon: bool) -> int:
    """Where in the week a run begins."""
    from_monday = any(each.from_monday for each in scenarios)
    if from_monday or not (at_noon or any(each.busy for each in scenarios)):
        return 0
    return (BUSY_S - begin_ns // 10**9) % WEEK_S // BLOCK_S * BLOCK_S


def _one_profile(scenarios: Sequence[Scenario]) -> Profile:
    """The usual traffic, or the one that a scenario needs: the first that differs."""
    ordinary = usual()
    brought = (each.profile() for each in scenarios)
    return next((one for one in brought if one.name != ordinary.name), ordinary)


def with_room(fleet: Fleet, asking: Sequence[Traffic]) -> Fleet:
    """The fleet with a client process at least for each client of the workloads."""
    need = sum(len(one.profile.clients.names) for one in asking)
    if fleet.clients.count >= need:
        return fleet
    return replace(fleet, clients=replace(fleet.clients, count=need))
