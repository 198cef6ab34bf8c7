"""A scraper over a list of targets, its client answered by a function."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import httpx
import pyarrow as pa

from tailburn.collector.errors import Busy
from tailburn.collector.scrape.discovery import Discovery
from tailburn.collector.scrape.prometheus import PrometheusSource
from tailburn.collector.scrape.scraper import Pace, Scraper
from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.signals.targets import Target, target_of
from tests.collector.scrape.answers import PATIENT, client_of

NOW_NS = 1_796_145_000_000_000_000
PACE = Pace(interval_s=90.0, bounds=PATIENT)


@dataclass
class Taken:
    """What was made durable; the log is full while `problem` is set."""

    tables: list[tuple[str, int, pa.Table]] = field(default_factory=list)
    problem: str = ""

    async def __call__(self, rows: pa.Table, tenant: str, received_ns: int) -> None:
        if self.problem:
            raise Busy(self.problem)
        self.tables.append((tenant, received_ns, rows))

    def values(self) -> dict[tuple[str, str], float]:
        """By replica's target and signal."""
        return {
            (row["resource"], row["name"]): row["value"]
            for _, _, table in self.tables
            for row in table.to_pylist()
        }


@dataclass
class Listed:
    """A list of targets that can be changed."""

    targets: Sequence[Target]
    name: str = "a test"

    async def find(self) -> Sequence[Target]:
        return self.targets


def targets(*addresses: str) -> Listed:
    return Listed([target_of(address, {}, "a test", "acme") for address in addresses])


@dataclass
class Bench:
    """A scraper over a list, its client answered by `handler`."""

    listed: Listed
    handler: Callable[[httpx.Request], httpx.Response]
    taken: Taken = field(default_factory=Taken)
    prometheus: PrometheusSource | None = None

    def __post_init__(self) -> None:
        self.scraper = Scraper(
            load_catalogue(),
            Discovery([self.listed]),
            client_of(self.handler),
            self.taken,
            lambda: NOW_NS,
            PACE,
            self.prometheus,
        )

    def round(self) -> None:
        self.taken.tables.clear()
        asyncio.run(self.scraper.round())


def scraper_of(bench: Bench, monotonic_s: Callable[[], float]) -> Scraper:
    """One whose time is told."""
    client = client_of(bench.handler)
    discovery = Discovery([bench.listed])
    return Scraper(
        load_catalogue(), discovery, client, bench.taken, lambda: NOW_NS, PACE,
        monotonic_s=monotonic_s,
    )  # fmt: skip


def text(answer: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(200, text=answer)
