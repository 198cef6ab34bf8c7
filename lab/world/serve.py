"""What a server of each station does with an attempt: how long, and what comes then."""

import math
from typing import Any

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.world import knob_columns as k
from tailburn.lab.world import layout as w
from tailburn.lab.world.calls import TO_GATEWAY, edge_ns, next_step, ns
from tailburn.lab.world.draws import (
    D_CONNECT,
    D_GUARDRAIL,
    D_REQUEST_EDGE,
    D_RETRIEVAL,
    D_TOKENIZE,
    D_WORK,
    exponential,
    normal,
)
from tailburn.lab.world.stations import enter, free_server, let_in

TAIL_AT = 1.645
"""Sigmas above the median from which on `retrieval_tail_factor` acts: the slowest 5 %."""


@lean_inlined
def _lognormal_ns(median_s: Any, sigma: Any, z: Any) -> Any:
    return median_s * math.exp(sigma * z) * 1e9


@lean
def _connect(s: Any, slot: Any, now: Any) -> None:
    """A slot of the pool is had: take an idle connection or open one, and send."""
    calls, people = s.calls, s.people
    client, key = calls[slot, w.CLIENT], calls[slot, w.KEY]
    calls[slot, w.POOLED], calls[slot, w.STATION] = 1, -1
    begin = now + ns(s.k_client[client, k.LOOP_DELAY_S])
    calls[slot, w.CLIENT_SLOT] = begin
    zone, there = calls[slot, w.ZONE], s.gates[calls[slot, w.GATEWAY], w.G_ZONE]
    if now - people[client, w.C_IDLE_AT] > people[client, w.C_KEEP_NS]:
        people[client, w.C_IDLE] = 0
    if people[client, w.C_IDLE] > 0:
        people[client, w.C_IDLE] -= 1
    else:
        # TCP's and TLS 1.3's handshakes: two round trips.
        trip = edge_ns(s, TO_GATEWAY, zone, there, key, D_CONNECT)
        trip += edge_ns(s, TO_GATEWAY, zone, there, key, D_CONNECT + 1)
        begin += 2 * trip + s.fixed[w.TLS_NS]
    calls[slot, w.CLIENT_CONNECTED] = begin
    took = edge_ns(s, TO_GATEWAY, zone, there, key, D_REQUEST_EDGE)
    next_step(s, slot, w.EV_ARRIVE, begin + took)


@lean_inlined
def cpu_of_gateway(s: Any, gateway: Any) -> Any:
    """How much slower than healthy a gateway's CPU work is."""
    host = s.gates[gateway, w.G_HOST]
    return s.k_gateway[gateway, k.GATEWAY_FACTOR] * s.k_host[host, k.CPU_FACTOR]


@lean
def _tokenize_ns(s: Any, slot: Any, r: Any) -> Any:
    took = s.tokenizer_ns[r, 0] + s.tokenizer_ns[r, 1] * s.calls[slot, w.PROMPT]
    took *= s.k_replica[r, k.TOKENIZER_FACTOR]
    took *= s.k_host[s.replicas[r, w.R_HOST], k.CPU_FACTOR]
    return int(took * (0.9 + 0.1 * exponential(s.calls[slot, w.KEY], D_TOKENIZE)))


@lean
def begin(s: Any, st: Any, slot: Any, now: Any) -> None:
    """A server of the station takes the attempt."""
    calls, key = s.calls, s.calls[slot, w.KEY]
    kind, owner = s.stations[st, w.S_KIND], s.stations[st, w.S_OWNER]
    if kind == w.ST_CLIENT:
        _connect(s, slot, now)
    elif kind == w.ST_WORK:
        took = s.k_gateway[owner, k.WORK_S] * 1e9 * cpu_of_gateway(s, owner)
        took *= 0.7 + 0.3 * exponential(key, D_WORK)
        next_step(s, slot, w.EV_WORKED, now + int(took))
    elif kind == w.ST_GUARDRAIL:
        took = _lognormal_ns(s.k_world[0, k.GUARDRAIL_S], s.sigma[0], normal(key, D_GUARDRAIL))
        took *= s.k_world[0, k.GUARDRAIL_FACTOR]
        next_step(s, slot, w.EV_GUARDED, now + int(took))
    elif kind == w.ST_RETRIEVAL:
        z = normal(key, D_RETRIEVAL)
        took = _lognormal_ns(s.k_world[0, k.RETRIEVAL_S], s.sigma[1], z)
        took *= s.k_world[0, k.RETRIEVAL_FACTOR]
        if z > TAIL_AT:
            took *= s.k_world[0, k.RETRIEVAL_TAIL_FACTOR]
        next_step(s, slot, w.EV_RETRIEVED, now + int(took))
    elif kind == w.ST_ROUTER:
        calls[slot, w.ROUTED], calls[slot, w.STATION] = 1, -1
        if calls[slot, w.ROUTER_QUEUED_END] < 0:
            calls[slot, w.ROUTER_QUEUED_END] = now
        next_step(s, slot, w.EV_ROUTED, now + ns(s.k_pool[owner, k.ROUTER_WORK_S]))
    else:
        calls[slot, w.TOKENIZE_START] = now
        next_step(s, slot, w.EV_TOKENIZED, now + _tokenize_ns(s, slot, owner))


@lean
def come(s: Any, st: Any, slot: Any, now: Any) -> None:
    """Come to a station, and be served when a server is free."""
    if enter(s, st, slot, now):
        begin(s, st, slot, now)


@lean
def serve_waiting(s: Any, st: Any, now: Any) -> None:
    """Free servers take those who wait."""
    slot = let_in(s, st, now)
    while slot >= 0:
        begin(s, st, slot, now)
        slot = let_in(s, st, now)


@lean
def done_at(s: Any, slot: Any, now: Any) -> None:
    """The server that has the attempt is done with it and takes the next."""
    st = s.calls[slot, w.STATION]
    s.calls[slot, w.STATION] = -1
    free_server(s, st, now)
    serve_waiting(s, st, now)
