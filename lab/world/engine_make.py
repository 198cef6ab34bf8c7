"""Engines made from settings: what a replica's engine was started with."""

from dataclasses import dataclass, fields

import numpy as np

from tailburn.lab.physics import StepModel
from tailburn.lab.physics import coef as k
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.engine import engine_up

_MOST_ENTRIES = 8192
_BLOCKS_AN_ENTRY = 8


@dataclass(frozen=True)
class EngineSettings:
    """One replica's engine. Names as vLLM's options where it has them."""

    kv_blocks: int
    kv_bytes_per_token: int
    block_size: int = 16
    max_num_seqs: int = 128
    max_num_batched_tokens: int = 2048
    long_prefill_token_threshold: int = 0
    priority: bool = False
    prefix_cache_blocks: int = -1
    """Most unused blocks kept for reuse; -1: all, 0: no prefix caching."""
    watermark_blocks: int = 0
    reserve_full_prompt: bool = True
    async_scheduling: bool = True
    max_loras: int = 0
    max_cpu_loras: int = 0
    lora_cold_ns: int = 0
    lora_warm_ns: int = 0
    lora_blocking: bool = True
    grammar_ns: int = 0
    grammar_workers: int = 1
    offload_blocks: int = 0
    kv_load_gbps: float = 10.0
    kv_load_latency_ns: int = 1_000_000
    transfer_gbps: float = 40.0
    transfer_latency_ns: int = 2_000_000

    def __post_init__(self) -> None:
        least = dict.fromkeys(("kv_blocks", "block_size", "max_num_seqs", "grammar_workers"), 1)
        least |= {"max_num_batched_tokens": 1, "prefix_cache_blocks": -1}
        for field in fields(self):
            value = getattr(self, field.name)
            if value < least.get(field.name, 0):
                raise ValueError(f"{field.name} must be >= {least.get(field.name, 0)}, got {value}")
        if self.kv_load_gbps == 0 or self.transfer_gbps == 0:
            raise ValueError("kv_load_gbps and transfer_gbps must be > 0, got 0")


def make_engines(
    replicas: list[tuple[EngineSettings, StepModel]],
    slots: int,
    seed: int,
    tokens: int = 0,
) -> c.Engines:
    """Engines of so many replicas, all up and idle, with room for `slots` requests in all.

    `tokens`: room for token instants.
    """
    count = len(replicas)
    if count == 0:
        raise ValueError("a fleet needs at least one replica")
    most = max(settings.kv_blocks for settings, _ in replicas)
    entries = min(_MOST_ENTRIES, most // _BLOCKS_AN_ENTRY + 64)
    buckets = 1 << int(entries - 1).bit_length()
    adapters = max(max(s.max_loras, s.max_cpu_loras) for s, _ in replicas)
    width = max(settings.max_num_seqs for settings, _ in replicas)
    free = np.arange(slots, -1, -1, dtype=np.int64)
    free[0] = slots
    engines = c.Engines(
        seq=np.zeros((slots, c.SEQ), np.int64),
        rep=np.zeros((count, c.REP), np.int64),
        real=np.zeros((count, c.REAL), np.float64),
        run=np.zeros((count, c.RUN, width), np.int64),
        entries=np.zeros((count, entries, c.ENTRY), np.int64),
        buckets=np.zeros((count, buckets), np.int64),
        adapters=np.zeros((count, max(adapters, 1), c.ADAPTER), np.int64),
        events=np.zeros((2 * slots + 2, 3), np.int64),
        free=free,
        tokens=np.full(max(tokens, 1), c.NEVER, np.int64),
    )
    free[1:] = np.arange(slots - 1, -1, -1)
    seeds = np.random.SeedSequence(seed).generate_state(count, np.uint64).view(np.int64)
    for replica, (settings, model) in enumerate(replicas):
        configure(engines, replica, settings, model)
        engines.rep[replica, c.RANDOM] = seeds[replica]
        engine_up(engines, replica, 0)
    return engines


def configure(e: c.Engines, replica: int, settings: EngineSettings, model: StepModel) -> None:
    """Write settings and the step model into a replica's columns; `engine_up` applies blocks."""
    s = settings
    cache = s.kv_blocks if s.prefix_cache_blocks < 0 else s.prefix_cache_blocks
    columns = {
        c.BLOCKS: s.kv_blocks,
        c.KV_BYTES: s.kv_bytes_per_token,
        c.BLOCK_SIZE: s.block_size,
        c.MAX_SEQS: s.max_num_seqs,
        c.TOKEN_BUDGET: s.max_num_batched_tokens,
        c.CHUNK_LIMIT: s.long_prefill_token_threshold,
        c.POLICY: int(s.priority),
        c.CACHE_LIMIT: cache,
        c.WATERMARK: s.watermark_blocks,
        c.RESERVE: int(s.reserve_full_prompt),
        c.ASYNC: int(s.async_scheduling),
        c.LORA_SLOTS: s.max_loras,
        c.LORA_HOST: s.max_cpu_loras,
        c.LORA_COLD_NS: s.lora_cold_ns,
        c.LORA_WARM_NS: s.lora_warm_ns,
        c.LORA_BLOCKING: int(s.lora_blocking),
        c.GRAMMAR_NS: s.grammar_ns,
        c.GRAMMAR_WORKERS: s.grammar_workers,
        c.TIER_BLOCKS: s.offload_blocks,
        c.LOAD_LATENCY_NS: s.kv_load_latency_ns,
        c.TRANSFER_LATENCY_NS: s.transfer_latency_ns,
    }
    for column, value in columns.items():
        e.rep[replica, column] = value
    e.real[replica, c.COEF : c.COEF + k.SIZE] = model.coef
    e.real[replica, c.LOAD_GBPS] = s.kv_load_gbps
    e.real[replica, c.TRANSFER_GBPS] = s.transfer_gbps
