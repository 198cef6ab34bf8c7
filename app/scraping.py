"""What is read from engines and hosts, put together from settings."""

import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx

from tailburn.app.errors import UserError
from tailburn.app.settings import Settings
from tailburn.collector.scrape.discovery import Discovery, FileFinder, Finder
from tailburn.collector.scrape.dns import DnsFinder
from tailburn.collector.scrape.errors import DiscoveryError
from tailburn.collector.scrape.fetch import Bounds, new_client
from tailburn.collector.scrape.files import read_files
from tailburn.collector.scrape.http_list import HttpFinder
from tailburn.collector.scrape.kubernetes import (
    ACCOUNT,
    KubernetesFinder,
    api_client,
    api_server,
)
from tailburn.collector.scrape.prometheus import PrometheusSource
from tailburn.collector.scrape.scraper import AT_ONCE, Pace, Scraper, TakeRows
from tailburn.collector.signals.catalogue import Catalogue

LIST_PATIENCE_S: Final = 1.0
"""So long a round waits for a list of targets before it goes on with the one before."""


@dataclass
class Places:
    """Where targets come from. `close` lets go of connections."""

    finders: list[Finder] = field(default_factory=list)
    prometheus: PrometheusSource | None = None
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.finders) or self.prometheus is not None

    async def close(self) -> None:
        for client in self.clients:
            await client.aclose()


def places_of(
    settings: Settings,
    catalogue: Catalogue,
    environment: Mapping[str, str] | None = None,
    account: Path = ACCOUNT,
) -> Places:
    """Checked as far as can be without asking anybody. Raises UserError with every fault."""
    places, wrong = Places(), list(_together(settings))
    tenant = settings.scrape_tenant
    if settings.targets_files:
        try:
            read_files(settings.targets_files, tenant)
        except DiscoveryError as error:
            wrong += str(error).splitlines()
        places.finders.append(FileFinder(settings.targets_files, tenant))
    try:
        trust = trust_of(settings)
    except UserError as error:
        wrong += error.lines
        trust = None
    if settings.targets_http:
        client = new_client(AT_ONCE, trust)
        places.clients.append(client)
        for url in settings.targets_http:
            try:
                places.finders.append(HttpFinder(url, client, tenant))
            except ValueError as error:
                wrong.append(f"targets_http: {error}")
    for entry in settings.targets_dns:
        try:
            places.finders.append(DnsFinder(entry, tenant))
        except ValueError as error:
            wrong.append(f"targets_dns: {error}")
    if settings.targets_kubernetes:
        try:
            server = api_server(os.environ if environment is None else environment, account)
            client = api_client(server)
            places.clients.append(client)
            namespace = settings.targets_namespace
            places.finders.append(KubernetesFinder(server, client, tenant, namespace))
        except DiscoveryError as error:
            wrong.append(f"targets_kubernetes: {error}")
    if settings.signals_prometheus:
        try:
            places.prometheus = PrometheusSource(
                settings.signals_prometheus, catalogue, tenant, settings.signals_prometheus_token
            )
        except ValueError as error:
            wrong.append(f"signals_prometheus: {error}")
    if wrong:
        raise UserError(*wrong)
    return places


def trust_of(settings: Settings) -> ssl.SSLContext | None:
    """Whom https targets are trusted by; None: whom everybody trusts. Raises UserError."""
    if settings.scrape_ca is None:
        return None
    try:
        return ssl.create_default_context(cafile=settings.scrape_ca)
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"scrape_ca={str(settings.scrape_ca)!r}: {error}") from None


def _together(settings: Settings) -> list[str]:
    if settings.scrape_timeout_s > settings.scrape_interval_s:
        return [
            f"scrape_timeout_s={settings.scrape_timeout_s:g}: want at most scrape_interval_s, "
            f"which is {settings.scrape_interval_s:g}"
        ]
    return []


def bounds_of_scrape(settings: Settings) -> Bounds:
    return Bounds(settings.scrape_timeout_s, settings.scrape_body_bytes, "scrape_body_bytes")


def scraper_of(
    settings: Settings,
    catalogue: Catalogue,
    places: Places,
    take: TakeRows,
    now_ns: Callable[[], int],
) -> Scraper:
    """A scraper of all these places; `places` closes its client."""
    client = new_client(AT_ONCE, trust_of(settings))
    places.clients.append(client)
    return Scraper(
        catalogue,
        Discovery(places.finders, LIST_PATIENCE_S),
        client,
        take,
        now_ns,
        Pace(settings.scrape_interval_s, bounds_of_scrape(settings)),
        places.prometheus,
    )
