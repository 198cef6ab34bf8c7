"""One run: from the warm-up's snapshot, with its fault, heard, judged by all systems."""

import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.truth.grid import ASKED, Cell
from bench.truth.ours import Ours
from bench.truth.systems import FixedSloSystem, System, Told, naive
from tailburn.lab.faults.parts import TelemetryFault
from tailburn.lab.fleet import Fleet
from tailburn.lab.run import Motion, MotionSnapshot, Plan, Traffic
from tailburn.lab.score.heard import Ear, Heard
from tailburn.lab.score.heard_metrics import MetricsEar, with_metrics
from tailburn.lab.score.minutes import MINUTE_NS
from tailburn.lab.score.truths import FORMAT
from tailburn.lab.telemetry.metrics import MetricsText
from tailburn.lab.telemetry.spans.of_fleet import wiring_of
from tailburn.lab.workload import Profile

BLOCK: Final = 60
"""Minutes run and heard at once; a fork is between two such."""
BEGIN_S: Final = 12 * 3600
"""Warm-ups of whole days begin and end at noon, of a Monday first: faults are in busy hours."""
OBJECTIVE_CLOCK: Final = "ttft"
BUDGET: Final = 0.01
WINDOW_S: Final = 30 * 86_400


class Listening:
    """A motion, heard as it goes."""

    def __init__(self, fleet: Fleet, spoilt: tuple[TelemetryFault, ...], seed: int) -> None:
        self._ear = Ear(fleet, spoilt, seed)
        self._metrics = MetricsText(fleet, wiring_of(fleet))
        self._scraped = MetricsEar(spoilt, seed)

    def run(self, motion: Motion, minutes: int) -> Iterator[Told]:
        """The next minutes, in stretches of BLOCK."""
        for first in range(0, minutes, BLOCK):
            until = motion.now_ns + min(BLOCK, minutes - first) * MINUTE_NS
            one = motion.advance(until)
            arrived = self._ear.arrived(one.attempts)
            heard = self._ear.hear(arrived, one.start_ns, one.end_ns)
            scrapes = self._metrics.feed(one.attempts, one.samples)
            series, values = self._scraped.hear(scrapes, one.start_ns, one.end_ns)
            yield Told(one, arrived, with_metrics(heard, series, values))


@dataclass(frozen=True)
class Warm:
    """A warm-up: the world as it stands, systems that heard it."""

    motion: MotionSnapshot
    systems: tuple[System, ...]
    minutes: int
    requests: int
    took_s: float


def warm_up(cell: Cell, given: Profile | None, minutes: int) -> Warm:
    """Run a fleet without faults for so long, heard by all."""
    begun = time.process_time()
    fleet, profile = cell.fleet(given), cell.profile(given)
    shape = cell.shape(minutes * MINUTE_NS)
    plan = Plan(fleet, (Traffic(profile, cell.per_s),), cell.seed, BEGIN_S, shape=shape)
    motion = Motion(plan)
    systems = [*naive(), Ours(fleet)]
    for told in Listening(fleet, (), cell.seed).run(motion, minutes):
        for system in systems:
            system.hear(told)
    requests = motion.world.counts["requests"]
    took = time.process_time() - begun
    return Warm(motion.snapshot(), tuple(systems), minutes, requests, took)


def kept_warm(path: Path, cell: Cell, given: Profile | None, minutes: int) -> Warm:
    """The warm-up of before, or a new one that is kept."""
    if path.is_file():
        with path.open("rb") as file:
            found: Warm = pickle.load(file)
        return found
    warm = warm_up(cell, given, minutes)
    half = path.with_suffix(".half")
    with half.open("wb") as file:
        pickle.dump(warm, file, protocol=5)
    half.replace(path)
    return warm


def run_cell(cell: Cell, warm: Warm) -> dict[str, Any]:
    """One run as a line of results: truth, what each system said, what was spent."""
    begun = time.process_time()
    fork_ns = warm.minutes * MINUTE_NS
    faults = cell.faults(warm.motion.plan.fleet, fork_ns)
    motion = Motion.of(warm.motion, faults)
    systems = [system.fork() for system in warm.systems]
    spoilt = tuple(t for fault in faults for t in fault.telemetry)
    parts: list[Heard] = []
    for told in Listening(motion.plan.fleet, spoilt, cell.seed).run(motion, cell.minutes):
        parts.append(told.heard)
        for system in systems:
            system.hear(told)
    truths = [fault.truth for fault in faults]
    asked = [(t.start_ns, min(t.start_ns + ASKED * MINUTE_NS, t.end_ns)) for t in truths]
    outcomes = [system.outcome(asked).to_json() for system in systems]
    for outcome in outcomes:
        outcome["pages"] = [p for p in outcome["pages"] if p["start_ns"] >= fork_ns]
    return {
        "cell": cell.key,
        "what": cell.what,
        "severity": cell.severity,
        "per_s": cell.per_s,
        "seed": cell.seed,
        "truth": {
            "format": FORMAT,
            "start_ns": fork_ns,
            "end_ns": fork_ns + cell.minutes * MINUTE_NS,
            "truths": [truth.as_json() for truth in truths],
        },
        "spent": _spent(Heard.join(parts), systems, cell.per_s),
        "outcomes": outcomes,
        "requests": motion.world.counts["requests"] - warm.requests,
        "cpu_s": round(time.process_time() - begun, 2),
    }


def _spent(heard: Heard, systems: list[System], per_s: float) -> dict[str, Any]:
    """Requests, and those over the deadline that the fixed SLO has, by minute."""
    slo = next(s for s in systems if isinstance(s, FixedSloSystem))
    total = np.zeros(len(heard), np.int64)
    bad = np.zeros(len(heard), np.int64)
    for (clock, model), counts in heard.clocks.items():
        if clock == OBJECTIVE_CLOCK:
            total += counts.sum(axis=1, dtype=np.int64)
            bad += slo.rule(clock, model).late(counts)
    return {
        "start_ns": heard.start_ns,
        "requests": total.tolist(),
        "bad": bad.tolist(),
        "budget": BUDGET,
        "window_requests": per_s * WINDOW_S,
    }
