"""Attempts in, OTLP bodies out, in the order in which they would arrive.

    tell = SpanTelemetry(wiring, seed=1, epoch_unix_ns=...)
    for arrival_ns, body in tell.feed(attempts, until_ns):
        ...
    for arrival_ns, body in tell.finish():
        ...

Times are ns of true time since the run's epoch; spans carry their hosts' clocks.
"""

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.records import Attempts
from tailburn.lab.telemetry.spans import ids, wire
from tailburn.lab.telemetry.spans.batching import Batcher, Batches, Columns
from tailburn.lab.telemetry.spans.encode import write_spans
from tailburn.lab.telemetry.spans.flow import Flow, Rows
from tailburn.lab.telemetry.spans.headers import set_headers
from tailburn.lab.telemetry.spans.places import Places
from tailburn.lab.telemetry.spans.stacks.registry import AFTER, STACKS
from tailburn.lab.telemetry.spans.template import Kind, Programs, compile_kinds
from tailburn.lab.telemetry.spans.wiring import SECOND_NS, Wiring

END_NS: Final = 1 << 61
AT_ONCE: Final = 20_000
"""Spans encoded in one go: bounds the buffer."""

Body = tuple[int, bytes]


class SpanTelemetry:
    """A fleet's span exporters. Bodies are OTLP/HTTP protobuf, not compressed.

    `hold_ns`: an attempt is told when it is over, but its first spans went out long before;
    so bodies wait that long for spans that belong in them. Those of longer attempts come late.
    """

    def __init__(
        self,
        wiring: Wiring,
        *,
        seed: int = 0,
        epoch_unix_ns: int = 0,
        hold_ns: int = 20 * SECOND_NS,
    ) -> None:
        self.places = Places(wiring)
        self._seed, self._epoch, self._hold = seed, epoch_unix_ns, hold_ns
        self._batcher = Batcher(self.places.count, wiring.export, seed)
        self._clocks = Clocks(self.places)
        self._losses: list[tuple[int, float]] = [(-END_NS, 0.0)]
        self._kinds: list[Kind] = []
        self._numbers: dict[int, tuple[int, int]] = {}
        self._scopes: dict[tuple[str, str, str], int] = {}
        self._programs: Programs = compile_kinds([])
        self._waiting: Columns | None = None
        self._under_way: list[tuple[int, int, bytes]] = []
        self._counter = count()
        self.spans = self.bodies = self.lost = 0

    def set_clock_offset(self, host: str, offset_ns: int, from_ns: int) -> None:
        """From an instant on, the host's clock is ahead by this (on top of its own offset)."""
        self._clocks.step(host, offset_ns, from_ns)

    def set_loss(self, share: float, from_ns: int) -> None:
        """From an instant on, so many of the spans are lost on their way."""
        self._losses.append((from_ns, share))

    def feed(self, attempts: Attempts, until_ns: int) -> Iterator[Body]:
        """Take attempts that were over by `until_ns`; the bodies that have arrived since."""
        if len(attempts):
            self._take_in(attempts)
        yield from self._sent(until_ns - self._hold)

    def finish(self) -> Iterator[Body]:
        """All that is left."""
        yield from self._sent(END_NS)

    def _take_in(self, attempts: Attempts) -> None:
        flow = Flow(attempts, self.places, self._seed)
        set_headers(flow)
        for hop, column, places in self._hops(flow):
            for name, stack in STACKS[hop].items():
                rows = np.flatnonzero(self.places.stack_rows(places, column, name))
                if len(rows):
                    stack(flow, rows)
        every: Rows = np.arange(len(attempts))
        for stack in AFTER:
            stack(flow, every)
        if not flow.blocks:
            return
        self._number(flow)
        spans = Columns.of(flow.blocks, self._numbers)
        kept = self._kept(spans)
        if kept is not None:
            spans = spans.take(kept)
        self._waiting = spans if self._waiting is None else Columns.join(self._waiting, spans)

    def _hops(self, flow: Flow) -> Iterator[tuple[str, NDArray[np.int64], tuple]]:  # type: ignore[type-arg]
        a, w = flow.a, self.places.wiring
        yield "client", a.client.astype(np.int64), w.clients
        yield "gateway", np.where(a.gateway_in >= 0, a.gateway, -1).astype(np.int64), w.gateways
        router = np.where(a.router_in >= 0, self.places.router_of(a.replica), -1)
        yield "router", router, w.routers
        yield "engine", np.where(a.engine_in >= 0, a.replica, -1).astype(np.int64), w.engines

    def _number(self, flow: Flow) -> None:
        known = len(self._kinds)
        for block in flow.blocks:
            kind = block.kind
            if id(kind) not in self._numbers:
                key = kind.scope, kind.scope_version, kind.schema_url
                scope = self._scopes.setdefault(key, len(self._scopes))
                self._numbers[id(kind)] = len(self._kinds), scope
                self._kinds.append(kind)
        if len(self._kinds) > known:
            self._programs = compile_kinds(self._kinds)

    def _kept(self, spans: Columns) -> NDArray[np.int64] | None:
        """Spans that are not lost; None for all."""
        if len(self._losses) == 1:
            return None
        at = np.asarray([start for start, _ in self._losses])
        share = np.asarray([share for _, share in self._losses])
        chance = share[np.searchsorted(at, spans.end, side="right") - 1]
        kept = np.flatnonzero(ids.chance(spans.span, "lost") >= chance)
        self.lost += len(spans) - len(kept)
        return kept

    def _sent(self, until_ns: int) -> Iterator[Body]:
        if self._waiting is not None and len(self._waiting):
            batches, stay = self._batcher.take(self._waiting, until_ns)
            if len(batches.order):
                for body in self._encode(self._waiting, batches):
                    heapq.heappush(self._under_way, body)
                self._waiting = self._waiting.take(stay) if len(stay) else None
        while self._under_way and self._under_way[0][0] <= until_ns:
            arrival, _, sent = heapq.heappop(self._under_way)
            self.bodies += 1
            yield arrival, sent

    def _encode(self, spans: Columns, batches: Batches) -> Iterator[tuple[int, int, bytes]]:
        first, body = batches.first, 0
        while body < len(batches.process):
            last = int(np.searchsorted(first, first[body] + AT_ONCE, side="right")) - 1
            last = max(last, body + 1)
            order = batches.order[first[body] : first[last]]
            written, ends = self._write(spans, order)
            for i in range(body, last):
                low, high = first[i] - first[body], first[i + 1] - first[body]
                yield (
                    int(batches.arrival[i]),
                    next(self._counter),
                    self._assemble(
                        int(batches.process[i]), spans.scope[order[low:high]], written, ends, low
                    ),
                )
            body = last
        self.spans += len(batches.order)

    def _write(self, spans: Columns, order: NDArray[np.int64]) -> tuple[bytes, NDArray[np.int64]]:
        texts, text_at, longest = self.places.texts.arrays()
        statuses, status_at, longest_status = self.places.statuses.arrays()
        p = self._programs
        kind = spans.kind[order]
        room = p.size[kind] + p.texts_in[kind] * longest + longest_status
        out = np.empty(int(room.sum()) + 64, np.uint8)
        ends = np.empty(len(order), np.int64)
        shift = self._epoch + self._clocks.shift(spans.process, spans.start)
        size = write_spans(
            out, ends, order, spans.kind, spans.trace, spans.span, spans.parent,
            spans.start, spans.end, shift, spans.flags, spans.status, spans.slot_at, spans.slots,
            p.ops, p.first, p.blob, texts, text_at, statuses, status_at,
        )  # fmt: skip
        return out[:size].tobytes(), ends

    def _assemble(
        self,
        process: int,
        scope: NDArray[np.int32],
        written: bytes,
        ends: NDArray[np.int64],
        low: int,
    ) -> bytes:
        heads = self._heads(self.places.services[process])
        turns = np.flatnonzero(np.append(True, scope[1:] != scope[:-1]))
        stops = np.append(turns[1:], len(scope))
        parts = [self.places.resources[process]]
        size = len(parts[0])
        at = int(ends[low - 1]) if low else 0
        for turn, stop in zip(turns.tolist(), stops.tolist(), strict=True):
            head, tail = heads[int(scope[turn])]
            end = int(ends[low + stop - 1])
            length = len(head) + end - at + len(tail)
            opened = b"\x12" + wire.varint(length) + head
            parts += [opened, written[at:end], tail]
            size += len(opened) + end - at + len(tail)
            at = end
        return b"".join([b"\x0a", wire.varint(size), *parts])

    def _heads(self, service: str) -> list[tuple[bytes, bytes]]:
        """Scopes in their messages; without a name, the tracer is named after the service."""
        return [
            (wire.scope(name or service, version), wire.text(3, schema))
            for name, version, schema in self._scopes
        ]


