"""What is run: scenarios x severities x rates x seeds, controls and quiet time between them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.truth.slowdowns import SLOWDOWN
from tailburn.lab.faults.catalogue import SCENARIOS, scenario
from tailburn.lab.faults.combined import COMBINATIONS, Combination
from tailburn.lab.faults.parts import Fault
from tailburn.lab.faults.scenario import Scenario, Severity
from tailburn.lab.fleet import Fleet
from tailburn.lab.run import Traffic
from tailburn.lab.run.compose import with_room
from tailburn.lab.score.minutes import MINUTE_NS
from tailburn.lab.workload import Change, Profile

LEAD: Final = 60
"""Minutes of a run before its fault; so many of it, so many after."""
FAULT: Final = 45
AFTER: Final = 75
QUIET: Final = "quiet"
ASKED: Final = 15
"""Minutes of a fault that cause finders are asked about."""
FULL_SEEDS: Final = {1.0: 10, 10.0: 10, 100.0: 2}
SEVERITIES: Final = ("weak", "medium", "strong")
_OWN: Final[Mapping[str, Scenario | Combination]] = {**COMBINATIONS, SLOWDOWN.name: SLOWDOWN}
"""What is run beside the catalogue's scenarios."""


@dataclass(frozen=True)
class Cell:
    """One run: what is broken (QUIET: nothing), how far, at what rate, with which seed."""

    what: str
    severity: str
    per_s: float
    seed: int
    quiet_minutes: int = 0

    @property
    def key(self) -> str:
        """Tells it from all others, in file and log."""
        return f"{self.what}/{self.severity}/{self.per_s:g}/{self.seed}"

    @property
    def _of(self) -> Scenario | Combination:
        if self.what == QUIET:
            return scenario("S21")
        return _OWN.get(self.what) or scenario(self.what)

    def profile(self, given: Profile | None) -> Profile:
        """Who asks: the workload handed in, or the one that it needs."""
        return given or self._of.profile()

    def shape(self, until_ns: int) -> tuple[Change, ...]:
        """What its traffic does by itself, before anything is broken."""
        one = self._of
        return one.shape(until_ns, self.seed) if isinstance(one, Scenario) else ()

    def fleet(self, given: Profile | None) -> Fleet:
        """The fleet it runs on, with room for its clients."""
        profile = self.profile(given)
        return with_room(self._of.fleet(self.per_s), [Traffic(profile, self.per_s)])

    @property
    def minutes(self) -> int:
        """How long it runs after the warm-up."""
        if self.what == QUIET:
            return self.quiet_minutes
        fault = self.fault_minutes
        return LEAD + fault + max(AFTER, fault)

    @property
    def fault_minutes(self) -> int:
        """How long its fault is on."""
        if self.what in COMBINATIONS:
            least = COMBINATIONS[self.what].least_ns // MINUTE_NS
            return max(FAULT, int(least))
        return 0 if self.what == QUIET else FAULT

    def faults(self, fleet: Fleet, fork_ns: int) -> tuple[Fault, ...]:
        """What breaks, when the run goes on from `fork_ns`."""
        if self.what == QUIET:
            return ()
        start = fork_ns + LEAD * MINUTE_NS
        end = start + self.fault_minutes * MINUTE_NS
        severity = Severity(self.severity)
        if self.what in COMBINATIONS:
            return COMBINATIONS[self.what].faults(fleet, severity, start, end, self.seed)
        one = SLOWDOWN if self.what == SLOWDOWN.name else scenario(self.what)
        return (one.fault(fleet, severity, start, end, self.seed),)


@dataclass(frozen=True)
class Ask:
    """What to run: all of it, or the part that was asked for. Empty: as the protocol has it."""

    scenarios: tuple[str, ...] = ()
    rates: tuple[float, ...] = (1.0, 10.0, 100.0)
    seeds: int = 0
    severities: tuple[str, ...] = SEVERITIES
    quiet_minutes: int = 7 * 1_440
    quick: bool = False


def cells(ask: Ask) -> Iterator[Cell]:
    """All runs, controls and quiet time between the faults, seed by seed.

    At 100 req/s two seeds, and no weak faults.
    """
    names = _names(ask)
    for per_s in ask.rates:
        seeds = ask.seeds or FULL_SEEDS.get(per_s, 2)
        severities = [s for s in ask.severities if per_s < 100 or s != "weak"]
        for seed in range(1, seeds + 1):
            if QUIET in names:
                yield Cell(QUIET, "none", per_s, seed, ask.quiet_minutes)
            for severity in severities:
                for name in names:
                    if name != QUIET:
                        yield Cell(name, severity, per_s, seed)


def _names(ask: Ask) -> Sequence[str]:
    if ask.scenarios:
        return [n if n in _OWN or n == QUIET else scenario(n).id for n in ask.scenarios]
    controls = [s.id for s in SCENARIOS.values() if not s.pages]
    faults = [s.id for s in SCENARIOS.values() if s.pages]
    every = max(len(faults) // max(len(controls), 1), 1)
    mixed: list[str] = [QUIET]
    for i, name in enumerate(faults):
        mixed.append(name)
        if i % every == every - 1 and controls:
            mixed.append(controls.pop(0))
    # A ramp of hours doesn't go with a quick look.
    combined = [c.name for c in COMBINATIONS.values() if not ask.quick or c.least_ns < 3600 * 10**9]
    return [*mixed, *controls, SLOWDOWN.name, *combined]
