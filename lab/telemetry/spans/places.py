"""Processes by number, their resources, and the texts that spans refer to by index."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.telemetry.spans import ids, wire
from tailburn.lab.telemetry.spans.ids import U64
from tailburn.lab.telemetry.spans.wiring import Clock, Place, Wiring

PYTHON_SDK: Final = {
    "telemetry.sdk.language": "python",
    "telemetry.sdk.name": "opentelemetry",
    "telemetry.sdk.version": "1.45.2",
}


@dataclass
class Texts:
    """Texts by index: what `Of.TEXT` slots hold."""

    known: dict[str, int] = field(default_factory=dict)

    def index(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))

    def indices(self, texts: Sequence[str]) -> NDArray[np.int64]:
        return np.asarray([self.index(text) for text in texts], np.int64)

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], int]:
        """Bytes, where each begins (and the last ends), and the longest."""
        return _packed([text.encode() for text in self.known])


@dataclass
class Statuses:
    """Span statuses by index; 0 is unset."""

    known: dict[bytes, int] = field(default_factory=lambda: {wire.status(0): 0})

    def index(self, code: int, message: str = "") -> int:
        return self.known.setdefault(wire.status(code, message), len(self.known))

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], int]:
        return _packed(list(self.known))


def _packed(parts: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64], int]:
    lengths = [len(part) for part in parts]
    at = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.frombuffer(b"".join(parts) or b"\0", np.uint8), at, max(lengths, default=0)


@dataclass
class Places:
    """The processes of a wiring. `clients + i` is the process of client i, and so on."""

    wiring: Wiring
    texts: Texts = field(default_factory=Texts)
    statuses: Statuses = field(default_factory=Statuses)
    booted: set[tuple[int, int]] = field(default_factory=set)
    """Starts of engines that were told: replica and instant."""

    def __post_init__(self) -> None:
        w = self.wiring
        self.clients = 0
        self.gateways = len(w.clients)
        self.routers = self.gateways + len(w.gateways)
        self.engines = self.routers + len(w.routers)
        self.caches = self.engines + len(w.engines)
        self.count = self.caches + len(w.engines)
        self.models = self.texts.indices(w.models)

    @cached_property
    def all(self) -> tuple[Place, ...]:
        """Every process; those of LMCache servers are their engines'."""
        w = self.wiring
        return (*w.clients, *w.gateways, *w.routers, *w.engines, *w.engines)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The host of each process; its own name where none is given."""
        return tuple(place.host or place.name for place in self.all)

    @cached_property
    def host_ids(self) -> U64:
        """A number for the host of each process."""
        return np.asarray([ids.label(host) for host in self.hosts], np.uint64) << np.uint64(15)

    @cached_property
    def clocks(self) -> list[Clock]:
        """The clock of each process."""
        return [self.wiring.clocks.get(host, Clock()) for host in self.hosts]

    def router_of(self, replicas: NDArray[Any]) -> NDArray[np.int64]:
        """The index of the router before each replica."""
        if not self.wiring.router_of:
            return np.zeros(len(replicas), np.int64)
        known: NDArray[np.int64] = np.asarray(self.wiring.router_of, np.int64)
        before: NDArray[np.int64] = known[np.maximum(replicas, 0)]
        return before

    def stack_rows(self, places: Sequence[Place], index: NDArray[Any], stack: str) -> Any:
        """Where `index` points to a place of that stack."""
        if not len(places):
            return np.zeros(len(index), np.bool_)
        of = np.asarray([place.stack == stack for place in places])
        return (index >= 0) & of[np.clip(index, 0, len(places) - 1)]

    def text_of(self, form: str, places: Sequence[Place]) -> NDArray[np.int64]:
        """Indices of texts like `http://{address}:{port}/x`, one for each place."""
        return self.texts.indices(
            [form.format(address=p.address, port=p.port, name=p.name) for p in places] or [""]
        )

    @cached_property
    def services(self) -> list[str]:
        """The `service.name` of each process."""
        return [resource_of(p, i >= self.caches)["service.name"] for i, p in enumerate(self.all)]

    @cached_property
    def resources(self) -> list[bytes]:
        """The field `resource` of each process's bodies."""
        return [
            wire.resource(resource_of(place, i >= self.caches)) for i, place in enumerate(self.all)
        ]


_SERVICES = {
    "openai": "ask-app",
    "app": "chat-client",
    "openinference": "ask-app",
    "fastapi": "gateway",
    "litellm": "litellm-proxy",
    "envoy-ai-gateway": "ai-gateway",
    "production-stack": "vllm-router",
    "smg": "smg",
    "sglang-router": "smg",
    "vllm-router": "vllm-router",
    "vllm": "vllm",
    "sglang": "sglang",
    "trtllm": "trtllm",
    "triton": "triton-inference-server",
}


def resource_of(place: Place, cache: bool = False) -> dict[str, str]:
    """Resource attributes as each SDK and its deployment set them."""
    if cache:
        return {**PYTHON_SDK, "service.name": "lmcache", **place.resource}
    service = place.service or _SERVICES.get(place.stack, place.name)
    if place.stack.startswith("dynamo"):
        return {"service.name": place.service or place.name, **place.resource}
    if place.stack in ("smg", "sglang-router", "vllm-router"):
        version = "0.32.1" if place.stack == "smg" else "0.27.1"
        found = {
            "telemetry.sdk.language": "rust",
            "service.name": service,
            "telemetry.sdk.version": version,
            "telemetry.sdk.name": "opentelemetry",
        }
        if place.stack == "vllm-router":
            found |= {"service.version": "0.1.17", "service.instance.id": place.name}
        return {**found, **place.resource}
    if place.stack == "envoy-ai-gateway":
        return {
            "service.name": service,
            "telemetry.sdk.language": "go",
            "telemetry.sdk.name": "opentelemetry",
            "telemetry.sdk.version": "1.38.0",
            **place.resource,
        }
    if place.stack in ("sglang", "triton"):
        return {"service.name": service, "service.instance.id": place.name, **place.resource}
    found = {**PYTHON_SDK, "service.instance.id": place.name, "service.name": service}
    if place.stack == "vllm":
        found |= {
            "vllm.instrumenting_module_name": "vllm.llm_engine",
            "vllm.process_id": str(1000 + sum(place.name.encode()) % 60_000),
        }
    if place.stack in ("fastapi", "app", "openai", "openinference"):
        found |= {"service.version": "0.1.0", "deployment.environment.name": "lab"}
    if place.stack == "litellm":
        found |= {"deployment.environment": "production", "model_id": service}
    if place.stack == "production-stack":
        found |= {"service.version": "1.0.0"}
    return {**found, **place.resource}
