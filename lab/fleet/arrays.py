"""A fleet as the event loop reads it: who belongs where, and the knobs as they begin.

Tables of whole numbers hold what never changes (`*_I` columns below); tables of float64 hold
the knobs, a row for each thing of a level and a column for each of its knobs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.fleet.check import check
from tailburn.lab.fleet.parts import ClientGroup, Fleet, Gateway, Pool, Role
from tailburn.lab.physics import MODELS
from tailburn.lab.physics.coef import KNOB_INDEX
from tailburn.lab.physics.gpus import GPUS
from tailburn.lab.physics.layout import known
from tailburn.lab.physics.models import BYTES
from tailburn.lab.world.knobs import COLUMN, TABLE, WIDTH, Level

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

EDGES: Final = (
    "client>gateway",
    "gateway>router",
    "router>engine",
    "gateway>engine",
    "gateway>retrieval",
    "gateway>guardrail",
    "prefill>decode",
)
"""Kinds of edges; an edge's index is (kind * zones + from) * zones + to, so both ways are one
pair: the way back is looked up with the same ends."""

MEMORY_SHARE: Final = 0.9
"""gpu_memory_utilization, as vLLM has it."""
MEMORY_LOST_GIB: Final = 3.0
"""Of a GPU, for activations, graphs and communication buffers."""


@dataclass(frozen=True)
class FleetArrays:
    """A fleet compiled; `knobs` are the values that a run starts with."""

    fleet: Fleet
    knobs: Mapping[Level, F64]
    coef: F64
    """[replica, coefficient] of `lab.physics`."""
    kv_bytes: I64
    """[replica] bytes of a token's KV."""
    weight_bytes: I64
    """[replica] bytes of the model."""
    tokenizer_ns: F64
    """[replica, 2] of a prompt: base, and so much a token."""
    keepalive_ns: I64
    """[client] an idle connection is kept so long."""
    edge_ns: F64
    """[edge] fixed one way delay."""
    edge_jitter_ns: F64
    client_zone: I64
    client_group: I64
    gateway_zone: I64
    gateway_host: I64
    router_zone: I64
    """[pool] -1: the gateway routes."""
    replica_pool: I64
    replica_host: I64
    replica_zone: I64
    pool_first: I64
    """[pool] its first replica."""
    pool_size: I64
    pool_prefill: I64
    """[pool] the pool that prefills for it; -1 none."""
    serves: I64
    """[route, model] pool."""
    guarded: I64
    """[route] 0/1."""


def arrays_of(fleet: Fleet) -> FleetArrays:
    """Compile a fleet; FleetError when it does not hold together."""
    check(fleet)
    zone = {z.name: i for i, z in enumerate(fleet.zones)}
    host = {h.name: i for i, h in enumerate(fleet.hosts)}
    host_zone = np.array([zone[h.zone] for h in fleet.hosts])
    group_of = _spread([g.share for g in fleet.clients.groups], fleet.clients.count)
    pools = [(i, pool) for i, pool in enumerate(fleet.pools) for _ in pool.replicas]
    hosts = np.array([host[r.host] for r in fleet.replicas])
    sizes = np.array([len(p.replicas) for p in fleet.pools])
    fixed, jitter = _edges(fleet)
    routers = [-1 if p.router.host is None else host[p.router.host] for p in fleet.pools]
    names = [p.name for p in fleet.pools]
    gateway_host = np.array([host[g.host] for g in fleet.gateways])
    return FleetArrays(
        fleet=fleet,
        knobs=_knobs(fleet, group_of, [pool for _, pool in pools]),
        coef=np.array([pool.layout.coefficients() for _, pool in pools]),
        kv_bytes=np.array([_kv_bytes(pool) for _, pool in pools]),
        weight_bytes=np.array([_weight_bytes(pool) for _, pool in pools]),
        tokenizer_ns=np.array(
            [(p.tokenizer.base_ms * 1e6, p.tokenizer.us_per_token * 1e3) for _, p in pools]
        ),
        keepalive_ns=(np.array([g.keepalive_s for g in fleet.clients.groups]) * 1e9).astype(
            np.int64
        )[group_of],
        edge_ns=fixed,
        edge_jitter_ns=jitter,
        client_zone=np.array([zone[g.zone] for g in fleet.clients.groups])[group_of],
        client_group=group_of,
        gateway_zone=host_zone[gateway_host],
        gateway_host=gateway_host,
        router_zone=np.array([-1 if h < 0 else host_zone[h] for h in routers]),
        replica_pool=np.array([i for i, _ in pools]),
        replica_host=hosts,
        replica_zone=host_zone[hosts],
        pool_first=np.cumsum(sizes) - sizes,
        pool_size=sizes,
        pool_prefill=np.array(
            [-1 if p.prefill is None else names.index(p.prefill) for p in fleet.pools]
        ),
        serves=_serves(fleet),
        guarded=np.array([r.guarded for r in fleet.routes], np.int64),
    )


