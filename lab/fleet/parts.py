"""What a fleet is made of: frozen values, each with figures that a healthy one has.

Times are in the unit of the name. Where a thing lies is said by the name of a host or zone.
`stack` says which product a hop is, for telemetry alone.
"""

from dataclasses import dataclass, field
from enum import IntEnum

from tailburn.lab.physics import Layout


class Policy(IntEnum):
    """How a router picks a replica; the code in the knob `route_policy`."""

    ROUND_ROBIN = 0
    LEAST_REQUESTS = 1
    LEAST_BY_METRICS = 2
    """By what engines told at the last refresh, as old as that is."""
    PREFIX_AFFINITY = 3
    WEIGHTED_RANDOM = 4


class Role(IntEnum):
    """What a pool's replicas do."""

    WHOLE = 0
    PREFILL = 1
    DECODE = 2


@dataclass(frozen=True)
class Zone:
    """A place. Between two of one region it is `near_ms` one way, else `far_ms`."""

    name: str
    region: str = "here"


@dataclass(frozen=True)
class Network:
    """One way delays, in ms: a fixed part and the mean of an exponential one."""

    same_ms: float = 0.15
    near_ms: float = 0.6
    far_ms: float = 12.0
    jitter: float = 0.15
    """Mean of the exponential part, as a share of the fixed one."""
    internet_ms: float = 8.0
    """On top, from client to gateway."""
    loss: float = 1e-4
    tls_ms: float = 0.8


@dataclass(frozen=True)
class Host:
    """A machine. Its clock is ahead by the offset, and gains the drift."""

    name: str
    zone: str
    gpus: int = 0
    cores: int = 64
    clock_offset_ms: float = 0.0
    clock_drift_ppm: float = 0.0


@dataclass(frozen=True)
class ClientGroup:
    """Client processes of one make. `share` is of all clients, by number."""

    name: str
    zone: str
    share: float = 1.0
    stack: str = "openai"
    timeout_s: float = 600.0
    retry_max: int = 2
    retry_backoff_s: float = 0.5
    retry_backoff_cap_s: float = 8.0
    retry_jitter: bool = True
    pool_limit: int = 1000
    hedge_after_s: float = 0.0
    cancel_share: float = 0.01
    patience_s: float = 20.0
    keepalive_s: float = 5.0


@dataclass(frozen=True)
class Clients:
    """All client processes: `count` of them, spread over the groups."""

    count: int
    groups: tuple[ClientGroup, ...]


@dataclass(frozen=True)
class Gateway:
    """One gateway process: a request's head is worked on, then it waits without a worker."""

    name: str
    host: str
    stack: str = "litellm"
    workers: int = 8
    work_ms: float = 1.5
    auth_ms: float = 0.8
    buffer_bytes: int = 0
    max_inflight: int = 0
    retries: int = 0
    """Upstream calls tried again that the client does not see (LiteLLM's num_retries)."""
    timeout_s: float = 0.0
    """No token from upstream by then: that call has failed; 0 never."""


@dataclass(frozen=True)
class Service:
    """Something a gateway calls: a queue before `servers`, lognormal times."""

    servers: int
    median_ms: float
    sigma: float
    zone: str = ""


@dataclass(frozen=True)
class Router:
    """What stands before a pool. `host` None: the gateway itself picks the replica."""

    host: str | None
    stack: str = "sglang-router"
    policy: Policy = Policy.LEAST_REQUESTS
    refresh_ms: float = 1_000.0
    work_ms: float = 0.3
    max_inflight: int = 0
    affinity_overload: float = 1.5
    health_check_s: float = 5.0
    route_to_loading: bool = False
    handoff_ms: float = 1.0
    retries: int = 0
    """Calls to a replica tried again at another."""
    timeout_s: float = 0.0
    """No token from a replica by then: that call has failed; 0 never."""


