"""How the world lies in memory: arrays that all handlers of the event loop share.

`State` is a tuple of arrays. Rows of `calls` are attempts under way, by slot: first the
columns of `Attempts`, in its order, then those below that only the loop knows. Rows of
`stations` are places where attempts wait for a server. Times are int64 ns of true time.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.records import Attempts, Requests

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

NEVER: Final = -1
FOREVER: Final = np.iinfo(np.int64).max // 2

_AT = {c.name: i for i, c in enumerate(Attempts.columns())}

# Columns of calls: those of Attempts ----
ARRIVAL: Final = _AT["arrival_ns"]
CLIENT: Final = _AT["client"]
ROUTE: Final = _AT["route"]
MODEL: Final = _AT["model"]
LORA: Final = _AT["lora"]
PROMPT: Final = _AT["prompt_tokens"]
OUTPUT: Final = _AT["output_tokens"]
MAX_TOKENS: Final = _AT["max_tokens"]
PREFIX: Final = _AT["prefix"]
PREFIX_TOKENS: Final = _AT["prefix_tokens"]
STREAMED: Final = _AT["streamed"]
PRIORITY: Final = _AT["priority"]
RAG: Final = _AT["rag"]
STRUCTURED: Final = _AT["structured"]
SESSION: Final = _AT["session"]
ASKED: Final = len(Requests.columns())
"""So many columns are the request's own."""
REQUEST: Final = _AT["request"]
ATTEMPT: Final = _AT["attempt"]
HEDGE: Final = _AT["hedge"]
ZONE: Final = _AT["zone_client"]
GATEWAY: Final = _AT["gateway"]
REPLICA: Final = _AT["replica"]
PREFILL_REPLICA: Final = _AT["prefill_replica"]
CACHED: Final = _AT["cached_tokens"]
DONE_TOKENS: Final = _AT["output_done"]
OUTCOME: Final = _AT["outcome"]
STATUS: Final = _AT["http_status"]
PREEMPTIONS: Final = _AT["preemptions"]
CLIENT_START: Final = _AT["client_start"]
CLIENT_SLOT: Final = _AT["client_slot"]
CLIENT_CONNECTED: Final = _AT["client_connected"]
GATEWAY_IN: Final = _AT["gateway_in"]
GATEWAY_AUTHED: Final = _AT["gateway_authed"]
GUARDRAIL_START: Final = _AT["guardrail_start"]
GUARDRAIL_END: Final = _AT["guardrail_end"]
RETRIEVAL_START: Final = _AT["retrieval_start"]
RETRIEVAL_END: Final = _AT["retrieval_end"]
GATEWAY_OUT: Final = _AT["gateway_out"]
ROUTER_IN: Final = _AT["router_in"]
ROUTER_QUEUED_END: Final = _AT["router_queued_end"]
ROUTER_OUT: Final = _AT["router_out"]
ENGINE_IN: Final = _AT["engine_in"]
TOKENIZE_START: Final = _AT["tokenize_start"]
TOKENIZE_END: Final = _AT["tokenize_end"]
QUEUED: Final = _AT["queued"]
KV_LOAD_START: Final = _AT["kv_load_start"]
KV_LOAD_END: Final = _AT["kv_load_end"]
LORA_START: Final = _AT["lora_start"]
LORA_END: Final = _AT["lora_end"]
MODEL_START: Final = _AT["model_start"]
MODEL_END: Final = _AT["model_end"]
SCHEDULED: Final = _AT["scheduled"]
PREFILL_END: Final = _AT["prefill_end"]
KV_TRANSFER_START: Final = _AT["kv_transfer_start"]
KV_TRANSFER_END: Final = _AT["kv_transfer_end"]
ENGINE_FIRST: Final = _AT["engine_first"]
ENGINE_LAST: Final = _AT["engine_last"]
ENGINE_END: Final = _AT["engine_end"]
ROUTER_FIRST: Final = _AT["router_first"]
ROUTER_END: Final = _AT["router_end"]
GATEWAY_FIRST: Final = _AT["gateway_first"]
GATEWAY_LAST: Final = _AT["gateway_last"]
CLIENT_FIRST: Final = _AT["client_first"]
CLIENT_LAST: Final = _AT["client_last"]
CLIENT_END: Final = _AT["client_end"]
ABORTED: Final = _AT["aborted"]
ITL_MAX: Final = _AT["itl_max_ns"]
DECODE_STEPS: Final = _AT["decode_steps"]
FOLLOWED: Final = _AT["followed"]
TRIES: Final = _AT["upstream_tries"]
UPSTREAM_FIRST: Final = _AT["upstream_first"]
TOLD: Final = len(_AT)
"""So many columns go out."""

