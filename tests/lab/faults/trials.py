"""A scenario tried on a small fleet, beside the same minutes without it: what moves, what stays.

    trial = trial_of("S8")
    trial.medium.tpot(50) / trial.quiet.tpot(50)

Both go on from one warm-up and are asked the same; what differs is the fault's doing.
"""

from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.faults.catalogue import scenario
from tailburn.lab.faults.parts import Fault, Severity
from tailburn.lab.faults.scenario import Scenario
from tailburn.lab.fleet import Fleet
from tailburn.lab.physics.step import PREFILL_ATTENTION, decode_step_ns
from tailburn.lab.records import Attempts, Outcome, Requests
from tailburn.lab.run import FORK_MINUTES, Motion, MotionSnapshot, Plan, Traffic
from tailburn.lab.world import engine_layout as e
from tailburn.lab.world.samples import Samples

F64 = NDArray[np.float64]
MASK = NDArray[np.bool_]
S = 10**9
MINUTE = 60 * S
BUSY_S = (24 + 12) * 3_600
"""Tuesday noon, when the fleets of these tests are as busy as they are on most weekdays."""
CLIENTS = 130


@dataclass(frozen=True)
class Seen:
    """What was seen in the last minutes of a run. Times in ms unless named otherwise."""

    fleet: Fleet
    attempts: Attempts
    """Of requests that came in these minutes, those that were over by their end."""
    asked: Requests
    """What came."""
    samples: Samples
    fault: Fault | None = None
    replica: tuple[int, ...] = field(default=())
    """Only these replicas; none given: all."""

    def on(self, *names: str) -> "Seen":
        """What was seen on some replicas, by name."""
        of = [r.name for r in self.fleet.replicas]
        return replace(self, replica=tuple(of.index(n) for n in names))

    def of(self, mask: MASK) -> "Seen":
        """What was seen of some attempts."""
        return replace(self, attempts=self.attempts.take(mask))

    @property
    def main(self) -> "Seen":
        """What was seen on the first pool."""
        return self.on(*(r.name for r in self.fleet.pools[0].replicas))

    @property
    def streamed(self) -> "Seen":
        """What was seen of streamed answers."""
        return self.of(self.attempts.streamed == 1)

    @cached_property
    def told(self) -> Attempts:
        """Attempts on the replicas looked at."""
        if not self.replica:
            return self.attempts
        return self.attempts.take(np.isin(self.attempts.replica, self.replica))

    @cached_property
    def served(self) -> Attempts:
        """Those that were answered."""
        a = self.told
        return a.take((a.outcome == Outcome.OK) & (a.engine_first >= 0))

    def between(self, first: str, last: str) -> F64:
        """From one instant of served attempts to another, where both happened."""
        a, b = getattr(self.served, first), getattr(self.served, last)
        return np.asarray((b - a)[(a >= 0) & (b >= 0)] / 1e6)

    def ms(self, first: str, last: str, percent: float = 50.0) -> float:
        """A percentile of that, in ms; 0 where it never happened."""
        found = self.between(first, last)
        return float(np.percentile(found, percent)) if len(found) else 0.0

    def ttft(self, percent: float = 50.0) -> float:
        """At the engine."""
        return self.ms("engine_in", "engine_first", percent)

    def queue(self, percent: float = 50.0) -> float:
        return self.ms("queued", "scheduled", percent)

    def prefill(self, percent: float = 50.0) -> float:
        return self.ms("scheduled", "prefill_end", percent)

    @property
    def tpots(self) -> F64:
        """Ms a token after the first, of answers of some length."""
        a = self.served.take(self.served.output_done > 8)
        return np.asarray((a.engine_last - a.engine_first) / (a.output_done - 1) / 1e6)

    def tpot(self, percent: float = 50.0) -> float:
        return float(np.percentile(self.tpots, percent))

    def itl_max(self, percent: float = 50.0) -> float:
        """Percentile over requests of their longest gap."""
        longest = self.served.itl_max_ns
        return float(np.percentile(longest[longest >= 0] / 1e6, percent))

    def count(self, column: int) -> float:
        """How much a counter of the engines grew."""
        return float(np.sum(self._at(self.samples.engine)[-1, :, column]
                            - self._at(self.samples.engine)[0, :, column]))  # fmt: skip

    def part(self, part: int) -> float:
        """Ms of a part of steps, per step."""
        real = self._at(self.samples.engine_real)
        column = e.PARTS_SUM + part
        return float(np.sum(real[-1, :, column] - real[0, :, column])) / self.count(e.STEPS) / 1e6

    def gauge(self, column: int) -> F64:
        """A gauge of the engines, over scrapes and replicas."""
        return np.asarray(self._at(self.samples.engine)[:, :, column], np.float64)

    def _at(self, table: NDArray[Any]) -> NDArray[Any]:
        return table[:, list(self.replica)] if self.replica else table

    @property
    def kv_used(self) -> F64:
        """Share of KV blocks in use."""
        free = self.gauge(e.CLEAN) + self.gauge(e.CACHE)
        return np.asarray(1.0 - free / self.gauge(e.BLOCKS))

    @property
    def waiting(self) -> F64:
        return self.gauge(e.WAITING_COUNT)

    @property
    def running(self) -> F64:
        return self.gauge(e.RUNNING_COUNT)

    @property
    def capped_share(self) -> float:
        """Share of scrapes, of those that find somebody waiting, at which running is at its cap."""
        waits = self.waiting - self.gauge(e.BLOCKED_COUNT) > 0
        full = self.running >= self.gauge(e.MAX_SEQS)
        return float(np.mean(full[waits])) if waits.any() else 0.0

    @property
    def step(self) -> float:
        """Mean length of a step."""
        return self.count(e.BUSY_NS) / self.count(e.STEPS) / 1e6

    @cached_property
    def rho(self) -> float:
        """Length of steps that only decode over what their batch predicts of a healthy engine.

        The median over scrapes; a batch is that of the step to come, which is known.
        """
        base = [p.layout.coefficients() for p in self.fleet.pools for _ in p.replicas]
        found = []
        for rows, reals in zip(self.samples.engine, self.samples.engine_real, strict=True):
            for i in self.replica or range(len(base)):
                at = e.PLAN + e.PLAN_SIZE * (1 - rows[i, e.NOW])
                batch, kv, prefill = rows[i, at : at + e.PLAN_PREFILL + 1]
                parts = reals[i, e.PARTS_NOW : e.PARTS_SUM]
                if rows[i, e.BUSY] and batch and not prefill and not parts[PREFILL_ATTENTION]:
                    found.append(parts.sum() / decode_step_ns(base[i], int(batch), kv, 0.0, 0.0))
        return float(np.median(found))

    @property
    def offered(self) -> float:
        """Tokens asked for, prompts and answers, each request once, served or not."""
        return float((self.asked.prompt_tokens + self.asked.output_tokens).sum())


