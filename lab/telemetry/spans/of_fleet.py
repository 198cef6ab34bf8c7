"""A fleet's wiring: its processes as places, with the resource attributes of a deployment."""

from dataclasses import replace
from typing import Any

from tailburn.lab.fleet.arrays import arrays_of
from tailburn.lab.fleet.parts import Fleet, Pool
from tailburn.lab.telemetry.spans.wiring import Clock, Place, Wiring

_GATEWAY_PORT, _ROUTER_PORT, _ENGINE_PORT = 4000, 30_000, 8000


def wiring_of(fleet: Fleet, **settings: Any) -> Wiring:
    """What stands where in a fleet; `settings` are further fields of `Wiring`.

    Replicas behind Dynamo are its workers, those of vLLM with their own spans too. A pool
    without a router of its own has its gateways pick the replica, and no span of that.
    """
    zone = {host.name: host.zone for host in fleet.hosts}
    routers = tuple(_router(i, pool, zone) for i, pool in enumerate(fleet.pools))
    owner = [i for i, pool in enumerate(fleet.pools) for _ in pool.replicas]
    return replace(
        Wiring(
            clients=_clients(fleet),
            gateways=tuple(
                _place(g.name, g.stack, g.host, zone, f"10.1.0.{i + 1}", _GATEWAY_PORT)
                for i, g in enumerate(fleet.gateways)
            ),
            routers=routers,
            engines=tuple(
                _place(
                    one.name,
                    _engine(fleet.pools[at]),
                    one.host,
                    zone,
                    f"10.{3 + i // 65_000}.{i // 250 % 250}.{i % 250 + 1}",
                    _ENGINE_PORT,
                    lmcache=fleet.pools[at].offload.tier_blocks > 0,
                )
                for i, (one, at) in enumerate(zip(fleet.replicas, owner, strict=True))
            ),
            models=fleet.models,
            router_of=tuple(owner),
            clocks={
                host.name: Clock(
                    round(host.clock_offset_ms * 1e6), round(host.clock_drift_ppm * 1_000)
                )
                for host in fleet.hosts
            },
        ),
        **settings,
    )


def _clients(fleet: Fleet) -> tuple[Place, ...]:
    groups = fleet.clients.groups
    return tuple(
        Place(
            f"{groups[g].name}-{i}",
            groups[g].stack,
            service=groups[g].name,
            zone=groups[g].zone,
            address=f"10.2.{i // 250 % 250}.{i % 250 + 1}",
            resource={"cloud.availability_zone": groups[g].zone},
        )
        for i, g in enumerate(arrays_of(fleet).client_group.tolist())
    )


def _router(number: int, pool: Pool, zone: dict[str, str]) -> Place:
    host = pool.router.host
    stack = "none" if host is None else pool.router.stack
    name = f"{pool.name}-router"
    return _place(name, stack, host or "", zone, f"10.1.1.{number + 1}", _ROUTER_PORT)


def _engine(pool: Pool) -> str:
    engine = pool.layout.engine
    if pool.router.host is not None and pool.router.stack == "dynamo":
        return "dynamo-vllm" if engine == "vllm" else "dynamo"
    return engine


def _place(
    name: str,
    stack: str,
    host: str,
    zone: dict[str, str],
    address: str,
    port: int,
    lmcache: bool = False,
) -> Place:
    where = zone.get(host, "")
    told = {"k8s.pod.name": name, "k8s.node.name": host, "cloud.availability_zone": where}
    return Place(
        name,
        stack,
        host=host,
        zone=where,
        address=address,
        port=port,
        lmcache=lmcache,
        resource={key: value for key, value in told.items() if value},
    )