# Columns of calls: the loop's own ----
STAGE: Final = TOLD
"""Where it is: the stages below."""
LIFE: Final = TOLD + 1
"""Which use of the slot this is: an event of an older one is void."""
STEP: Final = TOLD + 2
"""Grows when its next event is called off."""
KEY: Final = TOLD + 3
"""Key of its random draws."""
NEXT: Final = TOLD + 4
PREV: Final = TOLD + 5
STATION: Final = TOLD + 6
"""Station it waits in or is served by; -1 none."""
SERVED: Final = TOLD + 7
"""1: served, 0: waits."""
POOLED: Final = TOLD + 8
"""1: it holds a slot of its client's pool."""
INFLIGHT: Final = TOLD + 9
"""1: the gateway counts it."""
ROUTED: Final = TOLD + 10
"""1: the router counts it."""
SLOT: Final = TOLD + 11
"""Its slot in the engine (decode side); -1 none."""
PREFILL_SLOT: Final = TOLD + 12
"""Its slot in the engine that prefills for it; -1 none."""
PARTNER: Final = TOLD + 13
"""The other of a hedged pair; -1 none."""
LEFT: Final = TOLD + 14
"""1: the client is done with it, one way or another."""
POOL: Final = TOLD + 15
EPOCH: Final = TOLD + 16
"""How often its replica had died when it was sent there."""
FAILED: Final = TOLD + 17
"""HTTP status of an answer that is an error; 0 none."""
TOKENS_AT: Final = TOLD + 18
"""Where its token instants lie; -1 nowhere."""
GONE: Final = TOLD + 19
"""When its gateway knows that the client has left; -1 it does not."""
ON: Final = TOLD + 20
"""Replica that the router counts it on; -1 none."""
GATE_TRIES: Final = TOLD + 21
"""Upstream calls of its gateway."""
ROUTE_TRIES: Final = TOLD + 22
"""Calls of its router to replicas, since the gateway's last."""
AVOID: Final = TOLD + 23
"""Replica that failed it and is not to be tried next; -1 none."""
CALL: Final = TOLD + 24

# Stages ----
AT_NOTHING: Final = 0
AT_CLIENT: Final = 1
"""Waits for a slot of the pool, connects, is on its way to the gateway."""
AT_GATEWAY: Final = 2
"""Its head is worked on, checked, enriched."""
AT_ROUTER: Final = 3
"""On its way to the router, in it, on its way to the engine."""
AT_TOKENIZER: Final = 4
AT_ENGINE: Final = 5
AT_HANDOFF: Final = 6
"""Prefilled, on its way to the decode side."""
ANSWERED: Final = 7
"""The engine is done with it, the answer may be on its way."""

