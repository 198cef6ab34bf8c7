"""From the doors to the log: decode, write, sync, and only then acknowledge.

    body -> decoder ┐                       ┌ waiters are told
                    ├ group -> log, synced ─┤
    body, blanked ──┘                       └ Delivery -> `deliveries` -> keeper

A body's rows and its place in the log are settled in one critical section, and a group is cut
off both at once: what is delivered is exactly what is durable, in the order of the log.
"""

import asyncio
import copy
import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final, Protocol

import pyarrow as pa

from tailburn.collector.accept import Accepted, Encoding, Signal
from tailburn.collector.errors import Busy, IngestError
from tailburn.collector.group import DecodePoints, Decoder, Delivery, Group, Points
from tailburn.collector.log import Entry, LogWriter
from tailburn.collector.packing import packed

log = logging.getLogger(__name__)

BACKLOG_BYTES: Final = 128 * 1024 * 1024
TICK_NS: Final = 500_000_000

# A body up to this size is decoded where it came in: handing it to a thread costs more than
# the event loop loses. Larger ones would hold up everybody else's answers.
_INLINE_BYTES: Final = 64 * 1024

# Bodies wait for each other's turn, so receive times may be out of order by a little. More
# than that means that the clock was set back, and is followed.
_DISORDER_NS: Final = 10_000_000_000


class Converted(Protocol):
    """A JSON body as protobuf."""

    @property
    def body(self) -> bytearray: ...
    @property
    def rejected(self) -> int: ...
    @property
    def message(self) -> str: ...


class ToProtobuf(Protocol):
    """Turns a body of spans from JSON into protobuf. Raises `BadBody`."""

    def __call__(self, body: bytearray) -> Converted: ...


