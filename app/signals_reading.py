"""Targets read once, and what each tells set against what it should."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tailburn.app.errors import UserError
from tailburn.app.scraping import Places, bounds_of_scrape, trust_of
from tailburn.app.settings import Settings
from tailburn.collector.scrape.discovery import Discovery
from tailburn.collector.scrape.errors import ScrapeError
from tailburn.collector.scrape.fetch import new_client
from tailburn.collector.scrape.prometheus import Asked, PrometheusSource
from tailburn.collector.scrape.reading import Answer, Shared, read_body, read_target, shared_of
from tailburn.collector.signals.catalogue import Catalogue
from tailburn.collector.signals.mapper import Mapper
from tailburn.collector.signals.survey import Finding, survey
from tailburn.collector.signals.targets import Target

_AT_ONCE = 32


@dataclass(frozen=True)
class Checked:
    """A target: what it tells, or why it could not be read."""

    name: str
    findings: tuple[Finding, ...] = ()
    sources: tuple[str, ...] = ()
    complaint: str = ""  # what was left out of its answer
    failure: str = ""

    @property
    def is_well(self) -> bool:
        return not self.failure and not any(finding.blinds_walk for finding in self.findings)


def read_saved(path: Path, catalogue: Catalogue) -> Checked:
    """A saved answer of /metrics."""
    mapper = Mapper(catalogue, Target(url=str(path), instance=path.name))
    try:
        return _told(str(path), read_body(path.read_bytes(), mapper, catalogue), catalogue)
    except (ScrapeError, OSError) as error:
        return Checked(str(path), failure=str(error))


async def read_targets(
    targets: Sequence[Target], catalogue: Catalogue, settings: Settings
) -> list[Checked]:
    """Each of them, many at a time."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(target: Target) -> Checked:
        async with limit:
            return await _read(target, shared)

    async with new_client(_AT_ONCE, trust_of(settings)) as client:
        shared = shared_of(client, catalogue, bounds_of_scrape(settings))
        return list(await asyncio.gather(*map(one, targets)))


async def read_places(settings: Settings, places: Places, catalogue: Catalogue) -> list[Checked]:
    """All targets of the settings. Raises UserError where a list of them can't be had."""
    try:
        discovery = Discovery(places.finders)
        targets = await discovery.targets()
        if discovery.problems:
            raise UserError(*(f"{name}: {said}" for name, said in discovery.problems.items()))
        checked = await read_targets(targets, catalogue, settings)
        if places.prometheus is not None:
            checked += await _of_prometheus(places.prometheus, catalogue, settings)
        return checked
    finally:
        await places.close()


async def _of_prometheus(
    prometheus: PrometheusSource, catalogue: Catalogue, settings: Settings
) -> list[Checked]:
    async with new_client(_AT_ONCE, trust_of(settings)) as client:
        try:
            asked = await prometheus.ask(client, bounds_of_scrape(settings))
        except ScrapeError as error:
            return [Checked(prometheus.target.instance, failure=str(error))]
    if not asked:
        failure = "a Prometheus that has no metric of a known name"
        return [Checked(prometheus.target.instance, failure=failure)]
    return [_of_asked(one, catalogue) for one in asked]


def _of_asked(asked: Asked, catalogue: Catalogue) -> Checked:
    name = " ".join(part for part in (asked.target.job, asked.target.instance) if part)
    if asked.scanned is None:
        return Checked(name, failure="down, says Prometheus")
    mapped = Mapper(catalogue, asked.target).map(asked.scanned)
    return _told(name, Answer(mapped, asked.scanned, 0), catalogue)


async def _read(target: Target, shared: Shared) -> Checked:
    try:
        answer = await read_target(target.url, Mapper(shared.catalogue, target), shared)
    except ScrapeError as error:
        return Checked(target.instance, failure=str(error))
    return _told(target.instance, answer, shared.catalogue)


def _told(name: str, answer: Answer, catalogue: Catalogue) -> Checked:
    findings = survey(catalogue, answer.mapped)
    sources = tuple(sorted(answer.mapped.sources))
    failure = ""
    if not sources:
        count = answer.scanned.lines
        failure = f"none of its {count:,} samples has a known name: see `tailburn signals list`"
    return Checked(name, findings, sources, answer.complaint, failure)
