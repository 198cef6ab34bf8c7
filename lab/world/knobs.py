"""Every knob of the world: its name, what it belongs to, its unit, where it starts, its cause.

A knob is a number that the event loop reads where the thing happens, so that a fault is set
at its cause and shows wherever it shows. `World.set(name, value, scope, start_ns, end_ns)`
turns it; `scope` picks the things it belongs to (`scopes`). Where several settings of one
knob overlap on one thing, `rule` says what holds: the product of all, their sum, or the
last one given. A knob without a default here starts as the fleet has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from tailburn.lab.nearest import did_you_mean


class Level(IntEnum):
    """What a knob belongs to: one number for each of these."""

    WORLD = 0
    CLIENT = 1
    GATEWAY = 2
    POOL = 3
    REPLICA = 4
    HOST = 5
    EDGE = 6


class Rule(IntEnum):
    """What holds where settings overlap."""

    LAST = 0
    PRODUCT = 1
    SUM = 2


@dataclass(frozen=True)
class Knob:
    """One knob. `default` None: the fleet's own figure. Values lie in [low, high]."""

    name: str
    level: Level
    unit: str
    default: float | None
    low: float
    high: float
    rule: Rule
    cause: str
    """What it stands for in life."""


class KnobError(ValueError):
    """A knob, scope, value or time that the world does not take; says what it takes."""


_MUCH: Final = 1e12
_W, _C, _G, _P, _R, _H, _E = Level
_LAST, _PRODUCT, _SUM = Rule


def _fleet(name: str, level: Level, unit: str, cause: str, low: float = 0.0) -> Knob:
    """A figure of the fleet's that may be changed."""
    return Knob(name, level, unit, None, low, _MUCH, _LAST, cause)


def _factor(name: str, level: Level, cause: str, low: float = 1e-3) -> Knob:
    return Knob(name, level, "ratio", 1.0, low, 1e6, _PRODUCT, cause)


def _flag(name: str, level: Level, cause: str, default: float | None = 0.0) -> Knob:
    return Knob(name, level, "0/1", default, 0.0, 1.0, _LAST, cause)


def _share(name: str, level: Level, cause: str, default: float | None = 0.0) -> Knob:
    return Knob(name, level, "share", default, 0.0, 1.0, _LAST, cause)


def _extra(name: str, level: Level, cause: str) -> Knob:
    return Knob(name, level, "s", 0.0, 0.0, 3600.0, _SUM, cause)


