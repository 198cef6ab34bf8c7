"""Many targets that hang or pour at once, and lists that hang: no other waits for them."""

import asyncio
from collections.abc import Sequence

import pytest

from tailburn.collector.scrape.discovery import Discovery
from tailburn.collector.scrape.errors import Reason
from tailburn.collector.scrape.fetch import Bounds, new_client
from tailburn.collector.scrape.prometheus import PrometheusSource
from tailburn.collector.scrape.scraper import AT_ONCE, Pace, Scraper
from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.signals.targets import Target
from tests.collector.scrape.answers import hangs, http, listening, pours, says
from tests.collector.scrape.bench import (
    NOW_NS,
    Listed,
    Taken,
    targets,
)


@pytest.mark.timeout(60)
def test_many_that_hang_hold_up_no_other() -> None:
    """Three times as many as are read at once; the good one is read in each round from then on."""

    async def run() -> list[int]:
        taken, rounds = Taken(), []
        async with listening(hangs) as bad, listening(says(http(b"tgi_queue_size 1\n"))) as good:
            addresses = [f"127.0.0.1:{bad}/{i}" for i in range(3 * AT_ONCE)]
            listed = targets(f"127.0.0.1:{good}", *addresses)
            async with new_client(AT_ONCE) as client:
                scraper = Scraper(
                    load_catalogue(), Discovery([listed]), client, taken, lambda: NOW_NS,
                    Pace(0.5, Bounds(timeout_s=0.5)),
                )  # fmt: skip
                await scraper.round()
                task = asyncio.create_task(scraper.run())
                for _ in range(4):
                    before = scraper.tally.reads[Reason.UP]
                    await asyncio.sleep(1.0)
                    rounds.append(scraper.tally.reads[Reason.UP] - before)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        return rounds

    assert min(asyncio.run(run())) >= 1


@pytest.mark.timeout(60)
def test_many_large_answers_are_held_within_one_bound() -> None:
    bounds = Bounds(timeout_s=5.0, body_bytes=1 << 20)

    async def run() -> tuple[int, Scraper]:
        async with listening(pours) as port, new_client(AT_ONCE) as client:
            listed = targets(*(f"127.0.0.1:{port}/{i}" for i in range(40)))
            scraper = Scraper(
                load_catalogue(), Discovery([listed]), client, Taken(), lambda: NOW_NS,
                Pace(5.0, bounds),
            )  # fmt: skip
            most = 0
            task = asyncio.create_task(scraper.round())
            while not task.done():
                await asyncio.sleep(0.001)
                most = max(most, scraper.room.held_bytes)
            await task
            return most, scraper

    most, scraper = asyncio.run(run())
    assert 1 << 20 < most <= 4 << 20
    assert scraper.room.held_bytes == 0
    assert scraper.tally.reads == {Reason.TOO_LARGE: 40}


class Hanging(Listed):
    """A list that is never given."""

    async def find(self) -> Sequence[Target]:
        await asyncio.Event().wait()
        return ()


@pytest.mark.timeout(60)
def test_a_list_and_a_prometheus_that_hang_hold_up_no_target() -> None:
    async def run() -> list[int]:
        taken, rounds = Taken(), list[int]()
        async with listening(hangs) as hung, listening(says(http(b"tgi_queue_size 1\n"))) as good:
            source = PrometheusSource(f"http://127.0.0.1:{hung}", load_catalogue(), "acme")
            async with new_client(8) as client:
                scraper = Scraper(
                    load_catalogue(),
                    Discovery([Hanging([]), targets(f"127.0.0.1:{good}")], patience_s=0.1),
                    client, taken, lambda: NOW_NS, Pace(0.5, Bounds(timeout_s=3.0)), source,
                )  # fmt: skip
                task = asyncio.create_task(scraper.run())
                for _ in range(3):
                    before = scraper.tally.reads[Reason.UP]
                    await asyncio.sleep(1.5)
                    rounds.append(scraper.tally.reads[Reason.UP] - before)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        assert scraper.tally.reads[Reason.TIMEOUT] == 1, "the Prometheus is asked once at a time"
        return rounds

    assert min(asyncio.run(run())) >= 1
