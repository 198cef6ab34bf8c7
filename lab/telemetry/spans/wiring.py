"""Which product stands at each place, where it runs, and how its telemetry is set up.

The indices of `Attempts` (client, gateway, replica, model) are positions in these tuples.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tailburn.lab.nearest import did_you_mean

SECOND_NS = 1_000_000_000

CLIENT_STACKS = ("openai", "app", "openinference", "none")
GATEWAY_STACKS = ("fastapi", "litellm", "envoy-ai-gateway", "dynamo", "none")
ROUTER_STACKS = (
    "production-stack",
    "smg",
    "sglang-router",
    "vllm-router",
    "dynamo",
    "none",
)
ENGINE_STACKS = ("vllm", "sglang", "trtllm", "triton", "dynamo", "dynamo-vllm", "none")


class WiringError(ValueError):
    """A wiring that no fleet can have; the message says where, what, and what is accepted."""


@dataclass(frozen=True)
class Place:
    """A process that may tell of itself: a client, a gateway, a router, an engine replica."""

    name: str
    stack: str
    service: str = ""
    host: str = ""
    zone: str = ""
    address: str = "127.0.0.1"
    port: int = 8000
    lmcache: bool = False
    """An engine replica with an LMCache server beside it."""
    resource: Mapping[str, str] = field(default_factory=dict)
    """Further resource attributes, as deployments add them."""


@dataclass(frozen=True)
class Clock:
    """A host's clock: ahead of true time by the offset at 0, and by the drift from there on."""

    offset_ns: int = 0
    drift_ppb: int = 0


@dataclass(frozen=True)
class Export:
    """How exporters send: the batch processors of the SDKs, as they come."""

    period_ns: int = 5 * SECOND_NS
    most_spans: int = 512
    delay_ns: int = 2_000_000
    """Least time of a body under way."""
    jitter_ns: int = 8_000_000
    """Mean of what comes on top."""


@dataclass(frozen=True)
class Wiring:
    """The stacks of a fleet, in the order of its indices."""

    clients: tuple[Place, ...]
    gateways: tuple[Place, ...]
    routers: tuple[Place, ...]
    engines: tuple[Place, ...]
    models: tuple[str, ...] = ("llama-3.1-70b",)
    router_of: tuple[int, ...] = ()
    """The router of each engine replica; left out: of all, the first."""
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    """By host; the rest are right."""
    export: Export = field(default_factory=Export)
    trace_flags: int = 3
    """What clients send: OpenTelemetry Python sets 03, which Dynamo 1.6.1 and vllm-router
    0.1.17 take for broken: they begin a trace of their own."""
    litellm_forwards: bool = True
    """LiteLLM's `forward_traceparent_to_llm_provider`; its default is false."""
    token_spans: bool = False
    """FastAPI's span a message of a stream; needs token instants."""

    def __post_init__(self) -> None:
        _known("client", self.clients, CLIENT_STACKS)
        _known("gateway", self.gateways, GATEWAY_STACKS)
        _known("router", self.routers, ROUTER_STACKS)
        _known("engine", self.engines, ENGINE_STACKS)
        for replica, router in enumerate(self.router_of):
            if not 0 <= router < len(self.routers):
                raise WiringError(
                    f"router_of[{replica}] is {router}; want 0 to {len(self.routers) - 1}"
                )
        if self.router_of and len(self.router_of) != len(self.engines):
            raise WiringError(
                f"router_of has {len(self.router_of)} entries for {len(self.engines)} engines"
            )


def _known(what: str, places: Iterable[Place], stacks: tuple[str, ...]) -> None:
    for place in places:
        if place.stack not in stacks:
            raise WiringError(
                f"{what} {place.name!r}: no stack {place.stack!r}; "
                f"{did_you_mean(place.stack, stacks)}"
            )
