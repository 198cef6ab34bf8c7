"""Fleets that are there by name: sized for a rate, so that a healthy day stays healthy."""

from dataclasses import replace
from math import ceil
from typing import Final

from tailburn.lab.fleet.parts import (
    ClientGroup,
    Clients,
    Fleet,
    Gateway,
    Host,
    Policy,
    Pool,
    Replica,
    Role,
    Route,
    Router,
    Zone,
)
from tailburn.lab.physics import Layout

MODEL: Final = "llama-3.1-70b"
ROUTES: Final = ("chat", "completions", "rag", "agents", "batch")
PER_REPLICA: Final = 9.0
"""Requests/s that one replica of four H200 serves at the peak of a healthy day."""


def standard(
    per_s: float = 30.0,
    clients: int = 512,
    routes: tuple[str, ...] = ROUTES,
    policy: Policy = Policy.LEAST_REQUESTS,
    layout: Layout | None = None,
    replicas: int | None = None,
) -> Fleet:
    """One model, two zones, a gateway in each, a router, replicas of four H200 each."""
    layout = layout or Layout("Llama-3.1-70B", "H200", 4)
    count = replicas or max(ceil(per_s / PER_REPLICA), 2)
    a_host = max(8 // (layout.tensor_ranks * layout.stages), 1)
    nodes = _nodes(ceil(count / a_host))
    pool = Pool(
        "main",
        MODEL,
        layout,
        tuple(Replica(f"{layout.engine}-{i}", nodes[i // a_host].name) for i in range(count)),
        Router("front-1", policy=policy),
    )
    return _around(f"standard-{count}", per_s, clients, routes, nodes, (pool,))


def split(per_s: float = 30.0, clients: int = 512, routes: tuple[str, ...] = ROUTES) -> Fleet:
    """The same with prefill and decode on replicas of their own."""
    layout = Layout("Llama-3.1-70B", "H200", 4)
    count = max(ceil(per_s / PER_REPLICA), 2)
    nodes = _nodes(count)
    router = Router("front-1", stack="dynamo")
    prefill = tuple(Replica(f"prefill-{i}", nodes[i].name) for i in range(count))
    decode = tuple(Replica(f"decode-{i}", nodes[i].name) for i in range(count))
    pools = (
        Pool("decode", MODEL, layout, decode, router, Role.DECODE, prefill="prefill"),
        Pool("prefill", MODEL, layout, prefill, router, Role.PREFILL),
    )
    return _around(f"split-{count}", per_s, clients, routes, nodes, pools)


def _nodes(count: int) -> tuple[Host, ...]:
    """Hosts of eight GPUs, in turn in both zones, their clocks a little off."""
    return tuple(
        Host(
            f"node-{i}",
            f"zone-{'ab'[i % 2]}",
            gpus=8,
            cores=192,
            clock_offset_ms=1.5 * ((i * 7) % 5 - 2),
            clock_drift_ppm=0.05 * ((i * 3) % 5 - 2),
        )
        for i in range(count)
    )


def _around(
    name: str,
    per_s: float,
    clients: int,
    routes: tuple[str, ...],
    nodes: tuple[Host, ...],
    pools: tuple[Pool, ...],
) -> Fleet:
    zones = (Zone("zone-a"), Zone("zone-b"), Zone("office", "away"))
    front = tuple(Host(f"front-{i}", f"zone-{'ab'[i - 1]}", cores=32) for i in (1, 2))
    one = Gateway("gateway-1", "front-1", workers=max(8, ceil(per_s / 40)))
    apps = ClientGroup("app", "zone-a", 0.6)
    return Fleet(
        name=name,
        zones=zones,
        hosts=(*front, *nodes),
        clients=Clients(
            clients,
            (
                apps,
                replace(apps, name="app-b", zone="zone-b", share=0.3),
                replace(apps, name="laptop", zone="office", share=0.1, patience_s=12.0),
            ),
        ),
        gateways=(one, replace(one, name="gateway-2", host="front-2")),
        pools=pools,
        models=(MODEL,),
        routes=tuple(Route(r, guarded=r in ("chat", "agents")) for r in routes),
    )
