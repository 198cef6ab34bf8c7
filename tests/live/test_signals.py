"""The same signals read from a target and out of a real Prometheus that reads it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from tailburn.app.scraping import places_of
from tailburn.app.settings import Settings
from tailburn.app.signals_reading import read_places
from tailburn.collector.scrape.discovery import Discovery
from tailburn.collector.scrape.errors import Reason
from tailburn.collector.scrape.fetch import Bounds, new_client
from tailburn.collector.scrape.prometheus import PrometheusSource
from tailburn.collector.scrape.scraper import Pace, Scraper
from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.signals.targets import Target, target_of
from tailburn.lab.telemetry.metrics import LiveTargets
from tests.app.targets import answering, saved
from tests.lab.telemetry.metrics.running import run as run_of_lab
from tests.live.monitoring import prometheus
from tests.live.service import until

Rows = dict[tuple[str, str, str], float]

PACE = Pace(interval_s=15.0, bounds=Bounds(timeout_s=10.0))


class Named:
    """One target, as a file names it."""

    name = "a test"

    def __init__(self, address: str) -> None:
        self._target = target_of(address, {"job": "tailburn"}, "", "x")

    async def find(self) -> list[Target]:
        return [self._target]


def read(named: Named | None, source: PrometheusSource | None) -> tuple[Rows, Scraper]:
    """All rows of one round, by signal, kind and labels."""
    found: Rows = {}

    async def take(rows: pa.Table, tenant: str, received_ns: int) -> None:
        for row in rows.to_pylist():
            key = row["name"], row["kind"], row["labels"]
            assert key not in found
            found[key] = row["value"]

    async def run() -> Scraper:
        finders = [named] if named else []
        async with new_client(8) as client:
            scraper = Scraper(
                load_catalogue(),
                Discovery(finders),
                client,
                take,
                lambda: 0,
                PACE,
                source,
            )
            await scraper.round()
            return scraper

    return found, asyncio.run(run())


def test_a_prometheus_gives_what_its_target_gives(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    program = need_program("prometheus")
    rules = tmp_path / "rules"
    rules.mkdir()
    with answering(saved("vllm-0.32.0")) as address:
        straight, _ = read(Named(address), None)
        with prometheus(program, tmp_path, rules, address) as running:
            until(lambda: running.number("up") == 1.0)
            source = PrometheusSource(running.url, load_catalogue(), "x")
            through, scraper = read(None, source)
    assert {standing.reason for standing in scraper.tally.targets.values()} == {Reason.UP}
    assert len(straight) > 200
    assert through == straight


def test_every_target_of_the_lab_tells_all_that_the_walk_needs() -> None:
    scrapes = run_of_lab().scrapes()[1]
    with LiveTargets() as live:
        live.show(scrapes)
        settings = Settings(targets_http=(f"http://{live.address}/http_sd",))
        catalogue = load_catalogue()
        checked = asyncio.run(read_places(settings, places_of(settings, catalogue), catalogue))
    assert len(checked) == len(scrapes.targets)
    assert [target for target in checked if not target.is_well] == []
    assert {source for target in checked for source in target.sources} >= {
        "vllm", "litellm", "dcgm", "nccl-inspector", "node", "node-infiniband", "cadvisor",
    }  # fmt: skip
