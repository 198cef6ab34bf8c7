"""NCCL's RAS service asked over its own socket, and its answer as lines of metrics.

Protocol: NCCL's src/ras/client.cc, `SET FORMAT json` from 2.28.7 on.
"""

import asyncio
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import msgspec

from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.fetch import Bounds
from tailburn.collector.scrape.room import Place
from tailburn.collector.signals.targets import PORTS

_HELLO: Final = b"CLIENT PROTOCOL 2\n"


class _RankStatus(msgspec.Struct):
    async_error: int = 0
    abort_flag: bool = False


class _Rank(msgspec.Struct):
    status: _RankStatus = msgspec.field(default_factory=_RankStatus)
    collective_counts: dict[str, int] = msgspec.field(default_factory=dict)


class _Communicator(msgspec.Struct):
    hash: str = ""
    missing_ranks_count: int = 0
    ranks: list[_Rank] = msgspec.field(default_factory=list)


class _Answer(msgspec.Struct):
    communicators: list[_Communicator] = msgspec.field(default_factory=list)


async def fetch_ras_into(place: Place, url: str, bounds: Bounds) -> None:
    """What the RAS service of a job says, for `metrics_of`. Raises ScrapeError."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(bounds.timeout_s):
            await _ask(place, parts.hostname or "", parts.port or PORTS["ncclras"], bounds)
    except TimeoutError:
        raise ScrapeError(
            Reason.TIMEOUT, f"no whole answer within {bounds.timeout_s:g} s"
        ) from None
    except OSError as error:
        raise ScrapeError(Reason.CONNECT, f"can't connect: {error}") from None


async def _ask(place: Place, host: str, port: int, bounds: Bounds) -> None:
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 16)
    try:
        await _say(reader, writer, _HELLO, b"SERVER PROTOCOL ")
        await _say(reader, writer, b"SET FORMAT json\n", b"OK")
        writer.write(b"VERBOSE STATUS\n")
        while piece := await reader.read(1 << 16):
            if place.held_bytes + len(piece) > bounds.body_bytes:
                raise ScrapeError(Reason.TOO_LARGE, f"answers over {bounds.body_bytes:,} bytes")
            place.add(piece)
    finally:
        writer.close()


async def _say(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: bytes, wanted: bytes
) -> None:
    writer.write(line)
    try:
        answer = await reader.readline()
    except ValueError:  # a line without end
        answer = b""
    if not answer.startswith(wanted):
        said, asked = answer[:80].decode(errors="replace").strip(), line.decode().strip()
        raise ScrapeError(
            Reason.NOT_METRICS,
            f"is no NCCL RAS service from 2.28.7 on: answers {said!r} to {asked!r}",
        )


def metrics_of(body: bytes) -> bytes:
    """The answer as text of metrics. Raises ScrapeError."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError as error:
        raise ScrapeError(Reason.BROKEN, f"the answer is broken: {error}") from None
    return "".join(f"{line}\n" for line in ("ncclras_answers 1", *_lines(answer))).encode()


def _lines(answer: _Answer) -> Iterator[str]:
    for communicator in answer.communicators:
        comm = "".join(c for c in communicator.hash if c.isalnum())[:64]
        yield f'ncclras_missing_ranks{{comm="{comm}"}} {communicator.missing_ranks_count}'
        failed = sum(bool(r.status.async_error or r.status.abort_flag) for r in communicator.ranks)
        yield f'ncclras_error_ranks{{comm="{comm}"}} {failed}'
        names = {name for rank in communicator.ranks for name in rank.collective_counts}
        for name in sorted(name for name in names if name.isalnum()):
            counts = [rank.collective_counts.get(name, 0) for rank in communicator.ranks]
            lag = max(counts) - min(counts)
            yield f'ncclras_collective_lag{{comm="{comm}",collective="{name}"}} {lag}'
