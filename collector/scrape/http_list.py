"""Targets out of a list that some service gives, in the form of Prometheus' http_sd."""

from collections.abc import Sequence
from typing import Final

import httpx
import msgspec

from tailburn.collector.scrape.errors import DiscoveryError, ScrapeError
from tailburn.collector.scrape.fetch import Bounds, asking_json, fetch
from tailburn.collector.signals.targets import Target, target_of

_BOUNDS: Final = Bounds(timeout_s=10.0, body_bytes=32 << 20)


class _Group(msgspec.Struct):
    targets: list[str]
    labels: dict[str, str] = {}


class HttpFinder:
    """The targets of one list, asked for in each round."""

    def __init__(self, url: str, client: httpx.AsyncClient, tenant: str) -> None:
        """Raises ValueError where `url` is none."""
        self.name = target_of(url, {}, "", tenant).instance
        self._url = url if "://" in url else f"http://{url}"
        self._client = client
        self._tenant = tenant

    async def find(self) -> Sequence[Target]:
        try:
            body = await fetch(self._client, self._url, _BOUNDS, asking_json())
            groups = msgspec.json.decode(body, type=list[_Group])
            return [
                target_of(address, group.labels, f"list of {self.name}", self._tenant)
                for group in groups
                for address in group.targets
            ]
        except ScrapeError as error:
            raise DiscoveryError(str(error)) from None
        except msgspec.MsgspecError as error:
            raise DiscoveryError(f"the answer is no list of targets: {error}") from None
        except ValueError as error:
            raise DiscoveryError(str(error)) from None
