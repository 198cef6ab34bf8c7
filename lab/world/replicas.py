"""Replicas that die, start and load; and every knob taking effect."""

from typing import Any

from tailburn.lab.compiled import lean
from tailburn.lab.physics import coef as f
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import knob_columns as k
from tailburn.lab.world import layout as w
from tailburn.lab.world.answer import fail
from tailburn.lab.world.calls import call_off, ns, of_thing
from tailburn.lab.world.engine import engine_down, engine_set_blocks, engine_up
from tailburn.lab.world.engine_queue import dequeue, enqueue
from tailburn.lab.world.knobs import Level
from tailburn.lab.world.routing import leave_router, refresh
from tailburn.lab.world.serve import done_at, serve_waiting
from tailburn.lab.world.serving import after_engine, due, finish
from tailburn.lab.world.stations import quit_queue, resize, station_of

WORLD, CLIENT, GATEWAY = int(Level.WORLD), int(Level.CLIENT), int(Level.GATEWAY)
POOL, REPLICA, HOST = int(Level.POOL), int(Level.REPLICA), int(Level.HOST)

KERNELS = (
    f.GEMM_FLOOR, f.GEMM_ROW, f.GEMM_READ, f.GEMM_TOKEN, f.ELEMENTWISE_TOKEN, f.HEAD_READ,
    f.HEAD_TOKEN, f.ATTENTION_FLOOR, f.ATTENTION_SEQUENCE, f.ATTENTION_TOKEN, f.ATTENTION_PAIR,
    f.EXPERT_READ, f.EXPERT_TOKEN,
)  # fmt: skip
"""Coefficients that `kernel_factor` multiplies."""


@lean
def apply(s: Any, level: Any, column: Any, thing: Any, value: Any, now: Any) -> None:
    """A knob of a thing is at `value` from now on."""
    if level == WORLD:
        s.k_world[thing, column] = value
        if column == k.GUARDRAIL_SERVERS:
            _servers(s, s.fixed[w.ST_GUARDRAIL], value, now)
        elif column == k.RETRIEVAL_SERVERS:
            _servers(s, s.fixed[w.ST_RETRIEVAL], value, now)
        elif column == k.STORAGE_GBPS:
            _count_loaded(s, now)
            _next_loaded(s, now)
    elif level == CLIENT:
        s.k_client[thing, column] = value
        if column == k.POOL_LIMIT:
            _servers(s, station_of(s, w.ST_CLIENT, thing), value, now)
    elif level == GATEWAY:
        s.k_gateway[thing, column] = value
        if column == k.WORKERS:
            _servers(s, station_of(s, w.ST_WORK, thing), value, now)
    elif level == POOL:
        s.k_pool[thing, column] = value
        if column == k.ROUTER_MAX_INFLIGHT:
            _servers(s, station_of(s, w.ST_ROUTER, thing), value, now)
        elif column == k.POLICY:
            refresh(s, thing, now)
    elif level == REPLICA:
        s.k_replica[thing, column] = value
        _apply_replica(s, column, thing, value, now)
    elif level == HOST:
        s.k_host[thing, column] = value
        for r in range(s.fixed[w.N_REPLICAS]):
            if s.replicas[r, w.R_HOST] == thing:
                _apply_replica(s, k.HOST_FACTOR, r, s.k_replica[r, k.HOST_FACTOR], now)
    else:
        s.k_edge[thing, column] = value


@lean
def _servers(s: Any, st: Any, servers: Any, now: Any) -> None:
    """A station has so many servers; 0: as many as come."""
    resize(s, st, int(servers) if servers >= 1.0 else w.FOREVER, now)
    serve_waiting(s, st, now)


