"""One place that metrics are read from, and what is known about it beforehand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode, urlsplit

# Labels of a target that go into its rows. Anything else that a file of targets says is for
# whoever else reads that file.
KEPT: Final = ("model", "pool", "replica", "gpu", "node", "zone", "rank")
PORTS: Final = {"http": 80, "https": 443, "ncclras": 28028}
"""Schemes that are read, and where each is found unless an address says otherwise."""


@dataclass(frozen=True)
class Target:
    """`labels` are those of `KEPT`; `via` says who named it: a file, a DNS name, Kubernetes."""

    url: str
    instance: str
    job: str = ""
    service: str = ""
    tenant: str = "default"
    via: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What tells it from every other target."""
        return f"{self.job} {self.instance} {self.url}"


def host_port(host: str, port: int | str) -> str:
    """As it stands in a URL: an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def target_of(address: str, labels: Mapping[str, str], via: str, tenant: str) -> Target:
    """A target by its `host:port` or URL, with labels as Prometheus' discovery writes them.

    `__scheme__`, `__metrics_path__` and `__param_*` have the meaning they have there. Raises
    ValueError for what is no address.
    """
    scheme = labels.get("__scheme__") or "http"
    path = labels.get("__metrics_path__") or "/metrics"
    url = address if "://" in address else f"{scheme}://{address}"
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise ValueError(f"{address!r}: {error}") from None
    if not host or parts.scheme not in PORTS:
        raise ValueError(f"{address!r}: want host:port, or a URL of http, https or ncclras")
    if parts.scheme != "ncclras":
        path = path if path.startswith("/") else f"/{path}"
        query = parts.query or urlencode(
            [(k.removeprefix("__param_"), v) for k, v in labels.items() if k.startswith("__param_")]
        )
        url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or path}"
        url += f"?{query}" if query else ""
    name = parts.netloc.rpartition("@")[2]
    if port is None:
        name += f":{PORTS[parts.scheme]}"
    instance = labels.get("instance") or name
    kept = {name: labels[name] for name in KEPT if labels.get(name)}
    if "replica" not in kept and labels.get("pod"):
        kept["replica"] = labels["pod"]
    return Target(
        url=url,
        instance=instance,
        job=labels.get("job", ""),
        service=labels.get("service", ""),
        tenant=labels.get("tenant") or tenant,
        via=via,
        labels=kept,
    )