class Backlog:
    """Bytes of bodies that are taken and not yet worked through. Safe in any thread."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self.bytes = 0

    def reserve(self, size: int) -> None:
        """Raises `Busy` where that would be too much. A single body always fits."""
        with self._lock:
            if self.bytes and self.bytes + size > self._limit_bytes:
                raise Busy(f"{self.bytes:,} bytes are waiting to be worked through")
            self.bytes += size

    def release(self, size: int) -> None:
        """Gives room back."""
        with self._lock:
            self.bytes -= size

    @contextmanager
    def released_on_failure(self, size: int) -> Iterator[None]:
        """Gives room back when what is inside fails."""
        try:
            yield
        except BaseException:
            self.release(size)
            raise


@dataclass(frozen=True)
class _Arrival:
    """A body and who waits for it to be durable."""

    signal: Signal
    encoding: Encoding
    body: bytearray
    tenant: str
    received_ns: int
    size: int  # as reserved
    loop: asyncio.AbstractEventLoop
    durable: asyncio.Future[None]


@dataclass(frozen=True)
class _Prepared:
    """What can be done to a body without knowing its place in the log."""

    body: bytearray
    points: Points | None = None
    rows: pa.Table | None = None  # made here, not sent
    rejected: int = 0
    message: str = ""


@dataclass(frozen=True)
class _Cut:
    """What goes into the log next, and out of it again."""

    entries: Sequence[Entry]
    waiting: Sequence[_Arrival]
    delivery: Delivery
    behind: bool  # it was there before the last group was written


class Intake:
    """Implements `collector.accept.Accept`.

    `deliveries` must be emptied by a consumer that calls `consumed` for each; None is the last.
    Memory is bounded: with `backlog_bytes` of bodies not consumed, or the log at its bound, a
    body is refused before it is decoded.
    """

    def __init__(
        self,
        writer: LogWriter,
        decoder: Decoder,
        to_protobuf: ToProtobuf,
        decode_points: DecodePoints,
        backlog_bytes: int = BACKLOG_BYTES,
    ) -> None:
        self.deliveries: SimpleQueue[Delivery | None] = SimpleQueue()
        self.backlog = Backlog(backlog_bytes)
        self.points_rejected = 0
        self._writer = writer
        self._decoder = decoder
        self._to_protobuf = to_protobuf
        self._decode_points = decode_points
        self._changed = threading.Condition(threading.Lock())  # guards decoder and all below
        self._group = Group()
        self._waiting: list[_Arrival] = []
        self._last_ns = 0
        self._last_tick_ns = 0
        self._closing = False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="decode")
        self._thread = threading.Thread(target=self._run, name="log-writer")
        self._thread.start()

    async def __call__(
        self, signal: Signal, encoding: Encoding, body: bytearray, tenant: str, received_ns: int
    ) -> Accepted:
        """Decodes a body, and returns once it is in the log; see `Accept`."""
        return await self._durable(signal, encoding, body, tenant, received_ns, None)

    async def take_rows(self, rows: pa.Table, tenant: str, received_ns: int) -> None:
        """Takes rows of engine.schema.SIGNALS that were read here, as if somebody had sent them.

        Returns once they are in the log. Raises IngestError.
        """
        body = packed(rows)
        ready = _Prepared(body, rows=rows)
        await self._durable(Signal.METRICS, Encoding.PROTOBUF, body, tenant, received_ns, ready)

    async def _durable(
        self,
        signal: Signal,
        encoding: Encoding,
        body: bytearray,
        tenant: str,
        received_ns: int,
        prepared: _Prepared | None,
    ) -> Accepted:
        if self._writer.is_full:
            raise Busy("the log is at its bound: the store does not keep up")
        size = len(body)
        self.backlog.reserve(size)
        loop = asyncio.get_running_loop()
        durable: asyncio.Future[None] = loop.create_future()
        arrival = _Arrival(signal, encoding, body, tenant, received_ns, size, loop, durable)
        try:
            accepted = await self._take(arrival, prepared)
            await durable
        finally:
            durable.cancel()  # a sender that has gone away leaves nobody to be told
        return accepted

    @property
    def trouble(self) -> str | None:
        """Why bodies are refused at the moment; None when all is well."""
        if not self._thread.is_alive():
            return "the log writer has stopped"
        return self._writer.trouble

    def tick(self, now_ns: int, closes_all: bool = False) -> None:
        """Lets time come to `now_ns`, in order with the bodies. Comes back as a `Delivery`.

        With `closes_all` what is open is closed, due or not, as at the end of a recording.
        """
        with self._changed:
            if not self._closing:
                self._tick(self._in_order(now_ns), closes_all)
                self._changed.notify()

    def consumed(self, delivery: Delivery) -> None:
        """Gives back the room that a delivery took."""
        self.backlog.release(delivery.body_bytes)

    def close(self) -> None:
        """Takes nothing more, writes what was taken, and ends `deliveries`.

        Blocks; the event loops must go on meanwhile, so that waiters hear of it.
        """
        self._pool.shutdown()
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    async def _take(self, arrival: _Arrival, prepared: _Prepared | None) -> Accepted:
        if prepared is None and arrival.size > _INLINE_BYTES:
            return await self._in_pool(arrival, None)
        prepared = prepared or self._prepare(arrival)
        if not self._changed.acquire(blocking=False):
            return await self._in_pool(arrival, prepared)
        try:
            return self._add(arrival, prepared)
        finally:
            self._changed.release()

    async def _in_pool(self, arrival: _Arrival, prepared: _Prepared | None) -> Accepted:
        def work() -> Accepted:
            ready = prepared or self._prepare(arrival)
            with self._changed:
                return self._add(arrival, ready)

        try:
            job = self._pool.submit(work)
        except RuntimeError as error:
            self.backlog.release(arrival.size)
            raise Busy("the service is stopping") from error
        job.add_done_callback(
            lambda job: self.backlog.release(arrival.size) if job.cancelled() else None
        )
        return await asyncio.wrap_future(job)

    def _prepare(self, arrival: _Arrival) -> _Prepared:
        """The part of the work for which nobody needs to wait."""
        with self.backlog.released_on_failure(arrival.size):
            if arrival.signal is Signal.METRICS:
                points = self._decode_points(
                    arrival.body,
                    arrival.encoding,
                    received_ns=arrival.received_ns,
                    tenant=arrival.tenant,
                )
                return _Prepared(arrival.body, points)
            if arrival.encoding is Encoding.JSON:
                converted = self._to_protobuf(arrival.body)
                return _Prepared(
                    converted.body, rejected=converted.rejected, message=converted.message
                )
            return _Prepared(arrival.body)

    def _add(self, arrival: _Arrival, prepared: _Prepared) -> Accepted:
        """Gives a body its rows and its place in the log. The lock is held."""
        with self.backlog.released_on_failure(arrival.size):
            if self._closing:
                raise Busy("the service is stopping")
            received_ns = self._in_order(arrival.received_ns)
            if abs(received_ns - self._last_tick_ns) >= TICK_NS:
                self._tick(received_ns)
            if prepared.rows is not None:
                accepted = Accepted()
                self._group.add_rows(
                    prepared.rows, arrival.body, arrival.received_ns, arrival.tenant
                )
            elif prepared.points is not None:
                accepted = self._add_points(arrival, prepared.points)
            else:
                accepted = self._add_spans(arrival, prepared, received_ns)
            self._waiting.append(arrival)
            self._changed.notify()
            return accepted

    def _add_points(self, arrival: _Arrival, points: Points) -> Accepted:
        self._group.add_points(
            points, arrival.body, arrival.encoding, arrival.received_ns, arrival.tenant
        )
        self.points_rejected += points.rejected
        return Accepted(points.rejected, points.message)

    def _add_spans(self, arrival: _Arrival, prepared: _Prepared, received_ns: int) -> Accepted:
        decoded = self._decoder.add(prepared.body, received_ns=received_ns, tenant=arrival.tenant)
        self._group.add_spans(decoded, received_ns, arrival.tenant, arrival.size, prepared.rejected)
        return Accepted(prepared.rejected + decoded.rejected, prepared.message or decoded.message)

    def _in_order(self, received_ns: int) -> int:
        if 0 <= self._last_ns - received_ns < _DISORDER_NS:
            received_ns = self._last_ns
        self._last_ns = received_ns
        return received_ns

    def _tick(self, now_ns: int, closes_all: bool = False) -> None:
        self._group.add_tick(now_ns, closes_all)
        self._last_tick_ns = now_ns

    def _run(self) -> None:
        try:
            while (cut := self._cut()) is not None:
                problem: IngestError | None = Busy("the log failed")
                try:
                    problem = self._write(cut)
                    self._hand_on(cut.delivery, problem)
                finally:
                    _tell(cut.waiting, problem)
        except Exception:
            log.exception("the log writer failed; nothing more is taken")
        finally:
            with self._changed:
                self._closing = True
                waiting, self._waiting = self._waiting, []
            _tell(waiting, Busy("the log failed"))
            self.deliveries.put(None)

    def _cut(self) -> _Cut | None:
        """All that waits to be written, and its rows; None when closed and done."""
        with self._changed:
            behind = bool(self._group)
            while not self._group and not self._closing:
                self._changed.wait()
            if not self._group:
                return None
            group, waiting = self._group, self._waiting
            self._group, self._waiting = Group(), []
            first = self._writer.next_position
            delivery = group.delivery(first, first + len(group) - 1, self._decoder)
            return _Cut(group.entries, waiting, delivery, behind)

    def _write(self, cut: _Cut) -> IngestError | None:
        before = self._writer.trouble
        try:
            # When bodies come faster than they are written, CPU is what is short.
            self._writer.append(cut.entries, compress=not cut.behind)
        except IngestError as problem:
            if self._writer.trouble != before:
                log.error("%s; bodies are refused until it can be written again", problem)
            return problem
        if before is not None:
            log.warning("the log can be written again")
        return None

    def _hand_on(self, delivery: Delivery, problem: IngestError | None) -> None:
        if problem is None:
            self.deliveries.put(delivery)
            return
        self.consumed(delivery)
        with self._changed:
            self._last_tick_ns = 0  # its ticks are lost as well


def _tell(waiting: Sequence[_Arrival], problem: IngestError | None) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Arrival]] = {}
    for arrival in waiting:
        by_loop.setdefault(arrival.loop, []).append(arrival)
    for loop, arrivals in by_loop.items():
        with suppress(RuntimeError):  # a closed loop has nobody left to be told
            loop.call_soon_threadsafe(_settle, arrivals, problem)


def _settle(arrivals: Sequence[_Arrival], problem: IngestError | None) -> None:
    for arrival in arrivals:
        if arrival.durable.done():
            continue
        if problem is None:
            arrival.durable.set_result(None)
        else:
            arrival.durable.set_exception(copy.copy(problem))
