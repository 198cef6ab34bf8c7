"""Which evidence is right for a cause: what a good answer must have seen.

Each scenario has groups of signals; right evidence holds one signal of each group, seen on
what the fault affects (evidence that names a dimension of the truth must name one of its
values). The first group shows where time goes, the second tells the cause from its nearest
neighbours. `tailburn lab explain` says the same in words.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from tailburn.lab.score.outcome import Evidence

Group = frozenset[str]

HOPS: Final = (
    "client", "client>gateway", "gateway", "guardrail", "gateway>router", "router",
    "router>engine", "gateway>engine", "retrieval", "tokenizer", "engine", "queue", "prefill",
    "decode", "kv_transfer", "kv_load", "model_load", "lora_load", "detokenizer", "retry",
)  # fmt: skip

SIGNALS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{f"hop:{hop}": f"time spent in {hop}" for hop in HOPS},
        "ttft": "time to first token at the outermost vantage",
        "client_ttft": "time to first token at the client",
        "tpot": "time per output token",
        "itl_max": "longest gap within a stream",
        "offered_requests": "requests that arrive",
        "offered_tokens": "prompt and output tokens that arrive",
        "requests_waiting": "requests in engines' queues",
        "requests_running": "requests in engines' batches",
        "max_concurrent": "most that engines run at once",
        "request_share": "share of a replica in what arrives",
        "replicas_ready": "replicas that serve, beside those that should",
        "replica_age": "time since a replica started",
        "attempts": "tries of one request",
        "aborts": "requests given up by their clients",
        "gateway_inflight": "requests under way at the gateway",
        "orphans": "requests in engines that no client waits for",
        "errors": "requests that failed",
        "prompt_tokens": "tokens of a prompt",
        "output_tokens": "tokens of an answer",
        "context_tokens": "tokens of context in a batch, by tenant",
        "tenant_share": "share of a tenant in what is served",
        "batch_share": "share of batch work on interactive replicas",
        "priority": "priorities of waiting requests",
        "step_tokens": "prompt tokens computed in a step",
        "prefill_residual": "prefill time beside what is expected of its tokens",
        "decode_residual": "step time beside what is expected of its batch",
        "tokens_per_step": "output tokens of a request in a step",
        "spec_acceptance": "share of drafted tokens accepted",
        "version": "release of engine or driver that shows",
        "compile": "compilation while serving",
        "grammar_waiting": "requests that wait for a grammar",
        "structured_share": "share of structured answers",
        "host_cpu": "CPU time and throttling of hosts",
        "host_gap": "time between steps",
        "gc": "pauses of a process's garbage collector",
        "sm_active": "share of time GPUs compute",
        "sm_clock": "clock of GPUs",
        "power_violation": "time GPUs are held back by power or heat",
        "dram_active": "share of time GPUs' memory is read",
        "memory_errors": "rows remapped, ECC errors",
        "kv_usage_ratio": "KV blocks in use",
        "preemptions": "requests that lost their blocks",
        "prefix_cache_hit_ratio": "prompt tokens found in the cache",
        "computed_tokens": "prompt tokens computed, beside those that arrive",
        "kv_load_bandwidth": "bytes/s read of offloaded KV",
        "external_hits": "tokens found in the offload tier",
        "kv_transfer_time": "hand-off of KV from prefill to decode",
        "rdma_bytes": "bytes over RDMA",
        "tcp_bytes": "bytes over TCP",
        "collective_time": "time of a collective operation",
        "collective_skew": "collective times of ranks beside each other",
        "nvlink_bytes": "bytes over NVLink",
        "pcie_bytes": "bytes over PCIe",
        "ib_errors": "link downs, discards, retransmissions of InfiniBand ports",
        "ib_wait": "time an InfiniBand port waits to send",
        "lora_slots": "adapters loaded and asked for",
        "streamed_share": "share of answers that stream",
        "flush_gaps": "regular gaps and bursts of a buffered stream",
        "stall_mode": "requests at one exact extra time",
        "pool_waiting": "requests that wait for a client's connection",
        "edge_gap": "client span less server span",
        "zone_pair": "zones that a call crosses",
        "scrape_late": "scrapes that come late or not at all",
        "clock_offset": "clocks of hosts beside each other",
        "span_loss": "spans that are missing",
        "samples": "requests in the window",
    }
)
"""Canonical signals and what they tell; evidence is given by these names."""


def _of(*groups: str) -> tuple[Group, ...]:
    """Groups as texts of names apart by blanks."""
    made = tuple(frozenset(group.split()) for group in groups)
    for group in made:
        for name in group:
            if name not in SIGNALS:
                raise KeyError(name)
    return made


GROUNDS: Final[Mapping[str, tuple[Group, ...]]] = MappingProxyType(
    {
        "S1": _of("hop:queue requests_waiting", "offered_requests offered_tokens"),
        "S2": _of("hop:retry hop:queue attempts requests_waiting", "attempts hop:retry"),
        "S3": _of(
            "hop:queue requests_waiting requests_running orphans", "gateway_inflight orphans",
        ),
        "S4": _of("hop:queue requests_waiting", "request_share"),
        "S5": _of("hop:decode itl_max tpot", "step_tokens prompt_tokens"),
        "S6": _of("hop:decode tpot", "context_tokens tenant_share kv_usage_ratio"),
        "S7": _of("hop:prefill prefill_residual", "sm_clock power_violation"),
        "S8": _of("hop:decode decode_residual tpot", "dram_active memory_errors collective_time"),
        "S9": _of("hop:prefill hop:decode prefill_residual decode_residual", "version"),
        "S10": _of("hop:decode itl_max tpot", "host_cpu host_gap sm_active"),
        "S11": _of("hop:decode itl_max", "gc host_gap collective_skew"),
        "S12": _of("hop:decode tpot", "spec_acceptance tokens_per_step"),
        "S13": _of("hop:decode hop:queue itl_max kv_usage_ratio", "preemptions"),
        "S14": _of("hop:queue requests_waiting", "kv_usage_ratio"),
        "S15": _of("hop:prefill ttft", "prefix_cache_hit_ratio computed_tokens"),
        "S16": _of("hop:kv_load", "kv_load_bandwidth external_hits hop:kv_load"),
        "S17": _of("hop:kv_transfer kv_transfer_time", "kv_transfer_time rdma_bytes tcp_bytes"),
        "S18": _of(
            "hop:decode hop:prefill decode_residual", "collective_time nvlink_bytes pcie_bytes",
        ),
        "S19": _of("hop:decode hop:prefill decode_residual", "ib_errors ib_wait"),
        "S20": _of("hop:decode hop:prefill decode_residual", "collective_skew sm_clock"),
        "S21": _of("hop:tokenizer", "hop:tokenizer host_cpu scrape_late"),
        "S22": _of("hop:decode itl_max", "compile"),
        "S23": _of("hop:gateway client_ttft", "flush_gaps hop:gateway"),
        "S24": _of("hop:gateway", "stall_mode hop:gateway aborts"),
        "S25": _of("hop:model_load hop:queue requests_waiting", "replicas_ready replica_age"),
        "S26": _of("hop:lora_load hop:queue", "lora_slots hop:lora_load"),
        "S27": _of("hop:client client_ttft", "pool_waiting hop:client"),
        "S28": _of("hop:queue hop:decode itl_max ttft", "grammar_waiting structured_share"),
        "S29": _of("hop:client>gateway edge_gap", "hop:client>gateway zone_pair edge_gap"),
        "S30": _of(
            "hop:gateway>engine hop:gateway>router hop:router>engine edge_gap",
            "zone_pair edge_gap hop:router>engine hop:gateway>engine hop:gateway>router",
        ),
        "S31": _of("hop:retrieval", "hop:retrieval"),
        "S32": _of("hop:queue requests_waiting", "batch_share priority tenant_share"),
        "S33": _of("hop:decode tpot", "max_concurrent requests_running"),
        "S34": _of("hop:client client_ttft", "streamed_share"),
        "S35": _of("hop:model_load hop:queue requests_waiting", "replicas_ready replica_age"),
    }
)  # fmt: skip


def grounded(
    scenario: str, evidence: Iterable[Evidence], affected: Mapping[str, Sequence[str]]
) -> bool:
    """Whether evidence is right for a fault: a signal of each group, where the fault is.

    KeyError for a scenario that has no grounds (controls have none).
    """
    seen = {one.signal for one in evidence if _there(one, affected)}
    return all(group & seen for group in GROUNDS[scenario])


def _there(evidence: Evidence, affected: Mapping[str, Sequence[str]]) -> bool:
    return all(value in affected.get(dim, (value,)) for dim, value in evidence.dims.items())