_WORLD = (
    _fleet("guardrail_servers", _W, "count", "policy checks done at once", 1.0),
    _fleet("guardrail_s", _W, "s", "median time of a policy check"),
    _factor("guardrail_factor", _W, "policy checks slower"),
    _fleet("retrieval_servers", _W, "count", "retrievals done at once", 1.0),
    _fleet("retrieval_s", _W, "s", "median time of a retrieval"),
    _factor("retrieval_factor", _W, "vector store slower at all ranks"),
    _factor("retrieval_tail_factor", _W, "vector store slower for its slowest 5 %"),
    _fleet("storage_gbps", _W, "GB/s", "weights read from storage, shared by those who load", 1e-3),
)
_CLIENT = (
    _fleet("client_timeout_s", _C, "s", "no byte within it: the client gives up (0: never)"),
    _fleet("retry_max", _C, "count", "tries after the first"),
    _fleet("retry_backoff_s", _C, "s", "wait before the first retry; doubles"),
    _fleet("retry_backoff_cap_s", _C, "s", "longest such wait"),
    _flag("retry_jitter", _C, "1: waits are drawn between half and the whole", None),
    _fleet("client_pool_limit", _C, "count", "requests a client process has under way (0: any)"),
    _fleet("hedge_after_s", _C, "s", "no first byte by then: a second try beside it (0: none)"),
    _share("client_cancel_share", _C, "requests whose user leaves after his patience", None),
    _fleet("client_patience_s", _C, "s", "median patience of users who leave"),
    _flag("client_stream_off", _C, "1: it waits for the whole answer"),
    _extra("client_loop_delay_s", _C, "its event loop is late by this, at slot, first and last"),
    _fleet("client_read_tokens_s", _C, "tokens/s", "it reads no faster (0: as fast as it comes)"),
)
_GATEWAY = (
    _fleet("gateway_workers", _G, "count", "requests whose head is worked on at once", 1.0),
    _fleet("gateway_work_s", _G, "s", "CPU time of a request's head"),
    _fleet("gateway_auth_s", _G, "s", "authentication and name lookup, when they are well"),
    _factor("gateway_factor", _G, "its CPU work slower"),
    _share("gateway_stall_share", _G, "requests that meet a stalled name lookup or authentication"),
    _extra("gateway_stall_s", _G, "how long those stall"),
    _fleet("gateway_buffer_bytes", _G, "bytes", "held back before anything is sent on"),
    _fleet("gateway_max_inflight", _G, "count", "above it requests are refused with 429 (0: any)"),
    _share("abort_lost", _G, "client hang-ups that never reach the engine"),
    _flag("gateway_down", _G, "1: takes nothing new, its load balancer knows"),
    _fleet("gateway_retries", _G, "count", "upstream calls tried again, the client unaware"),
    _fleet("gateway_timeout_s", _G, "s", "no token from upstream by then: it fails (0: never)"),
)
_POOL = (
    _fleet("route_policy", _P, "code", "0 round robin, 1 least requests, 2 the same by old metrics,"
           " 3 prefix affinity, 4 random by weight"),
    _fleet("router_refresh_s", _P, "s", "age at which old metrics are taken anew", 1e-3),
    _fleet("router_work_s", _P, "s", "CPU time of a routing decision"),
    _fleet("router_max_inflight", _P, "count", "requests out at once; more wait in it (0: any)"),
    _fleet("affinity_overload", _P, "ratio", "a replica this far above the mean loses affinity"),
    _fleet("health_check_s", _P, "s", "until the router sees a replica come or go"),
    _flag("route_to_loading", _P, "1: requests go to replicas that still load", None),
    _fleet("handoff_s", _P, "s", "router's time between prefill and decode of a split request"),
    _fleet("router_retries", _P, "count", "calls to a replica tried again at another"),
    _fleet("router_timeout_s", _P, "s", "no token from a replica by then: it fails (0: never)"),
)  # fmt: skip
_PHYSICS = (
    _factor("hbm_ratio", _R, "memory bandwidth left: bad memory, a co-tenant"),
    _factor("sm_clock_ratio", _R, "SM clock left: heat, a power cap"),
    _factor("allreduce_factor", _R, "collectives slower: no P2P, a bad link"),
    _factor("kernel_factor", _R, "kernels slower at the same clock: a release, a driver"),
    _factor("host_factor", _R, "CPU time of a step: threads, an interpreter, a driver"),
    Knob("spec_acceptance", _R, "chance", None, 0.0, 1.0, _LAST, "drafted tokens accepted"),
    _flag("allreduce_eager", _R, "1: collectives outside of CUDA graphs"),
    _factor("straggler_ratio", _R, "speed of the slowest rank over its peers'"),
    _factor("alltoall_factor", _R, "expert exchange slower"),
    _factor("expert_skew", _R, "load of the busiest expert rank over the mean"),
    _factor("stage_link_factor", _R, "hand-over between pipeline stages slower"),
    Knob("allreduce_jitter", _R, "sigma", 0.0, 0.0, 3.0, _LAST,
         "collectives differ from step to step (lognormal): a link that flaps"),
)  # fmt: skip
_REPLICA = (
    _fleet("max_num_seqs", _R, "count", "sequences a step carries at most", 1.0),
    _fleet("max_num_batched_tokens", _R, "tokens", "tokens a step carries at most", 16.0),
    _fleet("prefill_chunk_limit", _R, "tokens", "of one prompt in a step (0: none)"),
    _flag("priority_scheduling", _R, "1: lower priority numbers first, 0: first come", None),
    _fleet("kv_blocks", _R, "blocks", "KV blocks on the GPUs", 16.0),
    _fleet("prefix_cache_blocks", _R, "blocks", "unused blocks kept for reuse (0: no cache)"),
    _fleet("kv_watermark_blocks", _R, "blocks", "left free by an admission"),
    _flag("admit_whole_prompts", _R, "1: admit only when a whole prompt fits", None),
    _fleet("tier_blocks", _R, "blocks", "blocks of the offload tier (0: none)"),
    _fleet("kv_load_gbps", _R, "GB/s", "read of the offload tier", 1e-4),
    _fleet("transfer_gbps", _R, "GB/s", "prefill to decode hand-off: RDMA or TCP", 1e-4),
    _fleet("transfer_flow_gbps", _R, "GB/s", "most of one hand-off: a TCP stream (0: the link's)"),
    _fleet("kv_load_latency_s", _R, "s", "least time of a read of the offload tier"),
    _fleet("transfer_latency_s", _R, "s", "least time of a hand-off"),
    _fleet("lora_slots", _R, "count", "adapters on the GPU (max_loras)"),
    _fleet("lora_host_slots", _R, "count", "adapters in host memory (max_cpu_loras)"),
    _fleet("lora_cold_s", _R, "s", "load of an adapter from storage"),
    _fleet("lora_warm_s", _R, "s", "load of an adapter from host memory"),
    _fleet("lora_load_sigma", _R, "sigma", "loads of adapters differ (lognormal)"),
    _flag("lora_blocking", _R, "1: a load holds up the step of all", None),
    _fleet("grammar_s", _R, "s", "compile of a structured request's grammar"),
    _fleet("grammar_workers", _R, "count", "grammars compiled at once", 1.0),
    _fleet("gc_pause_s", _R, "s", "pause of one rank that holds up all (0: none)"),
    _fleet("gc_every_s", _R, "s", "time between such pauses"),
    _fleet("compile_s", _R, "s", "extra of a step whose shape is new (0: none)"),
    _flag("forget_shapes", _R, "1, when it is set: shapes count as new again"),
    _flag("orphans_run_on", _R, "1: whose client is gone is decoded to its max_tokens"),
    _flag("replica_down", _R, "1: dead; 0 after 1: it starts anew and loads", None),
    _flag("replica_draining", _R, "1: the router sends it nothing new"),
    _fleet("route_weight", _R, "ratio", "its weight in the router"),
    _fleet("model_load_s", _R, "s", "start of a process and compile, without reading weights"),
    _share("weights_warm", _R, "of the weights are in the page cache when it starts", None),
    _fleet("tokenizer_threads", _R, "count", "prompts tokenized at once", 1.0),
    _factor("tokenizer_factor", _R, "tokenizing slower"),
    _fleet("detokenizer_s", _R, "s", "from a token made to its byte sent"),
    _fleet("release", _R, "code", "which release of engine and driver it shows; a label alone"),
)  # fmt: skip
_HOST = (
    _factor("cpu_factor", _H, "CPU time of everything on it: quota, throttling, neighbours"),
    Knob("clock_offset_s", _H, "s", 0.0, -3600.0, 3600.0, _SUM,
         "its clock is ahead (below 0: behind); telemetry alone sees it"),
)  # fmt: skip
_EDGE = (
    _extra("edge_delay_s", _E, "one way delay on top of the zones'"),
    _extra("edge_jitter_s", _E, "mean of an exponential delay on top"),
    _share("edge_loss", _E, "messages sent twice: a retransmission's time-out on top", None),
)

