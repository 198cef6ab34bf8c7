"""Series of a Prometheus over a time that is past, or of what speaks like it.

A question is asked by `query_range`, which answers with 11,000 points of a series at most.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import httpx
import msgspec
import numpy as np
from numpy.typing import NDArray

from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.fetch import Bounds, asking_json, fetch
from tailburn.collector.signals.targets import target_of

MOST_POINTS: Final = 11_000
_TOO_MUCH_STATUS: Final = (422, 503)  # too many samples for one query; it took too long there


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = msgspec.field(default_factory=list)


class _Data(msgspec.Struct):
    resultType: str
    result: list[_Series]


class _Ranges(msgspec.Struct):
    status: str
    data: _Data


class _Values(msgspec.Struct):
    status: str
    data: list[str]


_Answer = TypeVar("_Answer", _Ranges, _Values)


@dataclass(frozen=True)
class Ranged:
    """A series: its labels, and its values at some of the times that were asked for."""

    labels: Mapping[str, str]
    at_s: NDArray[np.int64]
    values: NDArray[np.float64]


class PrometheusRanges:
    """Asks one Prometheus. `name` is how it may be told: without name and password."""

    def __init__(self, url: str, token: Path | None = None) -> None:
        """`token` is a file, read for each question. Raises ValueError where `url` is none."""
        self.name = target_of(url, {"__metrics_path__": "/"}, "Prometheus", "").instance
        base = url if "://" in url else f"http://{url}"
        self._url = f"{base.rstrip('/')}/api/v1"
        self._token = token

    async def read(
        self,
        client: httpx.AsyncClient,
        query: str,
        begin_s: int,
        end_s: int,
        step_s: int,
        bounds: Bounds,
    ) -> list[Ranged]:
        """Values at `begin_s` and each step after it, up to `end_s`. Raises ScrapeError."""
        points = (end_s - begin_s) // step_s + 1
        if not 0 < points <= MOST_POINTS:
            raise ValueError(f"want 1 to {MOST_POINTS:,} points, got {points:,}")
        form = {"query": query, "start": f"{begin_s}", "end": f"{end_s}", "step": f"{step_s}"}
        body = await fetch(client, f"{self._url}/query_range", bounds, self._headers(), form)
        answer = _decoded(body, _Ranges)
        if answer.data.resultType != "matrix":
            raise _no_prometheus(f"it answers with a {answer.data.resultType!r}, not a matrix")
        return [_ranged(series) for series in answer.data.result]

    async def label_values(
        self, client: httpx.AsyncClient, label: str, series: str, bounds: Bounds
    ) -> list[str]:
        """What a label of these series ever was, as far back as they are kept."""
        url = f"{self._url}/label/{label}/values?{httpx.QueryParams({'match[]': series})}"
        return _decoded(await fetch(client, url, bounds, self._headers()), _Values).data

    def _headers(self) -> dict[str, str]:
        try:
            return asking_json(self._token)
        except (OSError, ValueError) as error:
            raise ScrapeError(Reason.CONNECT, f"no token: {error}") from None


def is_too_much(error: ScrapeError) -> bool:
    """Whether less may be had where this much can't."""
    return error.reason in (Reason.TOO_LARGE, Reason.TIMEOUT) or error.status in _TOO_MUCH_STATUS


def _decoded(body: bytes, kind: type[_Answer]) -> _Answer:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise _no_prometheus(f"its answer can't be read: {error}") from None


def _no_prometheus(why: str) -> ScrapeError:
    return ScrapeError(Reason.NOT_METRICS, f"is no Prometheus, {why}")


def _ranged(series: _Series) -> Ranged:
    at, values = zip(*series.values, strict=True) if series.values else ((), ())
    try:
        return Ranged(series.metric, np.rint(at).astype(np.int64), np.array(values, np.float64))
    except ValueError as error:
        raise _no_prometheus(f"a value of it is no number: {error}") from None
