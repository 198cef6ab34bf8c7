"""Who is scraped in a fleet: engines, gateways, routers, and what stands on each host."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tailburn.lab.fleet import Fleet, Pool, Role, arrays_of
from tailburn.lab.fleet.arrays import FleetArrays, blocks_that_fit
from tailburn.lab.telemetry.metrics.accelerators import SIZES
from tailburn.lab.telemetry.metrics.gpus import Card, cards_of
from tailburn.lab.telemetry.metrics.machines import IMAGES
from tailburn.lab.telemetry.metrics.page import Variables
from tailburn.lab.telemetry.spans.wiring import Place, Wiring

KINDS = ("engine", "gateway", "router", "dcgm", "nccl", "node")
ENGINE_PAGES: Mapping[str, tuple[str, ...]] = {
    "vllm": ("vllm",),
    "sglang": ("sglang",),
    "trtllm": ("trtllm",),
    "triton": ("triton",),
    "dynamo": ("dynamo_worker", "trtllm"),
    "dynamo-vllm": ("dynamo_worker", "vllm"),
}
GATEWAY_PAGES: Mapping[str, tuple[str, ...]] = {
    "litellm": ("litellm",),
    "envoy-ai-gateway": ("envoy_ai_gateway",),
    "fastapi": ("fastapi_gateway", "fastapi_instrumentator"),
    "dynamo": ("dynamo_frontend",),
}
ROUTER_PAGES: Mapping[str, tuple[str, ...]] = {
    "sglang-router": ("sglang_router",),
    "smg": ("smg",),
    "vllm-router": ("vllm_router",),
    "production-stack": ("production_stack",),
    "dynamo": ("dynamo_frontend",),
}


@dataclass(frozen=True)
class Target:
    """One thing that is scraped: `labels` are those that a Prometheus adds by discovery."""

    name: str
    kind: str
    stack: str
    host: str
    labels: Mapping[str, str]
    path: str
    index: int
    """Its number among its kind: replica, gateway, pool or host."""
    pages: tuple[str, ...]
    variables: Variables = field(default_factory=dict)


def targets(fleet: Fleet, wiring: Wiring) -> tuple[Target, ...]:
    """Everything of a fleet that is scraped, by kind. A place of stack `none` is not."""
    arrays = arrays_of(fleet)
    cards = cards_of(fleet)
    return (
        *_engines(fleet, wiring, arrays),
        *_gateways(fleet, wiring),
        *_routers(fleet, wiring),
        *_hosts(fleet, cards),
    )


def _target(
    kind: str, index: int, place: Place, pages: tuple[str, ...], variables: Variables, **more: str
) -> Target:
    labels = {
        "job": kind,
        "instance": f"{place.address}:{place.port}",
        "pod": place.name,
        "node": place.host,
        "zone": place.zone,
        **more,
    }
    labels = {key: value for key, value in labels.items() if value}
    path = f"/targets/{place.name}/metrics"
    return Target(place.name, kind, place.stack, place.host, labels, path, index, pages, variables)


def _engines(fleet: Fleet, wiring: Wiring, arrays: FleetArrays) -> list[Target]:
    found = []
    for i, place in enumerate(wiring.engines):
        if place.stack not in ENGINE_PAGES:
            continue
        pool = fleet.pool_of(i)
        pages = ENGINE_PAGES[place.stack] + _more_pages(pool, place)
        named = {"model": pool.model, "pool": pool.name}
        found.append(_target("engine", i, place, pages, _of_engine(pool, place), **named))
    return found


def _more_pages(pool: Pool, place: Place) -> tuple[str, ...]:
    """What an engine shows on top by how it is set up, and vLLM's web server of its own."""
    engine = {"dynamo": "trtllm", "dynamo-vllm": "vllm"}.get(place.stack, place.stack)
    more: tuple[str, ...] = ()
    if pool.layout.speculation.tokens:
        drafts = {"vllm": ("vllm_spec_decode",), "trtllm": ("trtllm_spec_decode",)}
        more += drafts.get(engine, ())
    if pool.role == Role.DECODE and engine == "vllm":
        more += ("vllm_nixl",)
    if pool.offload.tier_blocks:
        tiers = {"vllm": ("vllm_offload",), "sglang": ("sglang_hicache",)}
        more += tiers.get(engine, ())
    return more + (("fastapi_instrumentator",) if place.stack == "vllm" else ())


def _of_engine(pool: Pool, place: Place) -> dict[str, str | tuple[str, ...]]:
    blocks, size = blocks_that_fit(pool), pool.scheduler.block_size
    role = {Role.WHOLE: "unified", Role.PREFILL: "prefill", Role.DECODE: "decode"}[pool.role]
    return {
        "model": pool.model,
        "model_lower": pool.model.lower(),
        "block_size": str(size),
        "blocks": str(blocks),
        "kv_tokens": str(blocks * size),
        "concurrency": repr(round(blocks * size / pool.scheduler.max_model_len, 2)),
        "kv_dtype": "auto" if pool.layout.kv == "bf16" else "fp8",
        "prefix_caching": str(pool.scheduler.prefix_cache_share > 0),
        "role": role,
        "component": {"unified": "backend", "decode": "backend", "prefill": "prefill"}[role],
        "worker_id": f"{hash_of(place.name):x}",
        "server": f"http://{place.address}:{place.port}",
        "ranks": str(pool.layout.tensor_ranks),
    }