TABLE: Final[tuple[Knob, ...]] = (
    *_WORLD, *_CLIENT, *_GATEWAY, *_POOL, *_PHYSICS, *_REPLICA, *_HOST, *_EDGE,
)  # fmt: skip
"""All knobs, level by level, in the order of their columns."""


def _columns() -> dict[str, int]:
    seen = dict.fromkeys(Level, 0)
    found = {}
    for knob in TABLE:
        found[knob.name] = seen[knob.level]
        seen[knob.level] += 1
    return found


KNOBS: Final[Mapping[str, Knob]] = MappingProxyType({k.name: k for k in TABLE})
COLUMN: Final[Mapping[str, int]] = MappingProxyType(_columns())
"""Column of each knob in its level's table of values."""
WIDTH: Final[Mapping[Level, int]] = MappingProxyType(
    {level: sum(k.level == level for k in TABLE) for level in Level}
)


def knob(name: str) -> Knob:
    """The knob of that name; KnobError with the nearest names otherwise."""
    if name in KNOBS:
        return KNOBS[name]
    raise KnobError(f"no knob {name!r}; {did_you_mean(name, sorted(KNOBS), cutoff=0.4)}")


def checked(name: str, value: float) -> float:
    """The value as a float; KnobError when the knob does not take it."""
    one = knob(name)
    if not one.low <= value <= one.high:
        raise KnobError(f"{name} = {value}: want {one.low:g} to {one.high:g} ({one.unit})")
    return float(value)
