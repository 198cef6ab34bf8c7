"""What happens in the fleets that are told of: a few minutes of users, some of them unlucky.

Each scene holds what a stack may hide or get wrong: time-outs with retries, hedges, users who
leave, refusals at the gateway, a replica that dies and comes back, whole answers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tailburn.lab.fleet import Fleet, split, standard
from tailburn.lab.records import Attempts, Requests
from tailburn.lab.world.world import World

S: Final = 10**9
CLIENTS: Final = 24
_PER_S: Final = 8.0


@dataclass(frozen=True)
class Scene:
    """A fleet and all that happened in it."""

    fleet: Fleet
    attempts: Attempts


def routed(requests: int, seed: int) -> Scene:
    """Two replicas behind a router of their own; the gateways before it."""
    return _played(standard(_PER_S, CLIENTS, replicas=2), requests, seed)


def direct(requests: int, seed: int) -> Scene:
    """The gateways pick the replica themselves."""
    fleet = standard(_PER_S, CLIENTS, replicas=2)
    pools = tuple(replace(p, router=replace(p.router, host=None)) for p in fleet.pools)
    return _played(replace(fleet, pools=pools), requests, seed)


def halves(requests: int, seed: int) -> Scene:
    """Prefill and decode on replicas of their own."""
    return _played(split(_PER_S, CLIENTS), requests, seed)


SCENES: Final[dict[str, Callable[[int, int], Scene]]] = {
    "routed": routed,
    "direct": direct,
    "split": halves,
}


def _played(fleet: Fleet, requests: int, seed: int) -> Scene:
    groups = tuple(
        replace(
            group, timeout_s=4.0, retry_max=2, retry_backoff_s=0.3, cancel_share=0.05,
            patience_s=2.0, hedge_after_s=0.8 if group.name == "app-b" else 0.0,
        )
        for group in fleet.clients.groups
    )  # fmt: skip
    fleet = replace(fleet, clients=replace(fleet.clients, groups=groups))
    world = World(fleet, seed, tokens=True)
    asked = _asked(requests, seed)
    world.feed(asked)
    third = int(asked.arrival_ns[-1]) // 3
    world.set("replica_down", 1, fleet.replicas[0].name, third, third + 3 * S)
    world.set("gateway_max_inflight", 3, "gateway:gateway-1", 2 * third, 2 * third + 4 * S)
    return Scene(fleet, world.advance(int(asked.arrival_ns[-1]) + 300 * S))


def _asked(count: int, seed: int) -> Requests:
    draw = np.random.default_rng(seed)
    prompt = draw.integers(1, 3_000, count)
    output = draw.integers(1, 200, count)
    columns: dict[str, Any] = {
        "arrival_ns": (np.cumsum(draw.exponential(1 / _PER_S, count)) * S).astype(np.int64),
        "client": draw.integers(0, CLIENTS, count),
        "route": draw.integers(0, 5, count),
        "prompt_tokens": prompt,
        "output_tokens": output,
        "max_tokens": 150,
        "prefix": draw.integers(0, 4, count),
        "prefix_tokens": np.minimum(prompt, 200),
        "streamed": draw.random(count) < 0.85,
        "rag": draw.random(count) < 0.3,
    }
    return Requests.of(columns)