# Kinds of events (handled in this order at one instant) ----
EV_ENGINE: Final = 1
"""Slot: a replica whose step is due."""
EV_START: Final = 2
EV_ARRIVE: Final = 3
"""At the gateway."""
EV_WORKED: Final = 4
EV_AUTHED: Final = 5
EV_GUARDED: Final = 6
EV_RETRIEVED: Final = 7
EV_AT_ROUTER: Final = 8
EV_ROUTED: Final = 9
EV_AT_ENGINE: Final = 10
EV_TOKENIZED: Final = 11
EV_HANDOFF: Final = 12
EV_ANSWER: Final = 13
"""The answer's end is at the client."""
EV_REFUSED: Final = 14
"""An error is at the client."""
EV_FIRST: Final = 15
"""The first byte of one of a hedged pair is at the client."""
EV_TIMEOUT: Final = 16
EV_LEAVE: Final = 17
"""The user's patience ends."""
EV_HEDGE: Final = 18
EV_HANGUP: Final = 19
"""The gateway hears that the client has gone."""
EV_ABORT: Final = 20
"""Router and engine hear it."""
EV_REFRESH: Final = 21
"""Slot: a pool that reads its engines' metrics."""
EV_SEEN: Final = 22
"""Slot: a replica that the router's health check has come to."""
EV_LOADED: Final = 23
"""Slot: a replica that has read its weights."""

EV_CHECKED: Final = 24
"""The policy check's answer is at the gateway."""
EV_AGAIN: Final = 25
"""An error is at the gateway, which calls upstream anew."""
EV_REROUTE: Final = 26
"""An error is at the router, which asks another replica."""
EV_GATE_LATE: Final = 27
"""The gateway's upstream call has had its time."""
EV_ROUTE_LATE: Final = 28
"""The router's call to a replica has had its time."""

KIND_SHIFT: Final = 56
LIFE_SHIFT: Final = 32
STEP_SHIFT: Final = 24
SLOT_MASK: Final = (1 << STEP_SHIFT) - 1
STEP_MASK: Final = 0xFF
LIFE_MASK: Final = (1 << (KIND_SHIFT - LIFE_SHIFT)) - 1

# Columns of stations ----
S_KIND: Final = 0
S_OWNER: Final = 1
"""Index of what it belongs to: a client, gateway, pool, replica."""
S_SERVERS: Final = 2
S_BUSY: Final = 3
S_HEAD: Final = 4
S_TAIL: Final = 5
S_WAITING: Final = 6
S_ENTERED: Final = 7
"""A counter: attempts that came."""
S_BEGUN: Final = 8
"""A counter: attempts that were let in."""
S_QUIT: Final = 9
"""A counter: attempts that left while they waited."""
S_WAIT_AREA: Final = 10
"""A counter: ns of waiting, of all attempts together."""
S_BUSY_AREA: Final = 11
"""A counter: ns of service, of all servers together."""
S_SINCE: Final = 12
"""Until when the two areas are counted."""
STATION_WIDTH: Final = 13

ST_CLIENT: Final = 0
ST_WORK: Final = 1
ST_GUARDRAIL: Final = 2
ST_RETRIEVAL: Final = 3
ST_ROUTER: Final = 4
ST_TOKENIZER: Final = 5

# `first`: the first station of each kind, and sizes ----
FIRST_STATIONS: Final = 6
N_ZONES: Final = 8
N_GATEWAYS: Final = 9
N_POOLS: Final = 10
N_REPLICAS: Final = 11
SCRAPE_NS: Final = 12
RETRIEVAL_ZONE: Final = 13
GUARDRAIL_ZONE: Final = 14
WANT_TOKENS: Final = 15
SEED: Final = 16
TLS_NS: Final = 17
FIXED: Final = 20

# `vary`: numbers that move ----
NOW: Final = 0
HEAP_SIZE: Final = 1
FREE_DEPTH: Final = 2
FED_NEXT: Final = 3
FED_COUNT: Final = 4
REQUESTS: Final = 5
"""Requests begun: the next one's number."""
OUT_ROWS: Final = 6
PLAN_NEXT: Final = 7
PLAN_COUNT: Final = 8
SCRAPE_NEXT: Final = 9
SCRAPE_ROWS: Final = 10
UNDER_WAY: Final = 11
"""Attempts begun and not told yet."""
N_ATTEMPTS: Final = 12
LOADING: Final = 13
"""Replicas that read weights now."""
EVENTS: Final = 14
"""Events handled: a counter."""
TOKENS_USED: Final = 15
LOADED_UNTIL: Final = 16
"""Until when reading of weights is counted."""
VARY: Final = 20

