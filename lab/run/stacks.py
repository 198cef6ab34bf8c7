"""Which product stands at each hop, as asked: `engine=sglang`, `gateway=envoy-ai-gateway`.

An engine changes how fast it computes and what it tells; all else changes what is told only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from tailburn.lab.fleet import Fleet, Pool
from tailburn.lab.nearest import did_you_mean
from tailburn.lab.physics.engines import ENGINES
from tailburn.lab.run.errors import RunError
from tailburn.lab.telemetry.spans import Wiring
from tailburn.lab.telemetry.spans.of_fleet import wiring_of
from tailburn.lab.telemetry.spans.wiring import (
    CLIENT_STACKS,
    ENGINE_STACKS,
    GATEWAY_STACKS,
    ROUTER_STACKS,
)

STACKS: Final[Mapping[str, tuple[str, ...]]] = {
    "client": CLIENT_STACKS,
    "gateway": GATEWAY_STACKS,
    "router": ROUTER_STACKS,
    "engine": ENGINE_STACKS,
}
"""What may stand at each hop; `none` tells nothing of itself."""

_COMPUTES_AS: Final = {"triton": "trtllm", "dynamo": "trtllm", "dynamo-vllm": "vllm"}


def read_stacks(texts: Iterable[str]) -> dict[str, str]:
    """`engine=sglang`, one or several by commas; RunError with the nearest names."""
    found = {}
    for text in (part.strip() for whole in texts for part in whole.split(",")):
        hop, equals, stack = (part.strip() for part in text.partition("="))
        if not equals:
            raise RunError(f"stack {text!r}: want HOP=STACK, such as engine=sglang")
        if hop not in STACKS:
            raise RunError(f"stack {text!r}: no hop {hop!r}; {did_you_mean(hop, STACKS)}")
        if stack not in STACKS[hop]:
            raise RunError(f"{hop}: no stack {stack!r}; {did_you_mean(stack, STACKS[hop])}")
        found[hop] = stack
    return found


def with_stacks(fleet: Fleet, stacks: Mapping[str, str]) -> tuple[Fleet, Wiring]:
    """The fleet with these stacks, and its wiring."""
    clients = fleet.clients
    if "client" in stacks:
        groups = tuple(replace(group, stack=stacks["client"]) for group in clients.groups)
        clients = replace(clients, groups=groups)
    gateways = fleet.gateways
    if "gateway" in stacks:
        gateways = tuple(replace(gateway, stack=stacks["gateway"]) for gateway in gateways)
    pools = tuple(_pool(pool, stacks) for pool in fleet.pools)
    fleet = replace(fleet, clients=clients, gateways=gateways, pools=pools)
    wiring = wiring_of(fleet)
    if "engine" in stacks:
        engines = tuple(replace(place, stack=stacks["engine"]) for place in wiring.engines)
        wiring = replace(wiring, engines=engines)
    return fleet, wiring


def _pool(pool: Pool, stacks: Mapping[str, str]) -> Pool:
    if "router" in stacks:
        pool = replace(pool, router=replace(pool.router, stack=stacks["router"]))
    engine = stacks.get("engine", "none")
    engine = _COMPUTES_AS.get(engine, engine)
    if engine in ENGINES and engine != pool.layout.engine:
        pool = replace(pool, layout=replace(pool.layout, engine=engine, scales=None))
    return pool


def stacks_of(wiring: Wiring) -> dict[str, list[str]]:
    """What stands at each hop of a wiring."""
    hops = {
        "client": wiring.clients,
        "gateway": wiring.gateways,
        "router": wiring.routers,
        "engine": wiring.engines,
    }
    return {hop: sorted({place.stack for place in places}) for hop, places in hops.items()}
