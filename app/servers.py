"""uvicorn as a task of our own loop: our signals, our sockets, no guessing about proxies."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from tailburn.collector.doors.tls import Tls, uvicorn_tls

GRACE_S = 10
_KEEP_ALIVE_S = 75  # exporters send every 5 s or more rarely; a new connection costs them more


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """One ASGI application on one bound socket."""

    def __init__(self, app: ASGIApp, bound: socket.socket, tls: Tls | None) -> None:
        config = uvicorn.Config(
            app,
            http="httptools",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            # The gate judges the real peer and refuses forwarded requests itself.
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
            **uvicorn_tls(tls),
        )
        self._server = _Server(config)
        self._socket = bound
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Listen; returns the port."""
        self._task = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started:
            if self._task.done():
                await self._task
                raise RuntimeError("the HTTP server ended as it started")
            await asyncio.sleep(0.005)
        port: int = self._socket.getsockname()[1]
        return port

    async def stop(self) -> None:
        """Take no more connections, let requests in flight end, at most GRACE_S."""
        if self._task is not None:
            self._server.should_exit = True
            await self._task
