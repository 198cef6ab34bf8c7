"""What a run tells: bodies of spans in order of arrival, and what scrapes find.

telling = Telling(plan, wiring, epoch_unix_ns=...)
for arrival_ns, body in telling.of(slice):
    ...
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tailburn.lab.faults.telemetry import SpanFaults
from tailburn.lab.fleet import arrays_of
from tailburn.lab.run.motion import Plan, Slice
from tailburn.lab.telemetry.spans import Body, SpanTelemetry, Wiring
from tailburn.lab.world.knobs import Level
from tailburn.lab.world.scopes import things

HOLD_NS: Final = 20 * 10**9
"""Bodies are complete this long after their time: their attempts are over by then."""
_CLOCK_KNOB: Final = "clock_offset_s"


class Telling:
    """The spans of a run. `spans` counts those in bodies made so far, `lost` those lost."""

    def __init__(self, plan: Plan, wiring: Wiring, *, epoch_unix_ns: int) -> None:
        self.wiring = wiring
        self._spans = SpanTelemetry(
            wiring, seed=plan.seed, epoch_unix_ns=epoch_unix_ns, hold_ns=HOLD_NS
        )
        self._faults = SpanFaults(plan.telemetry, plan.fleet, plan.seed)
        self._faults.set_up(self._spans)
        _turn_clocks(self._spans, plan)

    def of(self, one: Slice) -> Iterator[Body]:
        """The bodies that have arrived since, HOLD_NS behind the slice."""
        return self._faults.of(self._spans.feed(one.attempts, one.end_ns))

    def finish(self) -> Iterator[Body]:
        """All that is left at the end of a run."""
        yield from self._faults.of(self._spans.finish())
        yield from self._faults.finish()

    @property
    def spans(self) -> int:
        return self._spans.spans

    @property
    def lost(self) -> int:
        return self._spans.lost


def _turn_clocks(spans: SpanTelemetry, plan: Plan) -> None:
    """Clocks that a fault of the world set: of all knobs the one that telemetry alone sees."""
    for turn in plan.settings:
        if turn.knob == _CLOCK_KNOB:
            for host in things(Level.HOST, turn.scope, arrays_of(plan.fleet)).tolist():
                name = plan.fleet.hosts[host].name
                spans.set_clock_offset(name, round(turn.value * 1e9), turn.start_ns)
                spans.set_clock_offset(name, 0, turn.end_ns)


@dataclass
class Merging:
    """An OpenTelemetry Collector between a fleet and its target: bodies wait for others.

    What arrives within `within_ns` of the first goes on as one, at the end of that time or as
    soon as it has `most_bytes`. OTLP bodies are merged by writing them one after the other.
    """

    within_ns: int
    most_bytes: int = 4 << 20
    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0
    _due_ns: int = 0

    def of(self, bodies: Iterable[Body]) -> Iterator[Body]:
        """What goes on because of these."""
        for arrival_ns, body in bodies:
            if self._parts and (arrival_ns >= self._due_ns or self._size >= self.most_bytes):
                yield from self._out(min(arrival_ns, self._due_ns))
            if not self._parts:
                self._due_ns = arrival_ns + self.within_ns
            self._parts.append(body)
            self._size += len(body)

    def finish(self) -> Iterator[Body]:
        """What still waits."""
        yield from self._out(self._due_ns)

    def _out(self, at_ns: int) -> Iterator[Body]:
        if self._parts:
            yield at_ns, b"".join(self._parts)
            self._parts, self._size = [], 0
