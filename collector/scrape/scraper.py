"""Reads every target in turn, for ever, and hands what they say on as rows.

A round begins each interval. Each target has its own moment in it, always the same, so that a
thousand of them are no wave. No round waits for one before it: a target that is still being read
is left out of the next, and those that hung when last read wait for each other, not the others.
"""

import asyncio
import logging
import time
import zlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import httpx
import pyarrow as pa

from tailburn.collector.errors import IngestError
from tailburn.collector.scrape.discovery import Discovery
from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.fetch import Bounds
from tailburn.collector.scrape.prometheus import Asked, PrometheusSource
from tailburn.collector.scrape.reading import Answer, read_target, shared_of
from tailburn.collector.scrape.room import Room
from tailburn.collector.scrape.tally import KEPT, REFUSED, UNKNOWN, Standing, Tally
from tailburn.collector.scrape.telling import Telling
from tailburn.collector.signals.catalogue import Catalogue
from tailburn.collector.signals.mapper import Mapped, Mapper, signals_table
from tailburn.collector.signals.targets import Target

log = logging.getLogger(__name__)

_AT_ONCE: Final = 64
_HANGING_AT_ONCE: Final = 64
AT_ONCE: Final = _AT_ONCE + _HANGING_AT_ONCE
"""Targets that are read at once, whatever they do: each is an open connection."""

_INLINE_ROWS: Final = 2_000
"""More than these are put together in a thread: 10,000 take 0.2 s."""


class TakeRows(Protocol):
    """Makes rows durable. Raises IngestError."""

    async def __call__(self, rows: pa.Table, tenant: str, received_ns: int) -> None: ...


@dataclass(frozen=True)
class Pace:
    """How often, and within which bounds."""

    interval_s: float = 15.0
    bounds: Bounds = Bounds()

    @property
    def spread_s(self) -> float:
        """The part of a round in which reading may begin."""
        return max(self.interval_s - self.bounds.timeout_s, 0.0)


