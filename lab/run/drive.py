"""A whole run: fleet, faults and clock to telemetry at its target, and the truth apart from it.

    drive = Drive(plan, wiring, target, epoch_unix_ns=..., truth=AttemptsFile(...))
    summary = drive.run(until_ns, on_step=print)

Fast where the clock of the wall has passed already; there, in its own time (`wall`).
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from tailburn.lab.run.motion import MINUTE_NS, Motion, Plan, Slice
from tailburn.lab.run.scraping import Scraping
from tailburn.lab.run.targets import Target
from tailburn.lab.run.telling import HOLD_NS, Merging, Telling
from tailburn.lab.run.truth import AttemptsFile
from tailburn.lab.telemetry.spans import Wiring

STEP_NS: Final = 10**9
"""Of a run in the wall's own time."""
LIVE_MERGE_NS: Final = 2 * STEP_NS
"""The longest that a collector gathers, once a run keeps the wall's time."""
LEAD_NS: Final = HOLD_NS + 3 * STEP_NS
"""A live fleet is moved so far ahead of the wall: its bodies are complete when they are due."""


@dataclass(frozen=True)
class Step:
    """How far a run is."""

    now_ns: int
    requests: int
    attempts: int
    spans: int
    live: bool
    """It has caught up with the wall, and goes on in its time."""


@dataclass
class Summary:
    """What became of a run."""

    simulated_s: float = 0.0
    wall_s: float = 0.0
    requests: int = 0
    attempts: int = 0
    failed: int = 0
    """Attempts that ended in anything but an answer."""
    spans: int = 0
    lost_spans: int = 0
    """Lost on purpose: a fault of telemetry."""
    bodies: int = 0
    bytes: int = 0
    retries: int = 0
    refused_bodies: int = 0
    unsent_bodies: int = 0
    """Made, and not sent: it was interrupted."""
    rejected_spans: int = 0
    last_error: str = ""
    scrapes: int = 0
    """Of all targets together."""

    def row(self) -> dict[str, Any]:
        """As a row of JSON."""
        return asdict(self)


class Drive:
    """`wall`: the wall's clock in ns since 1970 for a live run; None runs as fast as it can."""

    def __init__(
        self,
        plan: Plan,
        wiring: Wiring,
        target: Target,
        *,
        epoch_unix_ns: int,
        truth: AttemptsFile | None = None,
        scraping: Scraping | None = None,
        merge_ns: int = 0,
        wall: Callable[[], int] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.motion = Motion(plan)
        self.telling = Telling(plan, wiring, epoch_unix_ns=epoch_unix_ns)
        self._target, self._truth = target, truth
        self._merging = Merging(merge_ns) if merge_ns else None
        self._epoch, self._wall, self._sleep = epoch_unix_ns, wall, sleep
        self._scraping = scraping
        self._summary = Summary()
        self._begun = time.monotonic()

    def run(
        self, until_ns: int | None = None, on_step: Callable[[Step], None] = lambda step: None
    ) -> None:
        """Run to the end, or until interrupted where there is none; `finish` ends it."""
        while until_ns is None or self.motion.now_ns < until_ns:
            end_ns, live = self._next_end()
            end_ns = end_ns if until_ns is None else min(end_ns, until_ns)
            self._take(self.motion.advance(end_ns), live)
            on_step(self._step(live))

    def _next_end(self) -> tuple[int, bool]:
        """Where the next slice ends, and whether the run keeps the wall's time."""
        now_ns = self.motion.now_ns
        minute_ns = (now_ns // MINUTE_NS + 1) * MINUTE_NS
        if self._wall is None:
            return minute_ns, False
        may_ns = self._wall() - self._epoch + LEAD_NS
        if minute_ns <= may_ns:
            return minute_ns, False
        end_ns = now_ns + STEP_NS
        if end_ns > may_ns:
            self._sleep((end_ns - may_ns) / 1e9)
        return end_ns, True

    def _take(self, one: Slice, live: bool) -> None:
        s = self._summary
        s.attempts += len(one.attempts)
        s.failed += int((one.attempts.outcome != 0).sum())
        if self._truth is not None:
            self._truth.add(one.attempts)
        bodies = self.telling.of(one)
        if live and self._merging is not None:
            self._merging.within_ns = min(self._merging.within_ns, LIVE_MERGE_NS)
        self._target.take(self._merging.of(bodies) if self._merging else bodies)
        if self._scraping is not None:
            self._scraping.of(one)

    def _step(self, live: bool) -> Step:
        counts = self.motion.world.counts
        return Step(
            self.motion.now_ns,
            counts["requests"],
            self._summary.attempts,
            self.telling.spans,
            live,
        )

    def finish(self) -> Summary:
        """Send what is left and close; what became of it all."""
        rest = self.telling.finish()
        if self._merging is None:
            self._target.take(rest)
        else:
            self._target.take(self._merging.of(rest))
            self._target.take(self._merging.finish())
        self._target.close()
        if self._scraping is not None:
            self._scraping.finish()
        return self._closed()

    def stop(self) -> Summary:
        """Close without what is left."""
        self._target.stop()
        if self._scraping is not None:
            self._scraping.close()
        return self._closed()

    def _closed(self) -> Summary:
        if self._truth is not None:
            self._truth.close()
        s, sent = self._summary, self._target.sent
        s.simulated_s = self.motion.now_ns / 1e9
        s.wall_s = time.monotonic() - self._begun
        s.requests = self.motion.world.counts["requests"]
        s.spans, s.lost_spans = self.telling.spans, self.telling.lost
        s.bodies, s.bytes, s.retries = sent.bodies, sent.bytes, sent.retries
        s.refused_bodies, s.rejected_spans = sent.refused_bodies, sent.rejected_spans
        s.unsent_bodies = self._target.unsent
        s.last_error = sent.last_error
        s.scrapes = self._scraping.scrapes if self._scraping is not None else 0
        return s
