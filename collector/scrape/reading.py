"""One target read: its answer fetched, scanned and mapped."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

import httpx

from tailburn.collector.errors import BadBody, TooLarge
from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.fetch import Bounds, fetch_into
from tailburn.collector.scrape.ras import fetch_ras_into, metrics_of
from tailburn.collector.scrape.room import Room
from tailburn.collector.signals.catalogue import Catalogue
from tailburn.collector.signals.exposition import Scanned, scan
from tailburn.collector.signals.mapper import Mapped, Mapper

_INLINE_BYTES: Final = 256 * 1024
"""A body up to this size is scanned where it came in: a thread costs more."""

_THREADS: Final = 2
"""So many larger ones are scanned at once: with each more, the doors wait longer for their turn."""

_LARGEST_AT_ONCE: Final = 4


@dataclass(frozen=True)
class Answer:
    """What a target said."""

    mapped: Mapped
    scanned: Scanned
    body_bytes: int

    @property
    def complaint(self) -> str:
        """What was left out of the answer, in one sentence; empty where nothing was."""
        dropped = self.scanned.dropped
        if not dropped:
            return ""
        counts = ", ".join(f"{why} ({count:,})" for why, count in dropped.most_common())
        also = f"; first: {self.scanned.first_bad!r}" if self.scanned.first_bad else ""
        return f"samples left out: {counts}{also}"


@dataclass(frozen=True)
class Shared:
    """What all targets that are read at once share, so that large answers cost others nothing."""

    client: httpx.AsyncClient
    catalogue: Catalogue
    bounds: Bounds
    room: Room
    threads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_THREADS))


def shared_of(client: httpx.AsyncClient, catalogue: Catalogue, bounds: Bounds) -> Shared:
    """Room for a few answers as large as one may be."""
    return Shared(client, catalogue, bounds, Room(_LARGEST_AT_ONCE * bounds.body_bytes))


async def read_target(url: str, mapper: Mapper, shared: Shared) -> Answer:
    """Raises ScrapeError."""
    with shared.room.place() as place:
        if url.startswith("ncclras:"):
            await fetch_ras_into(place, url, shared.bounds)
            read = _read_ras
        else:
            await fetch_into(place, shared.client, url, shared.bounds)
            read = read_body
        if place.held_bytes <= _INLINE_BYTES:
            return read(place.whole(), mapper, shared.catalogue)
        async with shared.threads:
            return await asyncio.to_thread(read, place.whole(), mapper, shared.catalogue)


def _read_ras(body: bytes, mapper: Mapper, catalogue: Catalogue) -> Answer:
    return read_body(metrics_of(body), mapper, catalogue)


def read_body(body: bytes, mapper: Mapper, catalogue: Catalogue) -> Answer:
    """Raises ScrapeError."""
    try:
        scanned = scan(body, catalogue.uses, catalogue.families)
    except BadBody as error:
        raise ScrapeError(Reason.NOT_METRICS, str(error)) from None
    except TooLarge as error:
        raise ScrapeError(Reason.TOO_LARGE, str(error)) from None
    if not scanned.lines:
        raise ScrapeError(Reason.NOT_METRICS, f"answers {len(body):,} bytes without one sample")
    return Answer(mapper.map(scanned), scanned, len(body))
