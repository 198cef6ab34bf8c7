"""What an API server of Kubernetes is asked: pods that want to be read, and events.

Targets are pods by the annotations that they are given for Prometheus:

`prometheus.io/scrape: "true"`, and `prometheus.io/port`, `/path` and `/scheme` where they differ
from the first port of a container, `/metrics` and `http`.
"""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar
from urllib.parse import quote, urlencode

import httpx
import msgspec

from tailburn.collector.scrape.errors import DiscoveryError, Reason, ScrapeError
from tailburn.collector.scrape.fetch import Bounds, asking_json, fetch, new_client
from tailburn.collector.signals.targets import Target, host_port, target_of

T = TypeVar("T")

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PREFIX: Final = "prometheus.io/"
_PAGE: Final = 250
_MOST_PAGES: Final = 200
_BOUNDS: Final = Bounds(timeout_s=10.0, body_bytes=64 << 20)


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _Port(msgspec.Struct):
    containerPort: int = 0  # noqa: N815 (as the API writes it)


class _Container(msgspec.Struct):
    ports: list[_Port] | None = None


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815
    containers: list[_Container] = msgspec.field(default_factory=list)


class _Status(msgspec.Struct):
    podIP: str = ""  # noqa: N815
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _ListMetadata(msgspec.Struct):
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, Generic[T]):
    items: list[T]
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


@dataclass(frozen=True)
class ApiServer:
    """Where the API server is, and as whom it is asked. The token is read anew each time."""

    url: str
    account: Path = ACCOUNT


def api_server(environment: Mapping[str, str], account: Path = ACCOUNT) -> ApiServer:
    """That of the pod this runs in. Raises DiscoveryError outside a cluster."""
    host = environment.get("KUBERNETES_SERVICE_HOST")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (account / "token").is_file():
        raise DiscoveryError(
            f"no pod: want KUBERNETES_SERVICE_HOST and a service account in {account}"
        )
    return ApiServer(f"https://{host_port(host, port)}", account)


def api_client(server: ApiServer) -> httpx.AsyncClient:
    """A client that trusts the cluster's own authority. Raises DiscoveryError for a bad one."""
    authority = server.account / "ca.crt"
    try:
        trust = ssl.create_default_context(cafile=authority if authority.is_file() else None)
    except (OSError, ssl.SSLError) as error:
        raise DiscoveryError(f"{authority}: no certificate of an authority: {error}") from None
    return new_client(1, trust, kept=1)  # page after page on one connection


class KubernetesFinder:
    """The running pods that want to be read, of one namespace or all."""

    name = "Kubernetes"

    def __init__(
        self,
        server: ApiServer,
        client: httpx.AsyncClient,
        tenant: str,
        namespace: str | None = None,
    ) -> None:
        self._server = server
        self._client = client
        self._tenant = tenant
        self._namespace = namespace

    async def find(self) -> Sequence[Target]:
        asking = Asking(self._server, self._client, self._namespace)
        pods = await asking.every("pods", _Pod, fieldSelector="status.phase=Running")
        return [t for pod in pods if (t := pod_target(pod, self._tenant)) is not None]


@dataclass(frozen=True)
class Asking:
    """Lists of one namespace, or of all."""

    server: ApiServer
    client: httpx.AsyncClient
    namespace: str | None = None

    async def every(self, plural: str, form: type[T], **asked: str) -> list[T]:
        """All of a kind of the core API, page by page. Raises DiscoveryError."""
        found: list[T] = []
        following = ""
        for _ in range(_MOST_PAGES):
            more = {"continue": following} if following else {}
            page = await self._page(plural, form, {"limit": str(_PAGE), **asked, **more})
            found += page.items
            following = page.metadata.continue_
            if not following:
                return found
        raise DiscoveryError(f"over {_MOST_PAGES * _PAGE:,} {plural}: want targets_namespace")

    async def _page(self, plural: str, form: type[T], asked: Mapping[str, str]) -> _List[T]:
        where = f"/namespaces/{quote(self.namespace)}" if self.namespace else ""
        url = f"{self.server.url}/api/v1{where}/{plural}?{urlencode(asked)}"
        try:
            headers = asking_json(self.server.account / "token")
            body = await fetch(self.client, url, _BOUNDS, headers)
            return msgspec.json.decode(body, type=_List[form])  # type: ignore[valid-type]
        except ScrapeError as error:
            raise DiscoveryError(f"the API server {error}{_remedy(error, plural)}") from None
        except msgspec.MsgspecError as error:
            raise DiscoveryError(
                f"the API server's answer is no list of {plural}: {error}"
            ) from None
        except (OSError, ValueError) as error:
            raise DiscoveryError(f"no token of the service account: {error}") from None


def _remedy(error: ScrapeError, plural: str) -> str:
    if error.reason is Reason.STATUS and ("401" in str(error) or "403" in str(error)):
        return f": the service account needs a role that may list {plural}; see docs/signals.md"
    return ""


def pod_target(pod: _Pod, tenant: str) -> Target | None:
    """The target a pod is; None where it does not want to be read or has no address yet."""
    annotations = pod.metadata.annotations or {}
    labels = pod.metadata.labels or {}
    if annotations.get(f"{_PREFIX}scrape") != "true" or not pod.status.podIP:
        return None
    ports = [p.containerPort for c in pod.spec.containers for p in c.ports or () if p.containerPort]
    port = annotations.get(f"{_PREFIX}port") or (str(ports[0]) if ports else "80")
    given = {
        "__scheme__": annotations.get(f"{_PREFIX}scheme", "http"),
        "__metrics_path__": annotations.get(f"{_PREFIX}path", "/metrics"),
        "pod": pod.metadata.name,
        "node": pod.spec.nodeName,
        "job": labels.get("app.kubernetes.io/name") or labels.get("app") or pod.metadata.namespace,
        "pool": labels.get("tailburn.io/pool", ""),
        "model": labels.get("tailburn.io/model", ""),
    }
    via = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
    try:
        return target_of(host_port(pod.status.podIP, port), given, via, tenant)
    except ValueError:
        return None  # a pod's owner may write anything there