def warm(plan: Plan) -> MotionSnapshot:
    """A plan after its first minutes."""
    motion = Motion(plan)
    for _ in motion.minutes(FORK_MINUTES):
        pass
    return motion.snapshot()


def seen_of(motion: Motion, minutes: int) -> Seen:
    """The next so many minutes of a run."""
    start = motion.now_ns
    parts = list(motion.minutes(minutes))
    attempts = Attempts.join([p.attempts for p in parts])
    begun = attempts.take(attempts.arrival_ns >= start)
    asked = motion.asked(start // MINUTE)
    came = Requests.join([next(asked) for _ in parts])
    return Seen(motion.plan.fleet, begun, came, Samples.join([p.samples for p in parts]))


@dataclass(frozen=True)
class Trial:
    """A scenario on its own fleet, quiet and at each severity."""

    scenario: Scenario
    fleet: Fleet
    warm: MotionSnapshot
    minutes: int

    def _seen(self, fault: Fault | None) -> Seen:
        motion = Motion.of(self.warm, [fault] if fault else [])
        return replace(seen_of(motion, self.minutes), fault=fault)

    def at(self, severity: Severity, seed: int = 3) -> Seen:
        """The minutes with the fault."""
        start = FORK_MINUTES * MINUTE
        end = start + self.minutes * MINUTE
        return self._seen(self.scenario.fault(self.fleet, severity, start, end, seed))

    @cached_property
    def quiet(self) -> Seen:
        """The same minutes without it."""
        return self._seen(None)

    @cached_property
    def weak(self) -> Seen:
        return self.at(Severity.WEAK)

    @cached_property
    def medium(self) -> Seen:
        return self.at(Severity.MEDIUM)

    @cached_property
    def strong(self) -> Seen:
        return self.at(Severity.STRONG)

    def all(self) -> tuple[Seen, Seen, Seen, Seen]:
        """Quiet, weak, medium, strong."""
        return self.quiet, self.weak, self.medium, self.strong


@cache
def trial_of(name: str, per_s: float = 10.0, minutes: int = 10, seed: int = 5) -> Trial:
    """A scenario tried; one warm-up a process."""
    one = scenario(name)
    fleet = replace(one.fleet(per_s), scrape_s=3.0)
    fleet = replace(fleet, clients=replace(fleet.clients, count=CLIENTS))
    plan = Plan(fleet, (Traffic(one.profile(), per_s),), seed, start_s=BUSY_S)
    return Trial(one, fleet, warm(plan), minutes)


def queue_share(quiet: Seen, broken: Seen) -> float:
    """W: the queue's share of what TTFT grew by, of means."""
    waits = (
        broken.between("queued", "scheduled").mean() - quiet.between("queued", "scheduled").mean()
    )
    grown = broken.between("engine_in", "engine_first").mean()
    return float(waits / (grown - quiet.between("engine_in", "engine_first").mean()))


def rising(*values: float) -> bool:
    """Each more than the one before."""
    return all(a < b for a, b in zip(values, values[1:], strict=False))


__all__ = ["MASK", "Seen", "Trial", "e", "queue_share", "rising", "seen_of", "trial_of", "warm"]