def blocks_that_fit(pool: Pool) -> int:
    """KV blocks of a replica: those given, or as many as its GPUs' memory holds."""
    if pool.scheduler.kv_blocks:
        return pool.scheduler.kv_blocks
    ranks = pool.layout.tensor_ranks * pool.layout.stages
    memory = known(GPUS, "GPU", pool.layout.gpu).memory_gib * MEMORY_SHARE - MEMORY_LOST_GIB
    left = ranks * memory * 2**30 - _weight_bytes(pool)
    return max(int(left / (_kv_bytes(pool) * pool.scheduler.block_size)), 64)


def _kv_bytes(pool: Pool) -> int:
    model = known(MODELS, "model", pool.layout.model)
    return int(model.kv_bytes_per_token(pool.layout.kv))


def _weight_bytes(pool: Pool) -> int:
    model = known(MODELS, "model", pool.layout.model)
    return int(model.parameters * BYTES[pool.layout.weights])


def _spread(shares: Sequence[float], count: int) -> I64:
    """Which group each of `count` things is in: all over the range, by shares."""
    edges = np.cumsum(shares) / np.sum(shares)
    places = (np.arange(count) * 0.6180339887498949 + 0.5) % 1.0
    return np.minimum(np.searchsorted(edges, places, side="right"), len(shares) - 1)


def _edges(fleet: Fleet) -> tuple[F64, F64]:
    """Fixed delay and mean jitter, ns, of every kind of edge between every two zones."""
    net, count = fleet.network, len(fleet.zones)
    fixed = np.zeros((len(EDGES), count, count))
    for i, one in enumerate(fleet.zones):
        for j, other in enumerate(fleet.zones):
            far = net.near_ms if one.region == other.region else net.far_ms
            fixed[:, i, j] = net.same_ms if i == j else far
    jitter = fixed * net.jitter
    fixed[0] += net.internet_ms
    jitter[0] += net.internet_ms * net.jitter
    return fixed.reshape(-1) * 1e6, jitter.reshape(-1) * 1e6


def _serves(fleet: Fleet) -> I64:
    names = [p.name for p in fleet.pools]
    table = np.zeros((len(fleet.routes), len(fleet.models)), np.int64)
    for m, model in enumerate(fleet.models):
        first = next(
            i for i, p in enumerate(fleet.pools) if p.model == model and p.role != Role.PREFILL
        )
        for r, route in enumerate(fleet.routes):
            named = None if route.pool is None else names.index(route.pool)
            fits = named is not None and fleet.pools[named].model == model
            table[r, m] = named if fits and named is not None else first
    return table


def _knobs(fleet: Fleet, group_of: I64, pools: Sequence[Pool]) -> dict[Level, F64]:
    groups = [_client(g) for g in fleet.clients.groups]
    rows = {
        Level.WORLD: [_world(fleet)],
        Level.CLIENT: [groups[g] for g in group_of],
        Level.GATEWAY: [_gateway(g) for g in fleet.gateways],
        Level.POOL: [_pool(p) for p in fleet.pools],
        Level.REPLICA: [
            _replica(pool) | {"replica_down": float(not r.up), "route_weight": r.weight}
            for pool, r in zip(pools, fleet.replicas, strict=True)
        ],
        Level.HOST: [{} for _ in fleet.hosts],
        Level.EDGE: [{"edge_loss": fleet.network.loss}] * (len(EDGES) * len(fleet.zones) ** 2),
    }
    made = {level: np.zeros((len(rows[level]), WIDTH[level])) for level in Level}
    for knob in TABLE:
        column = made[knob.level][:, COLUMN[knob.name]]
        for i, row in enumerate(rows[knob.level]):
            column[i] = row[knob.name] if knob.default is None else knob.default
    return made