# Columns of gates (one row a gateway) ----
G_ZONE: Final = 0
G_HOST: Final = 1
G_INFLIGHT: Final = 2
G_REQUESTS: Final = 3
"""A counter."""
G_REFUSED: Final = 4
"""A counter: 429."""
G_ERRORS: Final = 5
"""A counter: answers that were errors."""
G_HUNG_UP: Final = 6
"""A counter: clients that went before their answer was whole (499)."""
GATE: Final = 8

# Columns of pools ----
P_FIRST: Final = 0
P_SIZE: Final = 1
P_PREFILL: Final = 2
P_ZONE: Final = 3
"""Zone of its router; -1: the gateway routes."""
P_TURN: Final = 4
P_REFRESHED: Final = 5
P_INFLIGHT: Final = 6
P_REQUESTS: Final = 7
P_UNSERVED: Final = 8
"""A counter: no replica to be had (503)."""
POOL_WIDTH: Final = 10

# Columns of replicas (the world's own; the engine's are in `engine_layout`) ----
R_POOL: Final = 0
R_HOST: Final = 1
R_ZONE: Final = 2
R_STATE: Final = 3
"""UP, LOADING, DOWN below."""
R_SEEN: Final = 4
"""1: the router's health check has it as able to serve."""
R_INFLIGHT: Final = 5
"""Requests the router has out to it."""
R_METRIC: Final = 6
"""Running and waiting at the last refresh."""
R_EPOCH: Final = 7
R_LOAD_START: Final = 8
R_READY: Final = 9
"""When it serves; in the past while its weights are still read."""
R_CREDIT: Final = 10
"""Of the smooth weighted round robin, in millionths."""
R_REFUSED: Final = 11
"""A counter: connections refused while down."""
R_STARTED: Final = 12
"""When its process began; -1 before the run."""
R_SENT: Final = 13
"""A counter: requests sent to it."""
R_DUE: Final = 14
"""When its step is due, as the heap knows it; -1 it knows of none."""
REPLICA_WIDTH: Final = 16

DOWN: Final = 0
LOADING_STATE: Final = 1
UP: Final = 2

# Columns of people (one row a client) ----
C_ZONE: Final = 0
C_IDLE: Final = 1
"""Idle connections it holds."""
C_IDLE_AT: Final = 2
C_KEEP_NS: Final = 3
C_TURN: Final = 4
C_REQUESTS: Final = 5
PERSON: Final = 6

# Why the loop came back ----
REACHED: Final = 0
FULL_CALLS: Final = 1
FULL_HEAP: Final = 2
FULL_OUT: Final = 3
FULL_SAMPLES: Final = 4
FULL_ENGINES: Final = 5
FULL_TOKENS: Final = 6

MOST_OUTPUT: Final = 131_072
"""Most output tokens of a request whose token instants are kept."""
SPARE_CALLS: Final = 8
SPARE_HEAP: Final = 4_096
"""Room kept free, so that no event finds the arrays full."""


class State(NamedTuple):
    """The arrays of a world. `k_*` hold the knobs' values in force, by level."""

    calls: I64
    free: I64
    heap: I64
    fixed: I64
    vary: I64
    stations: I64
    people: I64
    gates: I64
    pools: I64
    replicas: I64
    routes: I64
    guarded: I64
    edge_ns: F64
    edge_jitter_ns: F64
    tokenizer_ns: F64
    sigma: F64
    base_coef: F64
    coef_of: I64
    weight_bytes: I64
    fed: I64
    plan: I64
    plan_value: F64
    out: I64
    k_world: F64
    k_client: F64
    k_gateway: F64
    k_pool: F64
    k_replica: F64
    k_host: F64
    k_edge: F64
    s_at: I64
    s_rep: I64
    s_real: F64
    s_replicas: I64
    s_stations: I64
    s_gates: I64
    s_pools: I64
    engines: Any