def hash_of(text: str) -> int:
    """A number of 60 bits for a name, the same in every process."""
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return found >> 4


def _gateways(fleet: Fleet, wiring: Wiring) -> list[Target]:
    found = []
    for i, place in enumerate(wiring.gateways):
        if place.stack in GATEWAY_PAGES:
            variables = _of_front(fleet, wiring, range(len(wiring.engines)))
            found.append(_target("gateway", i, place, GATEWAY_PAGES[place.stack], variables))
    return found


def _routers(fleet: Fleet, wiring: Wiring) -> list[Target]:
    found, first = [], 0
    for i, (pool, place) in enumerate(zip(fleet.pools, wiring.routers, strict=True)):
        replicas = range(first, first + len(pool.replicas))
        first += len(pool.replicas)
        if place.stack in ROUTER_PAGES and pool.role != Role.PREFILL:
            variables = _of_front(fleet, wiring, replicas)
            found.append(
                _target("router", i, place, ROUTER_PAGES[place.stack], variables, pool=pool.name)
            )
    return found


def _of_front(fleet: Fleet, wiring: Wiring, replicas: range) -> dict[str, str | tuple[str, ...]]:
    """What gateways and routers name in labels: models and the workers behind them."""
    engines = [wiring.engines[r] for r in replicas]
    model = fleet.pool_of(replicas[0]).model
    return {
        "model": model,
        "model_lower": model.lower(),
        "worker": tuple(f"http://{e.address}:{e.port}" for e in engines),
        "worker_number": tuple(str(hash_of(e.name)) for e in engines),
        "worker_id": f"{hash_of('front'):x}",
        "router_id": str(hash_of("router " + model)),
        "api_base": f"http://{engines[0].address}:{engines[0].port}/v1",
        "model_id": f"{hash_of(model):064x}",
    }


def _hosts(fleet: Fleet, cards: tuple[tuple[Card, ...], ...]) -> list[Target]:
    found = []
    for i, host in enumerate(fleet.hosts):
        own = cards[i]
        kinds: list[tuple[str, str, tuple[str, ...], int]]
        kinds = [("node", "node_exporter", ("node_exporter",), 9100)]
        if own:
            kinds += [("dcgm", "dcgm-exporter", ("dcgm_exporter", "dcgm_more"), 9400)]
            kinds[0] = ("node", "node_exporter", ("node_exporter", "node_infiniband"), 9100)
        if any(card.ranks > 1 for card in own):
            kinds += [("nccl", "nccl-inspector", ("nccl_inspector",), 9101)]
        if any(replica.host == host.name for replica in fleet.replicas):
            kinds += [("node", "cadvisor", ("cadvisor",), 10250)]
        for kind, stack, pages, port in kinds:
            name = f"{stack}-{host.name}"
            place = Place(name, stack, host=host.name, zone=host.zone, address=host.name, port=port)
            target = _target(kind, i, place, pages, _of_host(fleet, host.name, own, kind))
            labels = {key: v for key, v in target.labels.items() if key != "pod"}
            found.append(replace(target, labels=labels))
    return found


def _of_host(
    fleet: Fleet, host: str, cards: tuple[Card, ...], kind: str
) -> dict[str, str | tuple[str, ...]]:
    names = [replica.name for replica in fleet.replicas]
    if kind == "nccl":
        # One series for each message size of each rank.
        cards = tuple(card for card in cards if card.ranks > 1 for _ in SIZES)
    # Of a pod one series for each release that it may show.
    replicas = [r for r, one in enumerate(fleet.replicas) if one.host == host for _ in IMAGES]
    return {
        "host": host,
        "gpu": tuple(str(card.slot) for card in cards),
        "gpu_name": tuple(f"GPU{card.slot}" for card in cards),
        "uuid": tuple(card.uuid for card in cards),
        "bus": tuple(f"00000000:{0x1B + 0x1C * card.slot:02X}:00.0" for card in cards),
        "device": tuple(f"nvidia{card.slot}" for card in cards),
        "gpu_model": tuple(f"NVIDIA {card.gpu}" for card in cards),
        "pod": tuple(names[card.replica] if card.replica >= 0 else "" for card in cards),
        "comm": tuple(f"TP Group {card.replica}" for card in cards),
        "nodes": tuple(str(card.hosts) for card in cards),
        "ranks": tuple(str(card.ranks) for card in cards),
        "size": SIZES * (len(cards) // len(SIZES)),
        "replica": tuple(names[r] for r in replicas),
        "cgroup": tuple(
            f"/kubepods.slice/kubepods-pod{hash_of(names[r]):x}.slice" for r in replicas
        ),
        "image": IMAGES * (len(replicas) // len(IMAGES)),
        "ib": tuple(f"mlx5_{i}" for i in range(len(cards))),
        "cpu": tuple(str(i) for i in range(8)),
    }
