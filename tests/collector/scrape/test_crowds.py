"""Many targets that hang or pour at once, and lists that hang: no other waits for them.

Their answers are made in the loop, whose time is virtual: so rounds are counted, not waited for.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import httpx
import pytest

from tailburn.collector.scrape.discovery import Discovery
from tailburn.collector.scrape.errors import Reason
from tailburn.collector.scrape.fetch import Bounds
from tailburn.collector.scrape.prometheus import PrometheusSource
from tailburn.collector.scrape.scraper import AT_ONCE, Pace, Scraper
from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.signals.targets import Target
from tests.collector.scrape.bench import NOW_NS, Listed, Taken, targets
from tests.collector.scrape.virtual_time import now_s, run_virtually

PACE = Pace(interval_s=15.0, bounds=Bounds(timeout_s=10.0, body_bytes=1 << 20))
GOOD = b"tgi_queue_size 1\n"
LAST_S = 150.0
"""Eleven rounds begin up to then, at 0 s, 15 s and so on."""


@dataclass
class Crowd:
    """What is asked when; `good` answers at once, the others as `bad` does."""

    bad: Callable[[], Awaitable[httpx.Response]]
    taken: Taken = field(default_factory=Taken)
    asked_s: dict[str, list[float]] = field(default_factory=dict)
    open: int = 0
    most_open: int = 0

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked_s.setdefault(request.url.host, []).append(now_s())
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if request.url.host == "good":
                return httpx.Response(200, content=good())
            return await self.bad()
        finally:
            self.open -= 1

    def scraper(self, discovery: Discovery, prometheus: PrometheusSource | None = None) -> Scraper:
        client = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return Scraper(
            load_catalogue(), discovery, client, self.taken, lambda: NOW_NS, PACE, prometheus, now_s
        )


async def good() -> AsyncIterator[bytes]:
    yield GOOD


async def hangs() -> httpx.Response:
    await asyncio.Event().wait()
    raise AssertionError


async def rounds(scraper: Scraper) -> None:
    """All that begin up to `LAST_S`."""
    task = asyncio.create_task(scraper.run())
    await asyncio.sleep(LAST_S + PACE.interval_s / 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0)


@pytest.mark.timeout(60)
def test_many_that_hang_hold_up_no_other() -> None:
    """Three times as many as are read at once, and they are listed before the good one."""
    crowd = Crowd(hangs)
    listed = targets(*(f"bad{i}:1" for i in range(3 * AT_ONCE)), "good:1")

    async def run() -> Scraper:
        scraper = crowd.scraper(Discovery([listed]))
        await scraper.round()  # that they hang is known from then on
        crowd.asked_s.clear()
        await rounds(scraper)
        return scraper

    scraper = run_virtually(run())
    good = crowd.asked_s.pop("good")
    assert [b - a for a, b in zip(good, good[1:], strict=False)] == pytest.approx([15.0] * 10)
    assert crowd.asked_s.keys() == {f"bad{i}" for i in range(3 * AT_ONCE)}, "each has its turn"
    assert crowd.most_open <= AT_ONCE, "as many as there are connections"
    assert scraper.tally.reads.keys() == {Reason.UP, Reason.TIMEOUT}
    ups = {place: value for (place, name), value in crowd.taken.values().items() if name == "up"}
    assert Counter(ups.values()) == {0.0: 3 * AT_ONCE, 1.0: 1}


@dataclass
class Pouring:
    """Answers without an end, and what was held in the room after each piece."""

    held_bytes: list[int] = field(default_factory=list)
    scraper: Scraper | None = None

    async def __call__(self) -> httpx.Response:
        return httpx.Response(200, content=self._pieces())

    async def _pieces(self) -> AsyncIterator[bytes]:
        while True:
            yield GOOD * 1_000
            assert self.scraper is not None
            self.held_bytes.append(self.scraper.room.held_bytes)
            await asyncio.sleep(0.01)


@pytest.mark.timeout(60)
def test_many_large_answers_are_held_within_one_bound() -> None:
    pouring = Pouring()
    crowd = Crowd(pouring)
    listed = targets(*(f"bad{i}:1" for i in range(40)), "good:1")

    async def run() -> Scraper:
        pouring.scraper = crowd.scraper(Discovery([listed]))
        await pouring.scraper.round()
        return pouring.scraper

    scraper = run_virtually(run())
    most_bytes = 4 * PACE.bounds.body_bytes
    assert most_bytes - 40_000 < max(pouring.held_bytes) <= most_bytes
    assert scraper.room.held_bytes == 0
    assert scraper.tally.reads == {Reason.TOO_LARGE: 40, Reason.UP: 1}


class Hanging(Listed):
    """A list that is never given."""

    async def find(self) -> Sequence[Target]:
        await asyncio.Event().wait()
        return ()


@pytest.mark.timeout(60)
def test_a_list_and_a_prometheus_that_hang_hold_up_no_target() -> None:
    crowd = Crowd(hangs)
    source = PrometheusSource("http://prometheus:9090", load_catalogue(), "acme")
    discovery = Discovery([Hanging([]), targets("good:1")], patience_s=1.0)

    async def run() -> Scraper:
        scraper = crowd.scraper(discovery, source)
        await rounds(scraper)
        return scraper

    scraper = run_virtually(run())
    good = crowd.asked_s["good"]
    assert [b - a for a, b in zip(good, good[1:], strict=False)] == pytest.approx([15.0] * 10)
    assert scraper.tally.reads == {Reason.UP: 11, Reason.TIMEOUT: 10}