@dataclass(frozen=True)
class Tokenizer:
    """A replica's front end: `threads` at once, a base and so much a token."""

    threads: int = 2
    base_ms: float = 0.4
    us_per_token: float = 2.0
    detokenizer_ms: float = 0.3


@dataclass(frozen=True)
class Scheduler:
    """The engine's limits, by vLLM's names; `kv_blocks` 0: as many as memory holds."""

    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8_192
    prefill_chunk_limit: int = 0
    priority: bool = False
    max_model_len: int = 131_072
    block_size: int = 16
    kv_blocks: int = 0
    prefix_cache_share: float = 1.0
    """Of the blocks, those that may hold what is not in use."""
    watermark: float = 0.0
    admit_whole_prompts: bool = False
    compile_ms: float = 0.0
    gc_pause_ms: float = 0.0
    gc_every_s: float = 60.0
    grammar_ms: float = 20.0
    grammar_workers: int = 8


@dataclass(frozen=True)
class Offload:
    """Where KV goes that the GPUs cannot hold: host memory or storage."""

    tier_blocks: int = 0
    load_gbps: float = 20.0
    load_latency_ms: float = 1.0


@dataclass(frozen=True)
class Adapters:
    """LoRA: slots on the GPU and in host memory, and what a load takes."""

    slots: int = 4
    host_slots: int = 32
    cold_s: float = 4.4
    warm_ms: float = 60.0
    sigma: float = 0.27
    """Of the logarithm of a load: p99 is 1.9 times the median."""
    blocking: bool = False


@dataclass(frozen=True)
class Replica:
    """One engine: its host, whether it is up when the run begins, its router weight."""

    name: str
    host: str
    up: bool = True
    weight: float = 1.0


@dataclass(frozen=True)
class Pool:
    """Replicas of one model behind one router. `prefill`: the pool that prefills for it."""

    name: str
    model: str
    layout: Layout
    replicas: tuple[Replica, ...]
    router: Router
    role: Role = Role.WHOLE
    prefill: str | None = None
    tokenizer: Tokenizer = field(default_factory=Tokenizer)
    scheduler: Scheduler = field(default_factory=Scheduler)
    offload: Offload = field(default_factory=Offload)
    adapters: Adapters = field(default_factory=Adapters)
    transfer_gbps: float = 40.0
    transfer_flow_gbps: float = 0.0
    """Of one hand-off at the most, as a TCP stream's; 0: as the link has room."""
    transfer_latency_ms: float = 3.0
    model_load_s: float = 60.0
    weights_warm: float = 0.0


@dataclass(frozen=True)
class Route:
    """A gateway route: which pool serves it (None: that of the model), guarded or not."""

    name: str
    pool: str | None = None
    guarded: bool = False


@dataclass(frozen=True)
class Fleet:
    """A whole fleet. `models` and `routes` are in the order of a request's indices."""

    name: str
    zones: tuple[Zone, ...]
    hosts: tuple[Host, ...]
    clients: Clients
    gateways: tuple[Gateway, ...]
    pools: tuple[Pool, ...]
    models: tuple[str, ...]
    routes: tuple[Route, ...]
    network: Network = field(default_factory=Network)
    guardrail: Service = field(default_factory=lambda: Service(64, 12.0, 0.4))
    retrieval: Service = field(default_factory=lambda: Service(64, 40.0, 0.5))
    storage_gbps: float = 8.0
    scrape_s: float = 15.0

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """All replicas in the order of the index that attempts carry."""
        return tuple(replica for pool in self.pools for replica in pool.replicas)

    @property
    def engine_hosts(self) -> tuple[str, ...]:
        """Hosts of all replicas, each once."""
        return tuple(dict.fromkeys(replica.host for replica in self.replicas))

    def pool_of(self, replica: int) -> Pool:
        """The pool a replica belongs to, by its index."""
        for pool in self.pools:
            if replica < len(pool.replicas):
                return pool
            replica -= len(pool.replicas)
        raise IndexError(f"replica {replica} of {len(self.replicas)}")