@lean
def _apply_replica(s: Any, column: Any, r: Any, value: Any, now: Any) -> None:
    """A knob of a replica: into its engine's own columns."""
    rep, real = s.engines.rep, s.engines.real
    coefficient = s.coef_of[column]
    if column == k.HOST_FACTOR:
        host = s.k_host[s.replicas[r, w.R_HOST], k.CPU_FACTOR]
        real[r, c.COEF + f.HOST_FACTOR] = value * host
    elif column == k.KERNEL_FACTOR:
        for at in KERNELS:
            real[r, c.COEF + at] = s.base_coef[r, at] * value
    elif coefficient >= 0:
        real[r, c.COEF + coefficient] = value
    elif column == k.MAX_NUM_SEQS:
        rep[r, c.MAX_SEQS] = min(int(value), s.engines.run.shape[2])
    elif column == k.TOKEN_BUDGET:
        rep[r, c.TOKEN_BUDGET] = int(value)
    elif column == k.CHUNK_LIMIT:
        rep[r, c.CHUNK_LIMIT] = int(value)
    elif column == k.PRIORITY_SCHEDULING:
        _reorder(s, r, 1 if value > 0.5 else 0)
    elif column == k.KV_BLOCKS:
        if int(value) != rep[r, c.BLOCKS]:
            engine_set_blocks(s.engines, r, int(value), now)
    elif column == k.PREFIX_CACHE_BLOCKS:
        rep[r, c.CACHE_LIMIT] = int(value)
        engine_set_blocks(s.engines, r, rep[r, c.BLOCKS], now)
    elif column == k.WATERMARK:
        rep[r, c.WATERMARK] = int(value)
    elif column == k.ADMIT_WHOLE:
        rep[r, c.RESERVE] = int(value)
    elif column == k.TIER_BLOCKS:
        rep[r, c.TIER_BLOCKS] = int(value)
    elif column == k.KV_LOAD_GBPS:
        real[r, c.LOAD_GBPS] = value
    elif column == k.TRANSFER_GBPS:
        real[r, c.TRANSFER_GBPS] = value
    elif column == k.TRANSFER_FLOW_GBPS:
        real[r, c.TRANSFER_FLOW_GBPS] = value
    elif column == k.KV_LOAD_LATENCY_S:
        rep[r, c.LOAD_LATENCY_NS] = ns(value)
    elif column == k.TRANSFER_LATENCY_S:
        rep[r, c.TRANSFER_LATENCY_NS] = ns(value)
    elif column == k.LORA_SLOTS:
        rep[r, c.LORA_SLOTS] = min(int(value), s.engines.adapters.shape[1])
    elif column == k.LORA_HOST_SLOTS:
        rep[r, c.LORA_HOST] = min(int(value), s.engines.adapters.shape[1])
    elif column == k.LORA_COLD_S:
        rep[r, c.LORA_COLD_NS] = ns(value)
    elif column == k.LORA_WARM_S:
        rep[r, c.LORA_WARM_NS] = ns(value)
    elif column == k.LORA_LOAD_SIGMA:
        real[r, c.LORA_SIGMA] = value
    elif column == k.LORA_BLOCKING:
        rep[r, c.LORA_BLOCKING] = int(value)
    elif column == k.GRAMMAR_S:
        rep[r, c.GRAMMAR_NS] = ns(value)
    elif column == k.GRAMMAR_WORKERS:
        rep[r, c.GRAMMAR_WORKERS] = int(value)
    elif column == k.GC_PAUSE_S:
        rep[r, c.PAUSE_NS] = ns(value)
    elif column == k.GC_EVERY_S:
        rep[r, c.PAUSE_EVERY_NS] = ns(value)
        rep[r, c.PAUSE_NEXT_NS] = min(rep[r, c.PAUSE_NEXT_NS], now + ns(value))
    elif column == k.COMPILE_S:
        rep[r, c.COMPILE_NS] = ns(value)
    elif column == k.FORGET_SHAPES:
        if value > 0.5:
            rep[r, c.SHAPES] = 0
    elif column == k.TOKENIZER_THREADS:
        _servers(s, station_of(s, w.ST_TOKENIZER, r), value, now)
    elif column == k.REPLICA_DOWN:
        if value > 0.5:
            die(s, r, now)
        else:
            begin_load(s, r, now)
    due(s, r)


