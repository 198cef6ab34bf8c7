"""The chains of stacks that are judged, and how each is wired over a scene's fleet."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from bench.lab.ear.scenes import Scene
from tailburn.lab.telemetry.spans import Place, Wiring
from tailburn.lab.telemetry.spans.of_fleet import wiring_of

NONE: Final = "none"


@dataclass(frozen=True)
class Chain:
    """Who tells of a request on its way. `settings` are further fields of `Wiring`."""

    client: str
    gateway: str
    router: str
    engine: str
    scene: str
    settings: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def name(self) -> str:
        told = [s for s in (self.client, self.gateway, self.router, self.engine) if s != NONE]
        words = " / ".join(told)
        return f"{words} ({self.note})" if self.note else words

    @property
    def split(self) -> bool:
        return self.scene == "split"

    def wiring(self, scene: Scene) -> Wiring:
        """The fleet's own hosts and addresses, with these stacks on them."""
        wired = wiring_of(scene.fleet)
        return replace(
            wired,
            clients=_all(wired.clients, self.client),
            gateways=_all(wired.gateways, self.gateway),
            routers=_all(wired.routers, self.router),
            engines=_all(wired.engines, self.engine),
            **self.settings,
        )


def _all(places: tuple[Place, ...], stack: str) -> tuple[Place, ...]:
    return tuple(replace(place, stack=stack) for place in places)


_RIGHT: Final = {"trace_flags": 1}

CHAINS: Final[tuple[Chain, ...]] = (
    Chain("app", "fastapi", NONE, "vllm", "direct", {"token_spans": True}),
    Chain("openai", "fastapi", NONE, "vllm", "direct", {"token_spans": True}),
    Chain("openai", "litellm", NONE, "vllm", "direct"),
    Chain("openai", "litellm", NONE, "vllm", "direct", {"litellm_forwards": False}, "cut traces"),
    Chain("openinference", "envoy-ai-gateway", NONE, "sglang", "direct"),
    Chain("app", "envoy-ai-gateway", NONE, "trtllm", "split"),
    Chain("app", "fastapi", NONE, "triton", "direct", {"token_spans": True}),
    Chain("app", "fastapi", "smg", "sglang", "routed", {"token_spans": True}),
    Chain("app", "litellm", "sglang-router", "sglang", "routed"),
    Chain("app", "fastapi", "production-stack", "vllm", "routed", {"token_spans": True}),
    Chain("openai", "litellm", "vllm-router", "vllm", "routed", _RIGHT),
    Chain("app", "fastapi", "vllm-router", "vllm", "routed", {}, "cut traces"),
    Chain("app", "dynamo", NONE, "dynamo", "direct", _RIGHT),
    Chain("app", "dynamo", NONE, "dynamo-vllm", "split", _RIGHT),
    Chain("app", "fastapi", "dynamo", "dynamo-vllm", "split", {"token_spans": True}, "cut traces"),
    Chain("app", "litellm", "smg", "sglang", "split"),
    Chain("app", "fastapi", "smg", "vllm", "split", {"token_spans": True}),
    Chain(NONE, "fastapi", NONE, "vllm", "direct", {"token_spans": True}),
    Chain("app", NONE, NONE, "vllm", "direct"),
)
"""Every stack of every hop at least once."""
