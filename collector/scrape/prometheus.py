"""The same signals out of a Prometheus, or of what speaks like it, by query.

Instant queries for all names that are known. Series are told apart by `job`
and `instance`, as Prometheus names its targets, and then mapped like any answer.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import msgspec

from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.fetch import Bounds, asking_json, fetch
from tailburn.collector.signals.catalogue import Catalogue
from tailburn.collector.signals.exposition import HIGHEST_VALUE, Dropped, Scanned
from tailburn.collector.signals.targets import Target, target_of

_AT_ONCE: Final = 4
_NAMES: Final = 100  # in one query
_SHARED: Final = ("pool", "node", "zone", "pod", "service")  # labels of targets, not of series
_UP: Final = "up"


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    result: list[_Series] = msgspec.field(default_factory=list)


class _Answer(msgspec.Struct):
    status: str
    data: _Data = msgspec.field(default_factory=_Data)
    error: str = ""


@dataclass(frozen=True)
class Asked:
    """A target of a Prometheus and its samples; None where Prometheus says that it is down."""

    target: Target
    scanned: Scanned | None


class PrometheusSource:
    """Asks for every signal at once. Remembers which targets had some, to see them go down."""

    def __init__(
        self, url: str, catalogue: Catalogue, tenant: str, token: Path | None = None
    ) -> None:
        """`token` is a file, read for each round. Raises ValueError where `url` is none."""
        self.target = target_of(url, {"__metrics_path__": "/"}, "Prometheus", tenant)
        self._url = f"{url.rstrip('/')}/api/v1/query"
        self._queries = list(_queries(catalogue))
        self._tenant = tenant
        self._token = token
        self._known: dict[tuple[str, str], Target] = {}

    async def ask(self, client: httpx.AsyncClient, bounds: Bounds) -> list[Asked]:
        """Raises ScrapeError where it does not answer one of the queries."""
        limit = asyncio.Semaphore(_AT_ONCE)
        try:
            headers = asking_json(self._token)
        except (OSError, ValueError) as error:
            raise ScrapeError(Reason.CONNECT, f"no token: {error}") from None

        async def one(query: str) -> list[_Series]:
            async with limit:
                return await self._ask(client, query, bounds, headers)

        asking = [asyncio.create_task(one(query)) for query in (_UP, *self._queries)]
        try:
            answers = await asyncio.gather(*asking)
        finally:
            for task in asking:  # where one failed, nobody waits for the others
                task.cancel()
        is_up = {_who(series.metric): _value(series) != 0 for series in answers[0]}
        by_target: dict[tuple[str, str], list[_Series]] = {}
        for series in (series for answer in answers[1:] for series in answer):
            by_target.setdefault(_who(series.metric), []).append(series)
        found = [self._asked(who, series) for who, series in by_target.items()]
        for who, target in list(self._known.items()):
            if who in by_target:
                continue
            if is_up.get(who) is False:
                found.append(Asked(target, None))
            elif who not in is_up:
                del self._known[who]  # Prometheus no longer reads it
        return found

    async def _ask(
        self, client: httpx.AsyncClient, query: str, bounds: Bounds, headers: Mapping[str, str]
    ) -> list[_Series]:
        body = await fetch(client, self._url, bounds, headers, {"query": query})
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except msgspec.MsgspecError as error:
            raise ScrapeError(
                Reason.NOT_METRICS, f"is no Prometheus, its answer can't be read: {error}"
            ) from None
        if answer.status != "success":
            raise ScrapeError(Reason.STATUS, f"answers: {answer.error[:200]}")
        return answer.data.result

    def _asked(self, who: tuple[str, str], series: Sequence[_Series]) -> Asked:
        job, instance = who
        labels = {"job": job, "instance": instance, **_shared(series)}
        try:
            target = target_of(instance, labels, "Prometheus", self._tenant)
        except ValueError:
            # An instance may be any text; it only names the target here.
            target = target_of("unnamed:0", labels, "Prometheus", self._tenant)
        self._known[who] = target
        return Asked(target, _scanned(series))


def _who(metric: Mapping[str, str]) -> tuple[str, str]:
    return metric.get("job", ""), metric.get("instance", "")


def _shared(series: Sequence[_Series]) -> dict[str, str]:
    """Labels that all series of a target have alike: those of the target itself."""
    first = series[0].metric
    return {
        name: first[name]
        for name in _SHARED
        if name in first and all(s.metric.get(name) == first[name] for s in series)
    }


def _queries(catalogue: Catalogue) -> Iterator[str]:
    """Selectors of all names that are for something, each short enough for any Prometheus."""
    wanted = sorted(name.decode() for name in catalogue.uses)
    for first in range(0, len(wanted), _NAMES):
        yield '{__name__=~"' + "|".join(wanted[first : first + _NAMES]) + '"}'


def _value(series: _Series) -> float:
    try:
        return float(series.value[1])
    except ValueError:
        return float("nan")


def _scanned(series: Sequence[_Series]) -> Scanned:
    found = Scanned(lines=len(series))
    for one in series:
        value = _value(one)
        if value != value:
            found.drop(Dropped.NAN)
            continue
        if abs(value) > HIGHEST_VALUE:
            found.drop(Dropped.HUGE)
            continue
        name = one.metric.get("__name__", "")
        found.names.append(name.encode())
        found.labels.append(_block(one.metric))
        found.values.append(value)
    return found


def _block(metric: Mapping[str, str]) -> bytes:
    """Labels as they stand between the braces."""
    labels = ((k, v) for k, v in sorted(metric.items()) if k not in ("__name__", "job", "instance"))
    return ",".join(f'{k}="{_escaped(v)}"' for k, v in labels).encode()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