@lean
def _reorder(s: Any, r: Any, policy: Any) -> None:
    """The scheduler's policy changes: those who wait are sorted anew."""
    e = s.engines
    if e.rep[r, c.POLICY] == policy:
        return
    for slot in range(len(e.seq)):
        if e.seq[slot, c.STATE] == c.WAITING and e.seq[slot, c.REPLICA] == r:
            dequeue(e, r, slot)
            e.seq[slot, c.STATE] = -1
    e.rep[r, c.POLICY] = policy
    for slot in range(len(e.seq)):
        if e.seq[slot, c.STATE] == -1 and e.seq[slot, c.REPLICA] == r:
            enqueue(e, r, slot)


@lean
def die(s: Any, r: Any, now: Any) -> None:
    """A replica dies: what is in it fails, what is on its way finds nobody."""
    replicas = s.replicas
    if replicas[r, w.R_STATE] == w.DOWN:
        return
    if replicas[r, w.R_STATE] == w.LOADING_STATE:
        _count_loaded(s, now)
        s.vary[w.LOADING] -= 1
    replicas[r, w.R_STATE] = w.DOWN
    replicas[r, w.R_EPOCH] += 1
    if s.vary[w.LOADING] > 0:
        _next_loaded(s, now)
    for slot in range(len(s.calls)):
        if s.calls[slot, w.STAGE] == w.AT_TOKENIZER and s.calls[slot, w.ON] == r:
            _cut(s, slot, now)
    engine_down(s.engines, r, now)
    after_engine(s, r, now)
    of_thing(s, r, w.EV_SEEN, now + ns(s.k_pool[replicas[r, w.R_POOL], k.HEALTH_CHECK_S]))


@lean
def _cut(s: Any, slot: Any, now: Any) -> None:
    """An attempt loses the front end that it is in."""
    call_off(s, slot)
    if s.calls[slot, w.SERVED] == 1:
        done_at(s, slot, now)
    else:
        quit_queue(s, slot, now)
    s.calls[slot, w.ENGINE_END] = now
    leave_router(s, slot, now)
    if s.calls[slot, w.LEFT] == 1:
        finish(s, slot)
    else:
        fail(s, slot, now, 502)


@lean
def begin_load(s: Any, r: Any, now: Any) -> None:
    """A new process: it reads its weights, with all others that do, then it prepares."""
    replicas = s.replicas
    if replicas[r, w.R_STATE] != w.DOWN:
        return
    _count_loaded(s, now)
    replicas[r, w.R_STATE] = w.LOADING_STATE
    replicas[r, w.R_LOAD_START] = replicas[r, w.R_STARTED] = now
    cold = 1.0 - s.k_replica[r, k.WEIGHTS_WARM]
    s.weight_bytes[r, 1] = int(s.weight_bytes[r, 0] * cold)
    s.vary[w.LOADING] += 1
    engine_up(s.engines, r, c.FOREVER)
    of_thing(s, r, w.EV_SEEN, now + ns(s.k_pool[replicas[r, w.R_POOL], k.HEALTH_CHECK_S]))
    _next_loaded(s, now)


@lean
def _count_loaded(s: Any, now: Any) -> None:
    """What has been read from storage since it was last counted, shared alike."""
    readers = 0
    for r in range(s.fixed[w.N_REPLICAS]):
        if s.replicas[r, w.R_STATE] == w.LOADING_STATE and s.weight_bytes[r, 1] > 0:
            readers += 1
    gone = now - s.vary[w.LOADED_UNTIL]
    s.vary[w.LOADED_UNTIL] = now
    if readers == 0:
        return
    each = int(gone * s.k_world[0, k.STORAGE_GBPS] / readers)
    for r in range(s.fixed[w.N_REPLICAS]):
        if s.replicas[r, w.R_STATE] == w.LOADING_STATE and s.weight_bytes[r, 1] > 0:
            s.weight_bytes[r, 1] = max(s.weight_bytes[r, 1] - each, 0)


