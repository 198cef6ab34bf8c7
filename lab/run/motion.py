"""A fleet under traffic, in motion: requests made, run through the world, told when over.

    motion = Motion(Plan(standard(10.0), (Traffic(named("azure-conv"), 10.0),), seed=1))
    for minute in motion.minutes(24 * 60):
        ...                                  # minute.attempts, minute.samples
    quiet = motion.snapshot()                # a warm-up, to go on from more than once
    broken = Motion.of(quiet, (fault,))

Memory holds what is under way and a minute of what is to come, however long a run is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tailburn.lab.faults.parts import Fault, TelemetryFault, Turn
from tailburn.lab.fleet import Fleet
from tailburn.lab.records import Attempts, Requests
from tailburn.lab.run.traffic import Asked, Traffic
from tailburn.lab.workload import Change
from tailburn.lab.world.samples import Samples
from tailburn.lab.world.world import Snapshot, World

MINUTE_NS = 60 * 10**9
FORK_MINUTES = 10
"""Workloads are drawn in blocks of so many minutes: between two of them is the place to fork."""


@dataclass(frozen=True)
class Plan:
    """What runs. `start_s`: seconds after a Monday's 00:00 UTC at which the run begins."""

    fleet: Fleet
    traffic: tuple[Traffic, ...]
    seed: int
    start_s: int = 0
    faults: tuple[Fault, ...] = ()
    shape: tuple[Change, ...] = ()
    """What becomes of the traffic by itself, without a fault."""
    tokens: bool = False
    """Keep the instant of every token (slower)."""

    @property
    def settings(self) -> tuple[Turn, ...]:
        return tuple(turn for fault in self.faults for turn in fault.settings)

    @property
    def changes(self) -> tuple[Change, ...]:
        broken = (change for fault in self.faults for change in fault.changes)
        return (*self.shape, *broken)

    @property
    def telemetry(self) -> tuple[TelemetryFault, ...]:
        return tuple(each for fault in self.faults for each in fault.telemetry)


@dataclass(frozen=True)
class Slice:
    """What happened from `start_ns` until `end_ns`, in ns of true time since the run began."""

    start_ns: int
    end_ns: int
    attempts: Attempts
    """Those that were over in it."""
    samples: Samples
    """Scrapes in it."""


@dataclass(frozen=True)
class MotionSnapshot:
    """A run as it stood; `Motion.of` takes it, in this process or another."""

    plan: Plan
    world: Snapshot
    fed_minutes: int


class Motion:
    """A plan in motion, from its epoch on."""

    def __init__(self, plan: Plan) -> None:
        self._begin(plan, World(plan.fleet, plan.seed, plan.tokens), 0)
        self._turn(plan.faults)

    def _begin(self, plan: Plan, world: World, fed_minutes: int) -> None:
        self.plan, self.world, self._fed = plan, world, fed_minutes
        self._requests = self.asked(fed_minutes)

    def _turn(self, faults: Sequence[Fault]) -> None:
        for fault in faults:
            for turn in fault.settings:
                self.world.set(turn.knob, turn.value, turn.scope, turn.start_ns, turn.end_ns)

    def asked(self, first: int) -> Iterator[Requests]:
        """What its plan has asked of it from minute `first` on, without end, drawn anew."""
        plan = self.plan
        return Asked(
            plan.traffic,
            plan.fleet,
            seed=plan.seed,
            start_s=plan.start_s,
            changes=plan.changes,
            group_of=self.world.arrays.client_group,
        ).minutes(first)

    @property
    def now_ns(self) -> int:
        """Until when it has run."""
        return self.world.now_ns

    def advance(self, until_ns: int) -> Slice:
        """Run on to `until_ns`; what was over and was scraped since the last time."""
        start_ns, parts = self.now_ns, []
        while self._fed * MINUTE_NS < until_ns:
            parts.append(self.world.advance(max(self._fed * MINUTE_NS, self.now_ns)))
            self.world.feed(next(self._requests))
            self._fed += 1
        parts.append(self.world.advance(until_ns))
        told = [part for part in parts if len(part)]
        attempts = told[0] if len(told) == 1 else Attempts.join(told)
        return Slice(start_ns, until_ns, attempts, self.world.samples(until_ns))

    def minutes(self, count: int) -> Iterator[Slice]:
        """The next so many minutes, one by one."""
        for _ in range(count):
            yield self.advance((self.now_ns // MINUTE_NS + 1) * MINUTE_NS)

    def snapshot(self) -> MotionSnapshot:
        """The run as it stands, to go on from more than once."""
        return MotionSnapshot(self.plan, self.world.snapshot(), self._fed)

    @classmethod
    def of(cls, snapshot: MotionSnapshot, faults: Sequence[Fault] = ()) -> "Motion":
        """A run of its own that goes on from a snapshot, with further faults.

        Raises KnobError for one that began before. Fork at whole blocks (FORK_MINUTES): a
        change of the workload within one may draw the rest of that block anew.
        """
        motion = cls.__new__(cls)
        plan = replace(snapshot.plan, faults=(*snapshot.plan.faults, *faults))
        motion._begin(plan, World.of(snapshot.world), snapshot.fed_minutes)
        motion._turn(faults)
        return motion
