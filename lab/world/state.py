"""A world's arrays: made from a fleet, copied, and given more room."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tailburn.lab.fleet.arrays import FleetArrays, blocks_that_fit
from tailburn.lab.physics import KNOB_INDEX, StepModel
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import layout as w
from tailburn.lab.world.engine_make import EngineSettings, make_engines
from tailburn.lab.world.knobs import COLUMN, WIDTH, Level
from tailburn.lab.world.layout import State

CALLS: Final = 2_048
ENGINE_SLOTS: Final = 2_048
HEAP: Final = 16_384
SCRAPES: Final = 32
TOKENS: Final = 4 * w.MOST_OUTPUT
WIDER: Final = 4
"""A knob may raise `max_num_seqs` to so many times what the fleet has."""


def new_state(fleet: FleetArrays, seed: int, want_tokens: bool) -> State:
    """All arrays of a world in which nothing has happened yet."""
    f, knobs = fleet.fleet, fleet.knobs
    replicas, pools, gates = len(fleet.replica_pool), len(f.pools), len(f.gateways)
    stations, first = _stations(fleet)
    others = len(stations) - first[w.ST_WORK]
    calls = np.zeros((CALLS, w.CALL), np.int64)
    return State(
        calls=calls,
        free=np.arange(CALLS - 1, -1, -1),
        heap=np.zeros((HEAP, 2), np.int64),
        fixed=_fixed(fleet, first, seed, want_tokens),
        vary=_vary(),
        stations=stations,
        people=_people(fleet),
        gates=_columns(gates, w.GATE, {w.G_ZONE: fleet.gateway_zone, w.G_HOST: fleet.gateway_host}),
        pools=_columns(
            pools,
            w.POOL_WIDTH,
            {
                w.P_FIRST: fleet.pool_first,
                w.P_SIZE: fleet.pool_size,
                w.P_PREFILL: fleet.pool_prefill,
                w.P_ZONE: fleet.router_zone,
            },
        ),
        replicas=_columns(
            replicas,
            w.REPLICA_WIDTH,
            {
                w.R_POOL: fleet.replica_pool,
                w.R_HOST: fleet.replica_host,
                w.R_ZONE: fleet.replica_zone,
                w.R_DUE: -1,
                w.R_STARTED: -1,
            },
        ),
        routes=np.ascontiguousarray(fleet.serves, np.int64),
        guarded=np.ascontiguousarray(fleet.guarded, np.int64),
        edge_ns=fleet.edge_ns,
        edge_jitter_ns=fleet.edge_jitter_ns,
        tokenizer_ns=fleet.tokenizer_ns,
        sigma=np.array([f.guardrail.sigma, f.retrieval.sigma]),
        base_coef=fleet.coef,
        coef_of=_coefficients(),
        weight_bytes=np.stack([fleet.weight_bytes, np.zeros_like(fleet.weight_bytes)], 1),
        fed=np.zeros((0, w.ASKED), np.int64),
        plan=np.zeros((0, 4), np.int64),
        plan_value=np.zeros(0),
        out=np.zeros((2 * CALLS, w.TOLD + 1), np.int64),
        k_world=knobs[Level.WORLD].copy(),
        k_client=knobs[Level.CLIENT].copy(),
        k_gateway=knobs[Level.GATEWAY].copy(),
        k_pool=knobs[Level.POOL].copy(),
        k_replica=knobs[Level.REPLICA].copy(),
        k_host=knobs[Level.HOST].copy(),
        k_edge=knobs[Level.EDGE].copy(),
        s_at=np.zeros(SCRAPES, np.int64),
        s_rep=np.zeros((SCRAPES, replicas, c.REP), np.int64),
        s_real=np.zeros((SCRAPES, replicas, c.REAL)),
        s_replicas=np.zeros((SCRAPES, replicas, w.REPLICA_WIDTH), np.int64),
        s_stations=np.zeros((SCRAPES, others, w.STATION_WIDTH), np.int64),
        s_gates=np.zeros((SCRAPES, gates, w.GATE), np.int64),
        s_pools=np.zeros((SCRAPES, pools, w.POOL_WIDTH), np.int64),
        engines=_engines(fleet, seed, want_tokens),
    )


def _fixed(fleet: FleetArrays, first: list[int], seed: int, want_tokens: bool) -> np.ndarray:
    f = fleet.fleet
    zones = [z.name for z in f.zones]
    fixed = np.zeros(w.FIXED, np.int64)
    fixed[: w.FIRST_STATIONS] = first
    fixed[w.N_ZONES], fixed[w.N_GATEWAYS] = len(zones), len(f.gateways)
    fixed[w.N_POOLS], fixed[w.N_REPLICAS] = len(f.pools), len(fleet.replica_pool)
    fixed[w.SCRAPE_NS] = max(int(f.scrape_s * 1e9), 1)
    fixed[w.GUARDRAIL_ZONE] = zones.index(f.guardrail.zone) if f.guardrail.zone else -1
    fixed[w.RETRIEVAL_ZONE] = zones.index(f.retrieval.zone) if f.retrieval.zone else -1
    fixed[w.WANT_TOKENS], fixed[w.TLS_NS] = int(want_tokens), int(f.network.tls_ms * 1e6)
    fixed[w.SEED] = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 2)
    return fixed


def _vary() -> np.ndarray:
    vary = np.zeros(w.VARY, np.int64)
    vary[w.FREE_DEPTH] = CALLS
    return vary


def _columns(rows: int, width: int, given: Mapping[int, Any]) -> np.ndarray:
    table = np.zeros((rows, width), np.int64)
    for column, values in given.items():
        table[:, column] = values
    return table


def _people(fleet: FleetArrays) -> np.ndarray:
    given = {w.C_ZONE: fleet.client_zone, w.C_KEEP_NS: fleet.keepalive_ns}
    return _columns(len(fleet.client_zone), w.PERSON, given)


def _stations(fleet: FleetArrays) -> tuple[np.ndarray, list[int]]:
    """Every station with its servers, and where each kind begins."""
    knobs = fleet.knobs
    servers = [
        knobs[Level.CLIENT][:, COLUMN["client_pool_limit"]],
        knobs[Level.GATEWAY][:, COLUMN["gateway_workers"]],
        knobs[Level.WORLD][:, COLUMN["guardrail_servers"]],
        knobs[Level.WORLD][:, COLUMN["retrieval_servers"]],
        knobs[Level.POOL][:, COLUMN["router_max_inflight"]],
        knobs[Level.REPLICA][:, COLUMN["tokenizer_threads"]],
    ]
    sizes = [len(s) for s in servers]
    table = _columns(
        sum(sizes),
        w.STATION_WIDTH,
        {
            w.S_KIND: np.repeat(np.arange(len(sizes)), sizes),
            w.S_OWNER: np.concatenate([np.arange(n) for n in sizes]),
            w.S_SERVERS: [int(n) if n >= 1 else w.FOREVER for n in np.concatenate(servers)],
            w.S_HEAD: -1,
            w.S_TAIL: -1,
        },
    )
    return table, [int(n) for n in np.cumsum([0, *sizes[:-1]])]


def _coefficients() -> np.ndarray:
    """Which coefficient each replica knob is; -1 none."""
    of = np.full(WIDTH[Level.REPLICA], -1, np.int64)
    for name, at in KNOB_INDEX.items():
        of[COLUMN[name]] = at
    return of


def _engines(fleet: FleetArrays, seed: int, want_tokens: bool) -> c.Engines:
    rows = []
    for r, kv_bytes in enumerate(fleet.kv_bytes):
        pool = fleet.fleet.pool_of(r)
        s = pool.scheduler
        settings = EngineSettings(
            kv_blocks=blocks_that_fit(pool),
            kv_bytes_per_token=int(kv_bytes),
            block_size=s.block_size,
            max_num_seqs=s.max_num_seqs * WIDER,
            max_num_batched_tokens=s.max_num_batched_tokens,
            max_loras=pool.adapters.slots,
            max_cpu_loras=max(pool.adapters.host_slots, pool.adapters.slots),
        )
        rows.append((settings, StepModel(pool.layout, fleet.coef[r])))
    engines = make_engines(rows, ENGINE_SLOTS, seed, TOKENS if want_tokens else 0)
    for r in range(len(rows)):
        engines.rep[r, c.MODEL_LEN] = fleet.fleet.pool_of(r).scheduler.max_model_len
        engines.rep[r, c.PAUSE_NEXT_NS] = c.FOREVER
    return engines


def more_calls(s: State) -> State:
    """Twice the attempts under way, and what else must grow with them."""
    old = len(s.calls)
    free = np.zeros(2 * old, np.int64)
    depth = s.vary[w.FREE_DEPTH]
    free[:old] = np.arange(2 * old - 1, old - 1, -1)
    free[old : old + depth] = s.free[:depth]
    s.vary[w.FREE_DEPTH] = old + depth
    out = s.out if len(s.out) >= 4 * old else _longer(s.out, 4 * old)
    return s._replace(calls=_longer(s.calls, 2 * old), free=free, out=out)


def more_heap(s: State) -> State:
    """Room for twice the events."""
    return s._replace(heap=_longer(s.heap, 2 * len(s.heap)))


def more_engine_slots(s: State) -> State:
    """Room for twice the requests inside engines."""
    e, old = s.engines, len(s.engines.seq)
    free = np.zeros(2 * old + 1, np.int64)
    depth = int(e.free[0])
    free[1 : old + 1] = np.arange(2 * old - 1, old - 1, -1)
    free[old + 1 : old + 1 + depth] = e.free[1 : 1 + depth]
    free[0] = old + depth
    grown = e._replace(
        seq=_longer(e.seq, 2 * old), free=free, events=_longer(e.events, 4 * old + 2)
    )
    return s._replace(engines=grown)


def more_tokens(s: State) -> State:
    """Room for twice the token instants."""
    e = s.engines
    return s._replace(engines=e._replace(tokens=_longer(e.tokens, 2 * len(e.tokens))))


def copy_of(s: State) -> State:
    """The same in arrays of its own."""
    engines = type(s.engines)(*(a.copy() for a in s.engines))
    own: dict[str, Any] = {name: getattr(s, name).copy() for name in State._fields[:-1]}
    return State(**own, engines=engines)


def _longer(array: np.ndarray, rows: int) -> np.ndarray:
    longer = np.zeros((rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