class Clocks:
    """How far each process's clock is ahead, at any instant."""

    def __init__(self, places: Places) -> None:
        self._hosts = places.hosts
        self._offset = np.asarray([c.offset_ns for c in places.clocks], np.int64)
        self._drift = np.asarray([c.drift_ppb for c in places.clocks], np.int64)
        self._steps: list[tuple[int, str, int]] = []

    def step(self, host: str, offset_ns: int, from_ns: int) -> None:
        self._steps.append((from_ns, host, offset_ns))
        self._steps.sort()

    def shift(self, process: NDArray[np.int32], at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Clock minus true time of a process at an instant, in ns."""
        ahead = self._offset[process] + at // 1_000 * self._drift[process] // 1_000_000
        if not self._steps:
            return ahead
        added = np.zeros(len(at), np.int64)
        for from_ns, host, offset_ns in self._steps:
            on = np.asarray([h == host for h in self._hosts])[process]
            added = np.where(on & (at >= from_ns), offset_ns, added)
        return ahead + added


def bodies(
    attempts: Attempts,
    wiring: Wiring,
    *,
    seed: int = 0,
    epoch_unix_ns: int = 0,
    watch: Callable[[SpanTelemetry], None] | None = None,
) -> Iterator[Body]:
    """(arrival_ns, body) of all attempts at once, in order of arrival."""
    telemetry = SpanTelemetry(wiring, seed=seed, epoch_unix_ns=epoch_unix_ns)
    if watch:
        watch(telemetry)
    yield from telemetry.feed(attempts, -END_NS)
    yield from telemetry.finish()
