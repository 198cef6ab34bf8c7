"""A scenario: what is broken, on which fleet, what one should see, and what it looks like.

    fleet = S8.fleet(per_s=10.0)
    fault = S8.fault(fleet, Severity.MEDIUM, start_ns, end_ns, seed=1)
    for turn in fault.settings:
        world.set(turn.knob, turn.value, turn.scope, turn.start_ns, turn.end_ns)

A scenario is written as a function of its `Site`, that breaks something there at its cause.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np

from tailburn.lab.faults.parts import (
    STEPS,
    Confusable,
    Fault,
    FaultError,
    Severity,
    TelemetryFault,
    Truth,
    Turn,
)
from tailburn.lab.faults.ramps import ramped
from tailburn.lab.fleet import Fleet, Role, standard
from tailburn.lab.workload import Change, Profile, named

__all__ = [
    "STEPS",
    "Broken",
    "Confusable",
    "Fault",
    "FaultError",
    "Need",
    "Scenario",
    "Severity",
    "Site",
    "TelemetryFault",
    "Truth",
    "Turn",
    "usual",
]

T = TypeVar("T")
Need = Callable[[Fleet, float], Fleet]
"""The fleet, for so many requests/s, with what a scenario needs put in."""
Affected = Mapping[str, Sequence[str]]

WORKLOAD: Final = "azure-conv"


Shape = Callable[[int, int], tuple[Change, ...]]
"""What the traffic does by itself until an instant (ns), by a seed: no fault, and known of it."""


def even(until_ns: int, seed: int) -> tuple[Change, ...]:
    """Nothing beyond what its profile says."""
    return ()


def usual() -> Profile:
    """The traffic that a scenario has unless it needs another."""
    return named(WORKLOAD)


@dataclass(frozen=True)
class Broken:
    """What a scenario does at a site."""

    settings: tuple[Turn, ...] = ()
    changes: tuple[Change, ...] = ()
    telemetry: tuple[TelemetryFault, ...] = ()
    affected: Affected = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Site:
    """Where and when something is broken, and how far."""

    fleet: Fleet
    severity: Severity
    start_ns: int
    end_ns: int
    seed: int

    def by(self, weak: T, medium: T, strong: T) -> T:
        """The one of the three that the severity asks for."""
        return {Severity.WEAK: weak, Severity.MEDIUM: medium, Severity.STRONG: strong}[
            self.severity
        ]

    def turn(self, knob: str, value: float, scope: str = "all") -> Turn:
        """A knob turned for the whole time."""
        return Turn(knob, float(value), scope, self.start_ns, self.end_ns)

    def change(self, knob: str, value: float, scope: str = "all") -> Change:
        """The workload changed for the whole time."""
        return Change(knob, float(value), self.start_ns, self.end_ns, scope)

    def told(self, kind: str, value: float, scope: str = "all") -> TelemetryFault:
        """Telemetry spoilt for the whole time."""
        return TelemetryFault(kind, float(value), scope, self.start_ns, self.end_ns)

    def one_of(self, names: Sequence[str]) -> str:
        """One of the names, by the seed."""
        return names[int(np.random.default_rng(self.seed).integers(len(names)))]

    @property
    def pools(self) -> tuple[str, ...]:
        """All pools."""
        return tuple(pool.name for pool in self.fleet.pools)

    def replicas(self) -> tuple[str, ...]:
        """Replicas of all pools but those that only prefill."""
        return tuple(
            replica.name
            for each in self.fleet.pools
            if each.role != Role.PREFILL
            for replica in each.replicas
        )


@dataclass(frozen=True)
class Scenario:
    """One thing that can go wrong; or, where `step` is `none`, that looks as if it had."""

    id: str
    name: str
    title: str
    broken: str
    """What is set, where, for each severity."""
    expect: str
    """What one should see."""
    why: str
    """Why one sees that."""
    confusable: tuple[Confusable, ...]
    verdict: str
    step: str
    hop: str
    cause: str
    breaks: Callable[[Site], Broken]
    needs: tuple[Need, ...] = ()
    base: Callable[[float], Fleet] = standard
    traffic: Callable[[], Profile] = usual
    shape: Shape = even
    """Of the time before it."""
    pages: bool = True
    busy: bool = False
    """It bites only where the fleet is near its cap: begin it in the busy hours."""
    from_monday: bool = False
    """It counts the hours of the week from the run's beginning: begin that on a Monday at 00:00."""

    def __post_init__(self) -> None:
        if self.step not in STEPS:
            raise FaultError(f"{self.id}: step {self.step!r}; want one of {', '.join(STEPS)}")

    def fleet(self, per_s: float) -> Fleet:
        """The fleet it needs, sized for a mean of `per_s` requests/s over a week."""
        fleet = self.base(per_s)
        for need in self.needs:
            fleet = need(fleet, per_s)
        return fleet

    def profile(self) -> Profile:
        """The traffic it needs."""
        return self.traffic()

    def fault(
        self,
        fleet: Fleet,
        severity: Severity,
        start_ns: int,
        end_ns: int,
        seed: int,
        ramp_ns: int = 0,
    ) -> Fault:
        """It, on a fleet, from `start_ns` until `end_ns`; `ramp_ns`: it grows evenly for so long.

        The seed says which of several like things it hits. FaultError for a time that is none.
        """
        if not 0 <= start_ns < end_ns:
            raise FaultError(
                f"{self.id}: from {start_ns} until {end_ns} ns; want 0 <= from < until"
            )
        if not 0 <= ramp_ns <= end_ns - start_ns:
            raise FaultError(
                f"{self.id}: ramp of {ramp_ns} ns; want 0 to {end_ns - start_ns} ns, its time"
            )
        severity = Severity(severity)
        broken = self.breaks(Site(fleet, severity, start_ns, end_ns, seed))
        truth = Truth(
            scenario=self.id,
            cause=self.cause,
            hop=self.hop,
            step=self.step,
            verdict=self.verdict,
            severity=severity,
            start_ns=start_ns,
            end_ns=end_ns,
            affected=MappingProxyType({k: tuple(v) for k, v in broken.affected.items()}),
            pages=self.pages,
        )
        fault = Fault(broken.settings, broken.changes, broken.telemetry, truth)
        return ramped(fault, fleet, ramp_ns) if ramp_ns else fault
