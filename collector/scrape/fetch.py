"""One answer from one target, within a time and a size."""

import asyncio
import re
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import msgspec

from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.room import Place, Room

ACCEPT: Final = (
    "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"
)
_STEP_BYTES: Final = 1 << 20
_TOKEN: Final = re.compile(rb"[\x21-\x7e]+")
_GZIP: Final = 16 + zlib.MAX_WBITS
_TOLD: Final = 200  # characters of what others say
_COMPLAINT_BYTES: Final = 64 << 10


class _Refusal(msgspec.Struct):
    error: str = ""


@dataclass(frozen=True)
class Bounds:
    """How long an answer may take, and how large it may be, unpacked."""

    timeout_s: float = 10.0
    body_bytes: int = 32 << 20
    setting: str = ""  # by which `body_bytes` can be raised


def new_client(
    connections: int, trust: ssl.SSLContext | None = None, kept: int = 0
) -> httpx.AsyncClient:
    """A client for `fetch`: no proxies out of the environment, no redirects.

    `kept` connections stay open. For many targets none should: for each request the pool looks
    at all pairs of those it has, which costs more than a new one for each.
    """
    return httpx.AsyncClient(
        verify=trust or True,
        timeout=None,  # `fetch` bounds the whole
        limits=httpx.Limits(max_connections=connections, max_keepalive_connections=kept),
        trust_env=False,
        headers={"accept": ACCEPT, "accept-encoding": "gzip", "user-agent": "tailburn"},
    )


def asking_json(token: Path | None = None) -> dict[str, str]:
    """Headers for an answer in JSON, with the bearer token that a file holds.

    Raises OSError where it can't be read, ValueError where it holds no token.
    """
    headers = {"accept": "application/json"}
    if token is not None:
        held = token.read_bytes().strip()
        if not _TOKEN.fullmatch(held):
            raise ValueError(f"{token}: {len(held)} bytes that are no bearer token")
        headers["authorization"] = f"Bearer {held.decode()}"
    return headers


async def fetch(
    client: httpx.AsyncClient,
    url: str,
    bounds: Bounds,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> bytes:
    """The body of a GET; of a POST where there is a form. Raises ScrapeError."""
    with Room(bounds.body_bytes).place() as place:
        await fetch_into(place, client, url, bounds, headers, form)
        return place.whole()


async def fetch_into(
    place: Place,
    client: httpx.AsyncClient,
    url: str,
    bounds: Bounds,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> None:
    """As `fetch`, for an answer that is held beside others. Raises ScrapeError."""
    asked = client.stream("POST" if form else "GET", url, headers=headers, data=form)
    try:
        async with asyncio.timeout(bounds.timeout_s), asked as answer:
            await _read(answer, bounds, place)
    except TimeoutError:
        raise ScrapeError(
            Reason.TIMEOUT, f"no whole answer within {bounds.timeout_s:g} s"
        ) from None
    except (httpx.ConnectError, ssl.SSLError) as error:
        raise ScrapeError(Reason.CONNECT, f"can't connect: {error}") from None
    except (httpx.HTTPError, httpx.InvalidURL, zlib.error, OSError) as error:
        said = str(error) or type(error).__name__
        raise ScrapeError(Reason.BROKEN, f"the answer is broken: {said}") from None


async def _read(answer: httpx.Response, bounds: Bounds, place: Place) -> None:
    if answer.status_code != httpx.codes.OK:
        to = answer.headers.get("location")
        also = f" to {to[:_TOLD]}" if to else await _complaint(answer, place)
        told = f"answers HTTP {answer.status_code}{also}"
        raise ScrapeError(Reason.STATUS, told, answer.status_code)
    await _whole(answer, bounds, place)


async def _complaint(answer: httpx.Response, place: Place) -> str:
    """What an API says in JSON of why it refuses; empty where it says nothing so."""
    if "json" not in answer.headers.get("content-type", ""):
        return ""
    try:
        await _whole(answer, Bounds(body_bytes=_COMPLAINT_BYTES), place)
        said = msgspec.json.decode(place.whole(), type=_Refusal).error
    except (ScrapeError, msgspec.MsgspecError):
        return ""
    return f": {said[:_TOLD]}" if said else ""


async def _whole(answer: httpx.Response, bounds: Bounds, place: Place) -> None:
    declared = answer.headers.get("content-length", "")
    packed = answer.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("identity", "gzip", ""):
        raise ScrapeError(Reason.BROKEN, f"answers packed as {packed!r}, which nobody asked for")
    if declared.isdecimal() and int(declared) > bounds.body_bytes:
        raise _too_large(bounds)
    body = _Body(bounds, packed == "gzip", place)
    async for piece in answer.aiter_raw():
        body.add(piece)
    body.end()


class _Body:
    """An answer as it grows. Unpacked in steps, so that a bomb costs one step over the bound."""

    def __init__(self, bounds: Bounds, is_packed: bool, place: Place) -> None:
        self._bounds = bounds
        self._place = place
        self._gzip = zlib.decompressobj(_GZIP) if is_packed else None

    def add(self, piece: bytes) -> None:
        if self._gzip is None:
            self._append(piece)
            return
        more = False  # of what the bytes so far unpack to
        while piece or more:
            if self._gzip.eof:
                self._gzip = zlib.decompressobj(_GZIP)  # one more member
            step = self._gzip.decompress(piece, _STEP_BYTES)
            self._append(step)
            piece = self._gzip.unused_data if self._gzip.eof else self._gzip.unconsumed_tail
            more = len(step) == _STEP_BYTES and not self._gzip.eof

    def end(self) -> None:
        if self._gzip is not None and not self._gzip.eof and self._place.held_bytes:
            raise ScrapeError(Reason.BROKEN, "the answer is broken: its gzip stream is cut short")

    def _append(self, piece: bytes) -> None:
        if self._place.held_bytes + len(piece) > self._bounds.body_bytes:
            raise _too_large(self._bounds)
        self._place.add(piece)


def _too_large(bounds: Bounds) -> ScrapeError:
    size = f"{bounds.body_bytes / 1e6:,.0f} MB"
    also = f", the setting {bounds.setting}" if bounds.setting else ""
    return ScrapeError(Reason.TOO_LARGE, f"answers more than {size}{also}")
