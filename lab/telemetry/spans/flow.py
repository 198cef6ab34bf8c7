"""Attempts on their way through the stacks: each takes the trace context and hands one on.

A stack is a function of (flow, rows): it adds the spans it would emit for those attempts and
sets the context that it would forward. `Flow` holds what they share: instants, the context of
each attempt, ids, and when response headers passed each hop.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.records import Attempts, Outcome
from tailburn.lab.telemetry.spans import ids
from tailburn.lab.telemetry.spans.ids import U64
from tailburn.lab.telemetry.spans.places import Places
from tailburn.lab.telemetry.spans.template import ABSENT, Kind

I64 = NDArray[np.int64]
Rows = NDArray[np.int64]
Stack = Callable[["Flow", Rows], None]

PYTHON_FLAGS: Final = (256, 768)
RUST_FLAGS: Final = (257, 769)
OLD_RUST_FLAGS: Final = (1, 1)
MS: Final = 1_000_000


@dataclass
class Block:
    """Spans of one kind, as columns."""

    kind: Kind
    process: NDArray[np.int32]
    trace: U64
    span: U64
    parent: U64
    start: I64
    end: I64
    flags: NDArray[np.int32]
    status: NDArray[np.int32]
    slots: I64
    """One row a span, one column a slot of the kind."""


@dataclass
class Flow:
    """What the stacks share about some attempts. Arrays are one entry an attempt."""

    a: Attempts
    places: Places
    seed: int
    blocks: list[Block] = field(default_factory=list)

    def __post_init__(self) -> None:
        rows = len(self.a)
        self.by_request: U64 = request_key(self.a.request, self.seed)
        self.by_try: U64 = try_key(self.by_request, self.a.attempt, self.a.hedge)
        self.trace: U64 = trace_of(self.by_request)
        self._without_client()
        self.parent: U64 = np.zeros(rows, np.uint64)
        self.dynamo = self._through_dynamo()
        self.parent_prefill: U64 = np.zeros(rows, np.uint64)
        self.flags = np.full(rows, self.places.wiring.trace_flags)
        self.engine_id: U64 = ids.drawn(self.by_try, "engine id")
        self.x_request_id: U64 = ids.drawn(self.by_try, "x-request-id")
        self.headers_engine = np.full(rows, -1, np.int64)
        self.headers_upstream = np.full(rows, -1, np.int64)
        self.headers_gateway = np.full(rows, -1, np.int64)
        self.headers_client = np.full(rows, -1, np.int64)

    def _without_client(self) -> None:
        """Tries of a client that traces nothing: each begins a trace where it comes in."""
        clients = self.places.wiring.clients
        silent = self.places.stack_rows(clients, self.a.client.astype(np.int64), "none")
        if silent.any():
            self.trace[silent] = trace_of(self.by_try[silent])

    def _through_dynamo(self) -> Any:
        """Attempts whose ids are Dynamo's: UUIDs."""
        a, w = self.a, self.places.wiring
        router = np.where(a.router_in >= 0, self.places.router_of(a.replica), -1)
        routed: Any = self.places.stack_rows(w.routers, router, "dynamo")
        return routed | self.places.stack_rows(w.gateways, a.gateway.astype(np.int64), "dynamo")

    def ids(self, rows: Rows, name: str) -> U64:
        """Span ids of these attempts for what `name` says."""
        return ids.drawn(self.by_try[rows], name)

    def chance(self, rows: Rows, name: str) -> NDArray[np.float64]:
        """A number in [0, 1) for each, drawn once."""
        return ids.chance(self.by_try[rows], name)

    def exponential(self, rows: Rows, name: str, mean_ms: float) -> I64:
        """A wait in ns for each, exponential."""
        drawn = -np.log1p(-self.chance(rows, name)) * mean_ms * MS
        return drawn.astype(np.int64)

    def forward(self, rows: Rows, spans: U64) -> None:
        """What comes after is a child of these spans."""
        self.parent[rows] = spans

    def cut(self, rows: Rows, name: str) -> None:
        """What comes after begins a trace of its own."""
        self.trace[rows, 0] = ids.drawn(self.by_try[rows], f"{name}, trace")
        self.trace[rows, 1] = ids.drawn(self.by_try[rows], f"{name}, trace, low half")
        self.parent[rows] = np.uint64(0)

    def add(
        self,
        kind: Kind,
        rows: Rows,
        process: Any,
        start: Any,
        end: Any,
        span: U64,
        *,
        parent: Any = None,
        remote: bool = False,
        status: Any = 0,
        flags: tuple[int, int] = PYTHON_FLAGS,
        where: Any = None,
        trace: U64 | None = None,
        **slots: Any,
    ) -> None:
        """Spans of a kind, one for each row (`where`: for some). Ends never lie before starts.

        `parent` None: the context as it came, from another process.
        """
        count = len(rows)
        if parent is None:
            parent, remote = self.parent[rows], True
        parents = np.broadcast_to(np.asarray(parent, np.uint64), count)
        starts = np.broadcast_to(np.asarray(start, np.int64), count)
        ends = np.maximum(np.broadcast_to(np.asarray(end, np.int64), count), starts)
        keep = starts >= 0
        if where is not None:
            keep &= where
        if not keep.any():
            return
        missing = set(kind.slots) ^ set(slots)
        if missing:
            raise KeyError(f"{kind.name}: slots {sorted(missing)}")
        table = np.empty((int(keep.sum()), len(kind.slots)), np.int64)
        for i, name in enumerate(kind.slots):
            table[:, i] = np.broadcast_to(slot(slots[name]), count)[keep]
        far = flags[1] if remote else flags[0]
        self.blocks.append(
            Block(
                kind,
                np.broadcast_to(np.asarray(process, np.int32), count)[keep],
                (self.trace[rows] if trace is None else trace)[keep],
                span[keep],
                parents[keep],
                starts[keep],
                ends[keep],
                np.where(parents == 0, flags[0], far).astype(np.int32)[keep],
                np.broadcast_to(np.asarray(status, np.int32), count)[keep],
                table,
            )
        )

    def failed(self, rows: Rows) -> Any:
        """Attempts whose client got an error or gave up waiting."""
        outcome = self.a.outcome[rows]
        return (
            (outcome == Outcome.ERROR)
            | (outcome == Outcome.CLIENT_TIMEOUT)
            | (outcome == Outcome.REJECTED)
        )