@lean
def _next_loaded(s: Any, now: Any) -> None:
    """When those that load will be ready, if nothing changes; the first change asks again."""
    readers = 0
    for r in range(s.fixed[w.N_REPLICAS]):
        if s.replicas[r, w.R_STATE] == w.LOADING_STATE and s.weight_bytes[r, 1] > 0:
            readers += 1
    for r in range(s.fixed[w.N_REPLICAS]):
        if s.replicas[r, w.R_STATE] == w.LOADING_STATE and s.replicas[r, w.R_READY] <= now:
            left = s.weight_bytes[r, 1]
            if left > 0:
                took = int(left * readers / s.k_world[0, k.STORAGE_GBPS]) + 1
                of_thing(s, r, w.EV_LOADED, now + took)
            else:
                _prepare(s, r, now)


@lean
def _prepare(s: Any, r: Any, now: Any) -> None:
    """Its weights are read: start of the process, compile, graphs; then it serves."""
    ready = now + ns(s.k_replica[r, k.MODEL_LOAD_S])
    s.replicas[r, w.R_READY] = max(ready, now + 1)
    s.engines.rep[r, c.READY_AT_NS] = s.replicas[r, w.R_READY]
    if s.engines.rep[r, c.WAITING_COUNT] > 0:
        s.engines.rep[r, c.NEXT_NS] = s.replicas[r, w.R_READY]
    of_thing(s, r, w.EV_SEEN, s.replicas[r, w.R_READY])
    due(s, r)


@lean
def loaded(s: Any, r: Any, now: Any) -> None:
    """A replica may have read its weights by now."""
    if s.replicas[r, w.R_STATE] != w.LOADING_STATE or s.replicas[r, w.R_READY] > now:
        return
    _count_loaded(s, now)
    if s.weight_bytes[r, 1] <= int(s.k_world[0, k.STORAGE_GBPS] * 2.0):
        s.weight_bytes[r, 1] = 0
        _next_loaded(s, now)


@lean
def seen(s: Any, r: Any, now: Any) -> None:
    """A load ends, or the router's health check comes to a replica."""
    replicas = s.replicas
    ready = replicas[r, w.R_READY]
    check = ns(s.k_pool[replicas[r, w.R_POOL], k.HEALTH_CHECK_S])
    prepared = replicas[r, w.R_LOAD_START] < ready <= now  # else: the process before it was
    if replicas[r, w.R_STATE] == w.LOADING_STATE and prepared:
        replicas[r, w.R_STATE] = w.UP
        s.vary[w.LOADING] -= 1
        of_thing(s, r, w.EV_SEEN, now + check)
    waits = s.k_pool[replicas[r, w.R_POOL], k.ROUTE_TO_LOADING] > 0.5
    able = replicas[r, w.R_STATE] == w.UP and now >= ready + check
    replicas[r, w.R_SEEN] = 1 if able or waits and replicas[r, w.R_STATE] != w.DOWN else 0


@lean
def set_up(s: Any) -> None:
    """Every replica's knobs into its engine, before anything has happened."""
    for r in range(s.fixed[w.N_REPLICAS]):
        for column in range(s.k_replica.shape[1]):
            if column != k.REPLICA_DOWN:
                _apply_replica(s, column, r, s.k_replica[r, column], 0)
        if s.k_replica[r, k.REPLICA_DOWN] > 0.5:
            engine_down(s.engines, r, 0)
            s.replicas[r, w.R_STATE] = w.DOWN
        else:
            engine_up(s.engines, r, 0)
            s.replicas[r, w.R_STATE], s.replicas[r, w.R_SEEN] = w.UP, 1
    for pool in range(s.fixed[w.N_POOLS]):
        refresh(s, pool, 0)
