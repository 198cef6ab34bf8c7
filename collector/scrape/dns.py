"""Targets by DNS: each address of a name is one, as with a headless service."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from tailburn.collector.scrape.errors import DiscoveryError
from tailburn.collector.signals.targets import Target, host_port, target_of

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
_TIMEOUT_S: Final = 5.0


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, in order. Raises OSError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_TIMEOUT_S):
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return sorted({str(info[4][0]) for info in found})


class DnsFinder:
    """The addresses of one name. `service` and `job` of each are the name."""

    def __init__(self, entry: str, tenant: str, resolver: Resolve = resolve) -> None:
        """`entry` is NAME:PORT or a URL. Raises ValueError for anything else."""
        self._model = target_of(entry, {}, "", tenant)
        parts = urlsplit(self._model.url)
        if parts.scheme == "https":
            raise ValueError(f"{entry!r}: want http: a certificate is for a name, not an address")
        if parts.port is None:
            raise ValueError(f"{entry!r}: want a port, such as {parts.hostname}:8000")
        self._host, self._port, self._parts = parts.hostname or "", parts.port, parts
        self._tenant = tenant
        self._resolver = resolver
        self.name = f"DNS {entry}"

    async def find(self) -> Sequence[Target]:
        try:
            addresses = await self._resolver(self._host, self._port)
        except (OSError, TimeoutError) as error:
            said = str(error) or f"no answer within {_TIMEOUT_S:g} s"
            raise DiscoveryError(f"{self._host} has no address: {said}") from None
        return [self._at(address) for address in addresses]

    def _at(self, address: str) -> Target:
        url = self._parts._replace(netloc=host_port(address, self._port)).geturl()
        labels = {"job": self._host}
        return target_of(url, labels, self.name, self._tenant)
