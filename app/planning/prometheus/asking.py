"""A Prometheus asked over a long time, in pieces that it and we can hold."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import httpx

from tailburn.app.errors import UserError
from tailburn.app.scraping import trust_of
from tailburn.app.settings import Settings
from tailburn.collector.scrape.errors import ScrapeError
from tailburn.collector.scrape.fetch import Bounds, new_client
from tailburn.collector.scrape.ranges import PrometheusRanges, Ranged, is_too_much

MINUTE_S: Final = 60
HOUR_S: Final = 3600
PIECE_S: Final = 6 * HOUR_S
"""Asked for at once: 360 points of each series, where 11,000 are the most that may be."""
_LEAST_S: Final = 15 * MINUTE_S
_TIMEOUT_S: Final = 60.0
_AT_ONCE: Final = 4
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Asking:
    """Each question may take a time and a size; too large an answer is asked for in halves."""

    ranges: PrometheusRanges
    bounds: Bounds
    client: Callable[[], httpx.AsyncClient]

    def pieces(
        self, queries: Sequence[str], begin_s: int, end_s: int, step_s: int = MINUTE_S
    ) -> Iterator[list[list[Ranged]]]:
        """The series of each query from `begin_s` to `end_s`, both included, piece by piece.

        In order of time; a series is in every piece in which it has values. Raises UserError.
        """
        at, long_s = begin_s, PIECE_S * (step_s // MINUTE_S)
        while at <= end_s:
            last = min(at + long_s - step_s, end_s)
            try:
                found = asyncio.run(self._all(queries, at, last, step_s))
            except ScrapeError as error:
                if not is_too_much(error) or long_s // 2 < max(_LEAST_S, step_s):
                    raise self._told(error) from None
                long_s = long_s // 2 // step_s * step_s
                continue
            yield found
            at = last + step_s

    def label_values(self, label: str, series: str) -> list[str]:
        """What a label of these series ever was. Raises UserError."""
        try:
            return asyncio.run(
                self._with(
                    lambda client: self.ranges.label_values(client, label, series, self.bounds)
                )
            )
        except ScrapeError as error:
            raise self._told(error) from None

    async def _all(
        self, queries: Sequence[str], begin_s: int, end_s: int, step_s: int
    ) -> list[list[Ranged]]:
        limit = asyncio.Semaphore(_AT_ONCE)

        async def ask(client: httpx.AsyncClient) -> list[list[Ranged]]:
            async def one(query: str) -> list[Ranged]:
                async with limit:
                    return await self.ranges.read(
                        client, query, begin_s, end_s, step_s, self.bounds
                    )

            return list(await asyncio.gather(*map(one, queries)))

        return await self._with(ask)

    async def _with(self, ask: Callable[[httpx.AsyncClient], Awaitable[_Found]]) -> _Found:
        async with self.client() as client:
            return await ask(client)

    def _told(self, error: ScrapeError) -> UserError:
        return UserError(f"--prometheus {self.ranges.name}: {error}")


def asking(url: str, settings: Settings) -> Asking:
    """With the token and the authorities that the settings have. Raises UserError."""
    try:
        ranges = PrometheusRanges(url, settings.signals_prometheus_token)
    except ValueError as error:
        raise UserError(f"--prometheus {error}") from None
    trust = trust_of(settings)
    bounds = Bounds(_TIMEOUT_S, settings.scrape_body_bytes, "scrape_body_bytes")
    return Asking(ranges, bounds, lambda: new_client(_AT_ONCE, trust))
