"""Reads every target in turn, for ever, and hands what they say on as rows.

A round lasts one interval. Each target has its own moment in it, always the same, so that a
thousand of them are no wave; none may take longer than the time-out, so that rounds never meet.
"""

import asyncio
import logging
import time
import zlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import httpx
import pyarrow as pa

from tailburn.collector.errors import IngestError
from tailburn.collector.scrape.discovery import Discovery
from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.fetch import Bounds
from tailburn.collector.scrape.prometheus import Asked, PrometheusSource
from tailburn.collector.scrape.reading import Answer, read_target
from tailburn.collector.scrape.tally import KEPT, REFUSED, UNKNOWN, Standing, Tally
from tailburn.collector.signals.catalogue import Catalogue
from tailburn.collector.signals.mapper import Mapped, Mapper, signals_table
from tailburn.collector.signals.targets import Target

log = logging.getLogger(__name__)

AT_ONCE: Final = 64


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
        self._catalogue = catalogue
        self._client = client
        self._take = take
        self._now_ns = now_ns
        self._pace = pace
        self._prometheus = prometheus
        self._monotonic_s = monotonic_s
        self._mappers: dict[str, tuple[Target, Mapper]] = {}
        self._limit = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Round after round until cancelled."""
        while True:
            began_s = self._monotonic_s()
            try:
                await self.round(self._pace.spread_s)
            except Exception:
                # The next round tries again: what is sent must not suffer for what is read.
                log.exception("a round of reading metrics failed")
            await asyncio.sleep(max(self._pace.interval_s - (self._monotonic_s() - began_s), 0.05))

    async def round(self, spread_s: float = 0.0) -> None:
        """Reads each target once, within `spread_s` and the time-out."""
        targets = await self.discovery.targets()
        work: list[Coroutine[Any, Any, None]] = [
            self._later(target, spread_s * _place(target)) for target in targets
        ]
        asked: list[Asked] = []
        if self._prometheus is not None:
            asked = await self._ask_prometheus(self._prometheus)
            work += (self._take_asked(one) for one in asked)
        self._forget([*targets, *(one.target for one in asked)])
        await asyncio.gather(*work)

    async def _later(self, target: Target, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        async with self._limit:
            await self._read(target)

    async def _read(self, target: Target) -> None:
        began_s = self._monotonic_s()
        answer: Answer | None = None
        reason, message = Reason.UP, ""
        try:
            answer = await read_target(
                self._client, target.url, self._mapper(target), self._catalogue, self._pace.bounds
            )
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

    async def _ask_prometheus(self, prometheus: PrometheusSource) -> list[Asked]:
        began_s = self._monotonic_s()
        target = prometheus.target
        try:
            asked = await prometheus.ask(self._client, self._pace.bounds)
        except ScrapeError as error:
            self._note(target, error.reason, str(error), None, self._monotonic_s() - began_s)
            return []
        took_s = self._monotonic_s() - began_s
        self.tally.took(took_s)
        self._note(target, Reason.UP, "", None, took_s)
        return asked

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
            mapper = Mapper(self._catalogue, target)
            self._mappers[target.key] = target, mapper
        return mapper

    async def _hand_on(self, mapped: Mapped | None, target: Target) -> str:
        """Makes the rows durable; why they are not, where they are not."""
        received_ns = self._now_ns()
        rows = signals_table(mapped, self._catalogue, target, received_ns)
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
        before = self.tally.targets.get(target.key)
        _say(target, before, reason, message)
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

    def _forget(self, targets: Sequence[Target]) -> None:
        """Lets go of targets that are no longer named."""
        named = {target.key for target in targets}
        if self._prometheus is not None:
            named.add(self._prometheus.target.key)
        for key in self.tally.targets.keys() - named:
            del self.tally.targets[key]
        for key in self._mappers.keys() - named:
            del self._mappers[key]


def _say(target: Target, before: Standing | None, reason: Reason, message: str) -> None:
    """One line when a target changes, and none while it stays as it is."""
    if before is not None and before.reason is reason and bool(before.message) == bool(message):
        return
    name = f"{target.instance} ({target.via})" if target.via else target.instance
    if reason is not Reason.UP:
        log.warning("target %s: %s", name, message)
    elif message:
        log.warning("target %s is read, but %s", name, message)
    elif before is not None:
        log.info("target %s is read again", name)


def _place(target: Target) -> float:
    """Where in a round a target is read: 0 to 1, always the same."""
    return zlib.crc32(target.url.encode()) / (1 << 32)
