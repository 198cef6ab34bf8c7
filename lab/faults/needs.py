"""What a scenario needs of a fleet beyond the usual: each takes a fleet and gives one."""

from dataclasses import replace
from math import ceil, sqrt
from typing import Any, Final

from tailburn.lab.fleet import Fleet, Policy, Pool, Replica, Router, split, standard
from tailburn.lab.physics import Layout
from tailburn.lab.physics.layout import Speculation

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


def for_mondays(per_s: float) -> Fleet:
    """As many replicas as the busiest minutes of a Monday need, which bring twice its hour's."""
    return standard(per_s, replicas=ceil(1.5 * per_s / HALF))


def with_spare(fleet: Fleet, per_s: float) -> Fleet:
    """As many replicas of the first pool as leave each half idle, at any rate.

    So a slower engine stays a slower engine, and is not at once too small for its traffic.
    """
    count = ceil(per_s / HALF)
    if count <= len(fleet.pools[0].replicas):
        return fleet
    more = standard(per_s, replicas=count)
    first = replace(fleet.pools[0], replicas=more.pools[0].replicas)
    return replace(fleet, name=more.name, hosts=more.hosts, pools=(first, *fleet.pools[1:]))


def with_small_model(fleet: Fleet, per_s: float) -> Fleet:
    """A second model on one GPU of each of the hosts: what does not cross GPUs, to compare."""
    if SMALL in fleet.models:
        return fleet
    first: Pool = fleet.pools[0]
    small = Pool(
        "small",
        SMALL,
        Layout("Llama-3.1-8B", first.layout.gpu, 1),
        tuple(Replica(f"small-{i}", host) for i, host in enumerate(fleet.engine_hosts)),
        Router(first.router.host, stack=first.router.stack),
    )
    return replace(
        fleet,
        name=f"{fleet.name}-two-models",
        pools=(*fleet.pools, small),
        models=(*fleet.models, SMALL),
    )


def with_drafts(fleet: Fleet, per_s: float) -> Fleet:
    """Speculative decoding: three tokens drafted a step, each accepted at 0.7."""
    pools = tuple(
        replace(p, layout=replace(p.layout, speculation=Speculation(tokens=3, acceptance=0.7)))
        for p in fleet.pools
    )
    return replace(fleet, pools=pools, name=f"{fleet.name}-drafts")


def impatient(fleet: Fleet, per_s: float) -> Fleet:
    """Half of the users stop an answer after 1.5 s or so, and less of a batch is needed."""
    groups = tuple(replace(g, cancel_share=0.5, patience_s=1.5) for g in fleet.clients.groups)
    cap = ceil(0.58 * fleet.pools[0].scheduler.max_num_seqs)
    fleet = replace(fleet, clients=replace(fleet.clients, groups=groups))
    return in_pools(fleet, scheduler={"max_num_seqs": cap})


def hurried(fleet: Fleet, per_s: float) -> Fleet:
    """Seven users in ten leave when an answer takes 18 s or so, which healthy ones seldom do."""
    groups = tuple(replace(g, cancel_share=0.7, patience_s=18.0) for g in fleet.clients.groups)
    return replace(fleet, clients=replace(fleet.clients, groups=groups))


def whole_prompts(fleet: Fleet, per_s: float) -> Fleet:
    """A prompt is admitted when all of it fits."""
    return in_pools(fleet, scheduler={"admit_whole_prompts": True})


def with_small_kv(fleet: Fleet, per_s: float) -> Fleet:
    """KV in FP8: twice the tokens in a replica's cache."""
    pools = tuple(replace(p, layout=replace(p.layout, kv="fp8")) for p in fleet.pools)
    return replace(fleet, pools=pools, name=f"{fleet.name}-fp8-kv")


def with_tier(fleet: Fleet, per_s: float) -> Fleet:
    """KV offload to host memory, of 400,000 blocks; GPUs keep 2 % of their blocks for reuse."""
    fleet = in_pools(fleet, offload={"tier_blocks": 400_000})
    return in_pools(fleet, scheduler={"prefix_cache_share": 0.02})


def round_robin(per_s: float) -> Fleet:
    """Four replicas at least, in turn by their weights, each with a cap as it needs."""
    count = max(ceil(per_s / HALF), 4)
    return capped(standard(per_s, replicas=count, policy=Policy.ROUND_ROBIN), per_s)


def roomy(per_s: float) -> Fleet:
    """Twice the replicas that the usual fleet has for its rate."""
    return standard(per_s, replicas=ceil(per_s / (HALF / 2.0)))


def for_answers(per_s: float) -> Fleet:
    """Replicas for `traffics.long_answers`: 2 requests/s each, max_num_seqs above what they run.

    TPOT is 8.9 ms and 0.17 ms for each sequence beside, for there is less prefill in it.
    """
    count = ceil(per_s / 2.0)
    rate = PEAK * per_s / count
    busy = 0.633 * 8.9 * rate / (1.0 - 0.633 * 0.17 * rate)
    cap = ceil(busy + 2.0 * sqrt(busy))
    fleet = in_pools(standard(per_s, replicas=count), scheduler={"max_num_seqs": cap})
    return replace(fleet, name=f"answers-{count}-cap-{cap}")


def for_conversations(per_s: float) -> Fleet:
    """Replicas for `traffics.conversations`: 3 requests/s each, behind a prefix-aware router."""
    return standard(per_s, replicas=ceil(per_s / 3.0), policy=Policy.PREFIX_AFFINITY)


def disaggregated(per_s: float) -> Fleet:
    """Prefill and decode apart, two replicas each for every 10 requests/s."""
    return split(9.0 * max(ceil(per_s / HALF), 2))
