"""Targets that answer as told, byte by byte, on a port of their own."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx

from tailburn.collector.scrape.fetch import Bounds, fetch, new_client

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

PATIENT = Bounds(timeout_s=30.0, body_bytes=1 << 20)
"""For answers that come: however busy the machine is, they are there."""


def http(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    """An answer as it stands on the wire."""
    lines = [f"HTTP/1.1 {status}", *headers, f"content-length: {len(body)}"]
    if length is not None:
        lines[-1] = f"content-length: {length}"
    return "\r\n".join([*lines, "connection: close", "", ""]).encode() + body


def says(raw: bytes) -> Answer:
    """Reads the request's head and writes `raw`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)

    return answer


async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes the request and never answers."""
    await reader.read()


async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers a byte now and then, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"#")
        await writer.drain()
        await asyncio.sleep(0.01)


async def pours(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers without an end, as fast as it is taken."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"a 1\n" * 16_384)
        await writer.drain()


@asynccontextmanager
async def listening(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server that answers so."""
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await answer(reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


def fetched(answer: Answer, bounds: Bounds = PATIENT) -> bytes:
    """What `fetch` makes of a target that answers so."""

    async def run() -> bytes:
        async with listening(answer) as port, new_client(4) as client:
            return await fetch(client, f"http://127.0.0.1:{port}/metrics", bounds)

    return asyncio.run(run())


def client_of(handler: Callable[[httpx.Request], httpx.Response]) -> httpx.AsyncClient:
    """A client whose every request is answered here, in pieces as from a socket."""

    async def answer(request: httpx.Request) -> httpx.Response:
        whole = handler(request)

        async def pieces() -> AsyncIterator[bytes]:
            for first in range(0, len(whole.content), 4_096):
                yield whole.content[first : first + 4_096]

        return httpx.Response(whole.status_code, headers=whole.headers, content=pieces())

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))
