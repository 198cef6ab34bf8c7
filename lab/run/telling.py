"""What a run tells: bodies of spans in order of arrival, and what scrapes find.

telling = Telling(plan, wiring, epoch_unix_ns=...)
for arrival_ns, body in telling.of(slice):
    ...
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tailburn.lab.run.motion import Broken, Plan, Slice
from tailburn.lab.telemetry.spans import Body, SpanTelemetry, Wiring
from tailburn.lab.world.knobs import KnobError

HOLD_NS: Final = 20 * 10**9
"""Bodies are complete this long after their time: their attempts are over by then."""
CLOCK_KNOB: Final = "clock_offset_s"
"""Of all knobs the one that telemetry alone sees."""


class Telling:
    """The spans of a run. `spans` counts those in bodies given so far, `lost` those lost."""

    def __init__(self, plan: Plan, wiring: Wiring, *, epoch_unix_ns: int) -> None:
        self.wiring = wiring
        self._spans = SpanTelemetry(
            wiring, seed=plan.seed, epoch_unix_ns=epoch_unix_ns, hold_ns=HOLD_NS
        )
        self._hosts = [host.name for host in plan.fleet.hosts]
        self._zones = {host.name: host.zone for host in plan.fleet.hosts}
        self._turn_clocks(plan.faults)

    def of(self, one: Slice) -> Iterator[Body]:
        """The bodies that have arrived since, HOLD_NS behind the slice."""
        return self._spans.feed(one.attempts, one.end_ns)

    def finish(self) -> Iterator[Body]:
        """All that is left at the end of a run."""
        return self._spans.finish()

    @property
    def spans(self) -> int:
        return self._spans.spans

    @property
    def lost(self) -> int:
        return self._spans.lost

    def _turn_clocks(self, faults: Sequence[Broken]) -> None:
        for fault in faults:
            for turn in fault.settings:
                if turn.knob != CLOCK_KNOB:
                    continue
                for host in self._hosts_in(turn.scope):
                    offset_ns = round(turn.value * 1e9)
                    self._spans.set_clock_offset(host, offset_ns, turn.start_ns)
                    self._spans.set_clock_offset(host, 0, turn.end_ns)

    def _hosts_in(self, scope: str) -> list[str]:
        what, _, name = scope.rpartition(":")
        if scope == "all":
            return self._hosts
        if what == "zone":
            return [host for host in self._hosts if self._zones[host] == name]
        if what in ("", "host") and name in self._hosts:
            return [name]
        raise KnobError(f"scope {scope!r}: clocks are those of all, host:NAME or zone:NAME")


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
