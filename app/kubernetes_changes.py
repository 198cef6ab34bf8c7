"""Changes that events of Kubernetes tell of, noted beside those of telemetry."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy.exc import DBAPIError

from tailburn.app.errors import UserError
from tailburn.app.settings import Settings
from tailburn.collector.scrape.errors import DiscoveryError
from tailburn.collector.scrape.kubernetes import ACCOUNT, Asking, api_client, api_server
from tailburn.collector.scrape.kubernetes_events import Event, changes_of
from tailburn.engine.store.state.changes import Changes
from tailburn.engine.store.state.database import reason_of

log = logging.getLogger(__name__)

EVERY_S: Final = 20.0


@dataclass
class KubernetesWatch:
    """Looks at the events that there are; an API server keeps them for an hour."""

    asking: Asking
    tenant: str
    changes: Changes
    leads: Callable[[], bool]
    _known: frozenset[str] = field(default_factory=frozenset)
    _said: str = ""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self.step()
            await asyncio.sleep(EVERY_S)

    async def step(self) -> None:
        """Write down what is new. What can't be asked or written is tried again."""
        try:
            listed = await self.asking.every("events", Event)
            found = {change.key: change for change in changes_of(listed, self.tenant)}
            if self.leads():
                if new := [found[key] for key in found.keys() - self._known]:
                    await asyncio.to_thread(self.changes.put, new)
                self._known = frozenset(found)
        except (DiscoveryError, DBAPIError) as error:
            self._say(reason_of(error) if isinstance(error, DBAPIError) else str(error))
        except Exception:
            # Whatever one event holds, the service goes on.
            log.exception("events of Kubernetes can't be noted; it is tried again")
        else:
            self._said = ""

    async def close(self) -> None:
        await self.asking.client.aclose()

    def _say(self, why: str) -> None:
        if why != self._said:
            log.error("events of Kubernetes are not noted: %s; it is tried again", why)
        self._said = why


def watch_of(
    settings: Settings,
    changes: Changes,
    leads: Callable[[], bool],
    environment: Mapping[str, str] | None = None,
    account: Path = ACCOUNT,
) -> KubernetesWatch:
    """Raises UserError outside a cluster."""
    try:
        server = api_server(os.environ if environment is None else environment, account)
        client = api_client(server)
    except DiscoveryError as error:
        raise UserError(f"changes_kubernetes: {error}") from None
    asking = Asking(server, client, settings.targets_namespace)
    return KubernetesWatch(asking, settings.scrape_tenant, changes, leads)