def _world(fleet: Fleet) -> dict[str, float]:
    return {
        "guardrail_servers": fleet.guardrail.servers,
        "guardrail_s": fleet.guardrail.median_ms / 1e3,
        "retrieval_servers": fleet.retrieval.servers,
        "retrieval_s": fleet.retrieval.median_ms / 1e3,
        "storage_gbps": fleet.storage_gbps,
    }


def _client(group: ClientGroup) -> dict[str, float]:
    return {
        "client_timeout_s": group.timeout_s,
        "retry_max": group.retry_max,
        "retry_backoff_s": group.retry_backoff_s,
        "retry_backoff_cap_s": group.retry_backoff_cap_s,
        "retry_jitter": group.retry_jitter,
        "client_pool_limit": group.pool_limit,
        "hedge_after_s": group.hedge_after_s,
        "client_cancel_share": group.cancel_share,
        "client_patience_s": group.patience_s,
        "client_read_tokens_s": 0.0,
    }


def _gateway(gateway: Gateway) -> dict[str, float]:
    return {
        "gateway_workers": gateway.workers,
        "gateway_work_s": gateway.work_ms / 1e3,
        "gateway_auth_s": gateway.auth_ms / 1e3,
        "gateway_buffer_bytes": gateway.buffer_bytes,
        "gateway_max_inflight": gateway.max_inflight,
        "gateway_retries": gateway.retries,
        "gateway_timeout_s": gateway.timeout_s,
    }


def _pool(pool: Pool) -> dict[str, float]:
    router = pool.router
    return {
        "route_policy": router.policy,
        "router_refresh_s": router.refresh_ms / 1e3,
        "router_work_s": router.work_ms / 1e3,
        "router_max_inflight": router.max_inflight,
        "affinity_overload": router.affinity_overload,
        "health_check_s": router.health_check_s,
        "route_to_loading": router.route_to_loading,
        "handoff_s": router.handoff_ms / 1e3,
        "router_retries": router.retries,
        "router_timeout_s": router.timeout_s,
    }


def _replica(pool: Pool) -> dict[str, float]:
    s, a, o, t = pool.scheduler, pool.adapters, pool.offload, pool.tokenizer
    blocks, coef = blocks_that_fit(pool), pool.layout.coefficients()
    return {name: coef[at] for name, at in KNOB_INDEX.items()} | {
        "max_num_seqs": s.max_num_seqs,
        "max_num_batched_tokens": s.max_num_batched_tokens,
        "prefill_chunk_limit": s.prefill_chunk_limit,
        "priority_scheduling": s.priority,
        "kv_blocks": blocks,
        "prefix_cache_blocks": int(blocks * s.prefix_cache_share),
        "kv_watermark_blocks": int(blocks * s.watermark),
        "admit_whole_prompts": s.admit_whole_prompts,
        "tier_blocks": o.tier_blocks,
        "kv_load_gbps": o.load_gbps,
        "kv_load_latency_s": o.load_latency_ms / 1e3,
        "transfer_gbps": pool.transfer_gbps,
        "transfer_flow_gbps": pool.transfer_flow_gbps,
        "transfer_latency_s": pool.transfer_latency_ms / 1e3,
        "lora_slots": a.slots,
        "lora_host_slots": a.host_slots,
        "lora_cold_s": a.cold_s,
        "lora_warm_s": a.warm_ms / 1e3,
        "lora_load_sigma": a.sigma,
        "lora_blocking": a.blocking,
        "grammar_s": s.grammar_ms / 1e3,
        "grammar_workers": s.grammar_workers,
        "gc_pause_s": s.gc_pause_ms / 1e3,
        "gc_every_s": s.gc_every_s,
        "compile_s": s.compile_ms / 1e3,
        "model_load_s": pool.model_load_s,
        "weights_warm": pool.weights_warm,
        "tokenizer_threads": t.threads,
        "detokenizer_s": t.detokenizer_ms / 1e3,
        "release": 0.0,
    }