class Scraper:
    """Targets in, rows out. `tally` says how each target is."""

    def __init__(
        self,
        catalogue: Catalogue,
        discovery: Discovery,
        client: httpx.AsyncClient,
        take: TakeRows,
        now_ns: Callable[[], int],
        pace: Pace,
        prometheus: PrometheusSource | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tally = Tally()
        self.discovery = discovery
        self._shared = shared_of(client, catalogue, pace.bounds)
        self._take = take
        self._now_ns = now_ns
        self._pace = pace
        self._prometheus = prometheus
        self._monotonic_s = monotonic_s
        self._telling = Telling()
        self._mappers: dict[str, tuple[Target, Mapper]] = {}
        self._asked: set[str] = set()  # targets that Prometheus named last
        self._reading: dict[str, asyncio.Task[None]] = {}  # by target
        self._limit = asyncio.Semaphore(_AT_ONCE)
        self._limit_hanging = asyncio.Semaphore(_HANGING_AT_ONCE)

    @property
    def room(self) -> Room:
        """Where answers are held while they are read."""
        return self._shared.room

    async def run(self) -> None:
        """Round after round until cancelled."""
        try:
            while True:
                began_s = self._monotonic_s()
                try:
                    await self._begin(self._pace.spread_s)
                except Exception:
                    # The next round tries again: what is sent must not suffer for what is read.
                    log.exception("a round of reading metrics failed")
                took_s = self._monotonic_s() - began_s
                await asyncio.sleep(max(self._pace.interval_s - took_s, 0.05))
        finally:
            self.discovery.cancel()
            for task in self._reading.values():
                task.cancel()

    async def round(self, spread_s: float = 0.0) -> None:
        """Reads each target once, to the end."""
        await self._begin(spread_s)
        await asyncio.gather(*self._reading.values())

    async def _begin(self, spread_s: float) -> None:
        targets = await self.discovery.targets()
        self._forget(target.key for target in targets)
        self._telling.tick(self._monotonic_s())
        for target in targets:
            self._start(target, partial(self._later, target, spread_s * _place(target)))
        if self._prometheus is not None:
            asked = self._prometheus
            self._start(asked.target, partial(self._read_prometheus, asked))

    def _start(self, target: Target, read: Callable[[], Awaitable[None]]) -> None:
        """Begins to read one; not while it is still being read."""
        if target.key in self._reading:
            return

        async def guarded() -> None:
            try:
                await read()
            except Exception:
                log.exception("what target %s told can't be handed on", target.instance)
            finally:
                del self._reading[target.key]

        self._reading[target.key] = asyncio.create_task(guarded())

    async def _later(self, target: Target, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        standing = self.tally.targets.get(target.key)
        hung = standing is not None and standing.reason is Reason.TIMEOUT
        async with self._limit_hanging if hung else self._limit:
            await self._read(target)

    async def _read(self, target: Target) -> None:
        began_s = self._monotonic_s()
        answer: Answer | None = None
        reason, message = Reason.UP, ""
        try:
            answer = await read_target(target.url, self._mapper(target), self._shared)
            message = answer.complaint
        except ScrapeError as error:
            reason, message = error.reason, str(error)
        except Exception as error:
            # One odd target must not end the round for the others.
            log.exception("target %s can't be read", target.instance)
            reason, message = Reason.BROKEN, repr(error)
        took_s = self._monotonic_s() - began_s
        self.tally.took(took_s)
        if answer is not None:
            self._count(answer)
        refused = await self._hand_on(answer.mapped if answer else None, target)
        self._note(target, reason, refused or message, answer, took_s)

    async def _read_prometheus(self, prometheus: PrometheusSource) -> None:
        """All that it has; where it does not answer, its targets stay as they were."""
        began_s, target = self._monotonic_s(), prometheus.target
        try:
            asked = await prometheus.ask(self._shared.client, self._pace.bounds)
        except ScrapeError as error:
            self._note(target, error.reason, str(error), None, self._monotonic_s() - began_s)
            return
        took_s = self._monotonic_s() - began_s
        self.tally.took(took_s)
        self._note(target, Reason.UP, "", None, took_s)
        self._asked = {one.target.key for one in asked}
        await asyncio.gather(*map(self._take_asked, asked))

    async def _take_asked(self, asked: Asked) -> None:
        if asked.scanned is None:
            await self._hand_on(None, asked.target)
            self._note(asked.target, Reason.CONNECT, "down, says Prometheus", None, 0.0)
            return
        answer = Answer(self._mapper(asked.target).map(asked.scanned), asked.scanned, 0)
        self._count(answer)
        refused = await self._hand_on(answer.mapped, asked.target)
        self._note(asked.target, Reason.UP, refused or answer.complaint, answer, 0.0)

    def _mapper(self, target: Target) -> Mapper:
        known, mapper = self._mappers.get(target.key, (None, None))
        if mapper is None or known != target:
            mapper = Mapper(self._shared.catalogue, target)
            self._mappers[target.key] = target, mapper
        return mapper

    async def _hand_on(self, mapped: Mapped | None, target: Target) -> str:
        """Makes the rows durable; why they are not, where they are not."""
        received_ns = self._now_ns()
        told = mapped, self._shared.catalogue, target, received_ns
        if mapped is not None and len(mapped.rows) > _INLINE_ROWS:
            rows = await asyncio.to_thread(signals_table, *told)
        else:
            rows = signals_table(*told)
        try:
            await self._take(rows, target.tenant, received_ns)
        except IngestError as error:
            self.tally.samples[REFUSED] += rows.num_rows
            return f"read, but not taken: {error}"
        return ""

    def _count(self, answer: Answer) -> None:
        kept, dropped = answer.mapped.samples, answer.scanned.dropped
        self.tally.samples[KEPT] += kept
        self.tally.samples[UNKNOWN] += answer.scanned.lines - kept - dropped.total()
        for why, count in dropped.items():
            self.tally.samples[why] += count

    def _note(
        self, target: Target, reason: Reason, message: str, answer: Answer | None, took_s: float
    ) -> None:
        self.tally.reads[reason] += 1
        self._telling.tell(target, reason, message, self._monotonic_s())
        self.tally.targets[target.key] = Standing(
            instance=target.instance,
            job=target.job,
            via=target.via,
            reason=reason,
            message=message,
            sources=tuple(sorted(answer.mapped.sources)) if answer else (),
            samples=len(answer.scanned.values) if answer else 0,
            duration_s=took_s,
        )

    def _forget(self, keys: Iterable[str]) -> None:
        """Lets go of targets that are no longer named."""
        named = {*keys, *self._asked}
        if self._prometheus is not None:
            named.add(self._prometheus.target.key)
        gone = (self.tally.targets.keys() | self._mappers.keys()) - named
        for key in gone:
            self.tally.targets.pop(key, None)
            self._mappers.pop(key, None)
        self._telling.forget(gone)


def _place(target: Target) -> float:
    """Where in a round a target is read: 0 to 1, always the same."""
    return zlib.crc32(target.url.encode()) / (1 << 32)
