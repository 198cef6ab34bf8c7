"""Several faults in one time: pairs at once, slow ramps, short blips.

    faults = combination("ramp-memory").faults(fleet, Severity.MEDIUM, start_ns, end_ns, seed=1)

Each part is a fault of its own, with its own truth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tailburn.lab.faults.catalogue import scenario
from tailburn.lab.faults.scenario import Fault, FaultError, Severity
from tailburn.lab.fleet import Fleet
from tailburn.lab.nearest import did_you_mean
from tailburn.lab.workload import Profile

MINUTE_NS: Final = 60 * 10**9
BLIP_NS: Final = 2 * MINUTE_NS
"""Over before anybody comes."""
BLIP_EVERY_NS: Final = 20 * MINUTE_NS
RAMP_HOURS: Final = 6


@dataclass(frozen=True)
class Part:
    """A scenario within the time of a combination, from one share of it to another."""

    scenario: str
    begins: float = 0.0
    ends: float = 1.0
    ramp: float = 0.0
    """It grows evenly over so much of its own time."""


@dataclass(frozen=True)
class Combination:
    """Parts that overlap, or one part that ramps or comes in blips."""

    name: str
    title: str
    parts: tuple[Part, ...]
    expect: str
    on: str
    """The scenario whose fleet and traffic it has."""
    blips: bool = False
    """Each part comes for BLIP_NS, again and again."""
    least_ns: int = 20 * MINUTE_NS
    """It makes sense in a time as long as this."""

    def fleet(self, per_s: float) -> Fleet:
        """One on which all its parts can happen."""
        return scenario(self.on).fleet(per_s)

    def profile(self) -> Profile:
        """The traffic that it needs."""
        return scenario(self.on).profile()

    def faults(
        self, fleet: Fleet, severity: Severity, start_ns: int, end_ns: int, seed: int
    ) -> tuple[Fault, ...]:
        """Its parts' faults, in order; FaultError for a time that is too short."""
        if not 0 <= start_ns <= end_ns - self.least_ns:
            raise FaultError(
                f"{self.name}: from {start_ns} until {end_ns} ns; want "
                f"{self.least_ns / MINUTE_NS:g} minutes at least"
            )
        found: list[Fault] = []
        for number, part in enumerate(self.parts):
            one = scenario(part.scenario)
            for begin, end in self._times(part, start_ns, end_ns):
                ramp_ns = int(part.ramp * (end - begin))
                found.append(one.fault(fleet, severity, begin, end, seed + number, ramp_ns))
        return tuple(found)

    def _times(self, part: Part, start_ns: int, end_ns: int) -> Sequence[tuple[int, int]]:
        length = end_ns - start_ns
        begin, end = start_ns + int(part.begins * length), start_ns + int(part.ends * length)
        if not self.blips:
            return [(begin, end)]
        return [(at, at + BLIP_NS) for at in range(begin, end - BLIP_NS + 1, BLIP_EVERY_NS)]


_ALL: Final = (
    Combination(
        "surge-and-eviction",
        "More requests come, and the prefix cache keeps less: S1 and S15 at once",
        (Part("S1"), Part("S15", 0.25)),
        "Offered load is up, and computed tokens more than that: both causes, the queue first.",
        "S15",
    ),
    Combination(
        "release-on-monday",
        "A slow release goes out during a Monday's rise: S9 within N1",
        (Part("N1"), Part("S9", 0.4)),
        "Load explains part of the delay; the steps are longer than the batch predicts from the "
        "release's minute on, on new pods alone. The Monday is no fault, the release is.",
        "S9",
    ),
    Combination(
        "ramp-memory",
        f"Memory bandwidth fades over {RAMP_HOURS} hours: S8 as a slow ramp",
        (Part("S8", ramp=1.0),),
        "No minute differs from the one before; against the same load of another day TPOT is up.",
        "S8",
        least_ns=RAMP_HOURS * 60 * MINUTE_NS,
    ),
    Combination(
        "blip-gateway",
        "A gateway stalls for two minutes now and then: S24 in blips",
        (Part("S24"),),
        "Two minutes in twenty are bad, and over before anybody could look: the budget burns "
        "slowly, and an alert that has fired resets between them.",
        "S24",
        blips=True,
    ),
    Combination(
        "blip-host",
        "Engines' hosts are throttled for two minutes now and then: S10 in blips",
        (Part("S10"),),
        "As blip-gateway, inside the engine: TPOT of all streams for two minutes.",
        "S10",
        blips=True,
    ),
)
COMBINATIONS: Final[Mapping[str, Combination]] = MappingProxyType({c.name: c for c in _ALL})


def combination(name: str) -> Combination:
    """The combination of that name; FaultError with the nearest otherwise."""
    if name in COMBINATIONS:
        return COMBINATIONS[name]
    raise FaultError(f"no combination {name!r}; {did_you_mean(name, sorted(COMBINATIONS))}")


def blip(name: str, fleet: Fleet, severity: Severity, start_ns: int, seed: int) -> Fault:
    """Any scenario for two minutes."""
    return scenario(name).fault(fleet, severity, start_ns, start_ns + BLIP_NS, seed)