def request_key(request: Any, seed: int) -> U64:
    """What everything of a request is drawn by."""
    return ids.mix(np.asarray(request).astype(np.uint64) ^ ids.mix(np.uint64(seed)))


def try_key(by_request: U64, attempt: Any, hedge: Any) -> U64:
    """What everything of a try is drawn by; a hedge bears the number of the try it is beside."""
    number = attempt.astype(np.uint64) + np.uint64(1) + hedge.astype(np.uint64) * np.uint64(256)
    return ids.mix(by_request ^ number)


def trace_of(by_request: U64) -> U64:
    """The trace that a request's client begins: two halves a row."""
    high, low = ids.drawn(by_request, "trace"), ids.drawn(by_request, "trace, low half")
    return np.stack([high, low], axis=-1)


def trace_ids(request: Any, seed: int) -> list[str]:
    """Trace ids in hex of requests by their running numbers: what a scorer joins by."""
    return _in_hex(trace_of(request_key(request, seed)))


def try_trace_ids(a: Attempts, seed: int) -> list[str]:
    """The same of attempts whose client traces nothing: each has a trace of its own."""
    return _in_hex(trace_of(try_key(request_key(a.request, seed), a.attempt, a.hedge)))


def _in_hex(traces: U64) -> list[str]:
    return [f"{high:016x}{low:016x}" for high, low in traces.tolist()]


def slot(values: Any) -> Any:
    """A column for a slot: doubles by their bits, all else as it is."""
    array = np.asarray(values)
    if array.dtype == np.float64:
        return np.ascontiguousarray(array).view(np.int64)
    if array.dtype == np.uint64:
        return array.view(np.int64)
    return array.astype(np.int64)


def seconds(ns: Any) -> Any:
    """Nanoseconds as the seconds that a Python program writes."""
    return np.asarray(ns, np.int64).astype(np.float64) / 1e9


def optional(values: Any, where: Any) -> Any:
    """A column that is absent where the condition does not hold."""
    return np.where(where, slot(values), ABSENT)


def happened(*instants: Any) -> Any:
    """The latest of some instants, -1 where none happened."""
    latest = np.asarray(instants[0], np.int64)
    for other in instants[1:]:
        latest = np.maximum(latest, other)
    return latest


def first_of(*instants: Any) -> Any:
    """The first of them that happened, in the order given; -1 where none did."""
    found = np.asarray(instants[0], np.int64)
    for other in instants[1:]:
        found = np.where(found >= 0, found, other)
    return found
