"""What a scenario needs of a fleet beyond the usual: each takes a fleet and gives one."""

from dataclasses import replace
from math import ceil, sqrt
from typing import Any, Final

from tailburn.lab.fleet import Fleet, Pool, Replica, Router, standard
from tailburn.lab.physics import Layout
from tailburn.lab.workload import Profile, named

PEAK: Final = 1.8
"""A busy hour of `azure-conv` over its week's mean, and its noise of some minutes."""
HALF: Final = 5.0
"""Requests/s, over the week, of a replica whose cap binds: half of what it could do."""
SMALL: Final = "llama-3.1-8b"


def running_at(per_s: float) -> float:
    """Sequences that a replica of four H200 runs at a rate, by Little's law.

    Llama-3.1-70B on the answers of `azure-conv` (211 tokens): TPOT is 8.9 ms and 0.29 ms for
    each sequence beside.
    """
    return 0.211 * 8.9 * per_s / max(1.0 - 0.211 * 0.29 * per_s, 0.1)


def in_pools(fleet: Fleet, **parts: Any) -> Fleet:
    """The fleet with fields of parts of all its pools changed, as `scheduler={...}`."""
    pools = tuple(
        replace(p, **{k: replace(getattr(p, k), **fields) for k, fields in parts.items()})
        for p in fleet.pools
    )
    return replace(fleet, pools=pools)


def near_cap(per_s: float) -> Fleet:
    """Replicas that run 48 sequences at most, and 36 or so in a busy hour.

    Under a few requests/s one replica with a cap as low as that needs.
    """
    return capped(standard(per_s, replicas=ceil(per_s / HALF)), per_s)


def capped(fleet: Fleet, per_s: float) -> Fleet:
    """max_num_seqs little above the batch of a busy hour, on the replicas that are there."""
    busy = running_at(PEAK * per_s / len(fleet.pools[0].replicas))
    cap = ceil(1.1 * busy + sqrt(busy))
    return replace(in_pools(fleet, scheduler={"max_num_seqs": cap}), name=f"{fleet.name}-cap-{cap}")


def with_small_model(fleet: Fleet, per_s: float) -> Fleet:
    """A second model on one GPU of each of the hosts: what does not cross GPUs, to compare."""
    if SMALL in fleet.models:
        return fleet
    hosts = tuple(dict.fromkeys(r.host for p in fleet.pools for r in p.replicas))
    first: Pool = fleet.pools[0]
    small = Pool(
        "small",
        SMALL,
        Layout("Llama-3.1-8B", first.layout.gpu, 1),
        tuple(Replica(f"small-{i}", host) for i, host in enumerate(hosts)),
        Router(first.router.host, stack=first.router.stack),
    )
    return replace(
        fleet,
        name=f"{fleet.name}-two-models",
        pools=(*fleet.pools, small),
        models=(*fleet.models, SMALL),
    )


def two_models() -> Profile:
    """The usual traffic, of which one client in five asks for the small model."""
    profile = named("azure-conv")
    clients = profile.clients
    of = clients.model_of.copy()
    of[3:-2:5] = len(clients.models)
    return replace(
        profile,
        name="azure-conv, two models",
        clients=replace(clients, models=(*clients.models, SMALL), model_of=of),
    )
