"""Routers: their queue, and which replica of a pool gets a request."""

import math
from typing import Any

import numpy as np

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.fleet.parts import Policy
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import knob_columns as k
from tailburn.lab.world import layout as w
from tailburn.lab.world.answer import fail
from tailburn.lab.world.calls import (
    GATEWAY_TO_ENGINE,
    ROUTER_TO_ENGINE,
    beside_try,
    edge_ns,
    next_step,
    ns,
    of_thing,
)
from tailburn.lab.world.draws import D_ENGINE_EDGE, D_PICK, key_of, unit
from tailburn.lab.world.serve import come, serve_waiting
from tailburn.lab.world.stations import free_server, station_of

ROUND_ROBIN, LEAST = int(Policy.ROUND_ROBIN), int(Policy.LEAST_REQUESTS)
BY_METRICS, AFFINITY = int(Policy.LEAST_BY_METRICS), int(Policy.PREFIX_AFFINITY)
MILLION = 1_000_000


@lean
def at_router(s: Any, slot: Any, now: Any) -> None:
    """The request is at its router, and waits there while too many are out."""
    if s.calls[slot, w.ROUTER_IN] < 0:
        s.calls[slot, w.ROUTER_IN] = now
    come(s, station_of(s, w.ST_ROUTER, s.calls[slot, w.POOL]), slot, now)


@lean_inlined
def weight_of(s: Any, r: Any) -> Any:
    """A replica's weight in its router; 0 when it is not to be used."""
    if s.replicas[r, w.R_SEEN] == 0 or s.k_replica[r, k.DRAINING] > 0.5:
        return 0.0
    return s.k_replica[r, k.ROUTE_WEIGHT]


@lean
def _in_turn(s: Any, first: Any, size: Any) -> Any:
    """Smooth weighted round robin, as nginx does it."""
    total, best = 0, -1
    for r in range(first, first + size):
        weight = int(weight_of(s, r) * MILLION)
        if weight > 0:
            total += weight
            s.replicas[r, w.R_CREDIT] += weight
            if best < 0 or s.replicas[r, w.R_CREDIT] > s.replicas[best, w.R_CREDIT]:
                best = r
    if best >= 0:
        s.replicas[best, w.R_CREDIT] -= total
    return best


@lean
def _least(s: Any, first: Any, size: Any, column: Any, turn: Any) -> Any:
    """The least of a count over weight; of equals, each in turn."""
    best, least = -1, np.inf
    for i in range(size):
        r = first + (turn + i) % size
        weight = weight_of(s, r)
        if weight > 0.0:
            load = (s.replicas[r, column] + 1.0) / weight
            if load < least:
                best, least = r, load
    return best


@lean
def _by_prefix(s: Any, slot: Any, pool: Any, first: Any, size: Any) -> Any:
    """Rendezvous hashing of session or prefix, unless that replica is overloaded."""
    calls = s.calls
    what = calls[slot, w.SESSION]
    if what == 0:
        what = calls[slot, w.PREFIX]
    best, highest, load, count = -1, -1.0, 0, 0
    for r in range(first, first + size):
        weight = weight_of(s, r)
        if weight > 0.0:
            load += s.replicas[r, w.R_INFLIGHT]
            count += 1
            # Weighted rendezvous: -weight / log of a uniform draw.
            score = -weight / math.log(unit(key_of(what, r), 0))
            if score > highest:
                best, highest = r, score
    if best >= 0 and what != 0:
        limit = s.k_pool[pool, k.AFFINITY_OVERLOAD] * (load + 1.0) / count
        if s.replicas[best, w.R_INFLIGHT] < limit + 1.0:
            return best
    return _least(s, first, size, w.R_INFLIGHT, s.pools[pool, w.P_TURN])


@lean
def _at_random(s: Any, first: Any, size: Any, drawn: Any) -> Any:
    total = 0.0
    for r in range(first, first + size):
        total += weight_of(s, r)
    left, best = drawn * total, -1
    for r in range(first, first + size):
        weight = weight_of(s, r)
        if weight > 0.0 and left >= 0.0:
            best = r
            left -= weight
    return best


@lean
def pick(s: Any, slot: Any, pool: Any) -> Any:
    """The replica of a pool for an attempt, by the pool's policy; -1 when none serves."""
    first, size = s.pools[pool, w.P_FIRST], s.pools[pool, w.P_SIZE]
    policy = int(s.k_pool[pool, k.POLICY])
    s.pools[pool, w.P_TURN] += 1
    if policy == ROUND_ROBIN:
        return _in_turn(s, first, size)
    if policy == LEAST:
        return _least(s, first, size, w.R_INFLIGHT, s.pools[pool, w.P_TURN])
    if policy == BY_METRICS:
        return _least(s, first, size, w.R_METRIC, s.pools[pool, w.P_TURN])
    if policy == AFFINITY:
        return _by_prefix(s, slot, pool, first, size)
    return _at_random(s, first, size, unit(s.calls[slot, w.KEY], D_PICK))


@lean_inlined
def count_on(s: Any, slot: Any, r: Any) -> None:
    """The router has the attempt out to a replica."""
    s.calls[slot, w.ON] = r
    s.calls[slot, w.EPOCH] = s.replicas[r, w.R_EPOCH]
    s.replicas[r, w.R_INFLIGHT] += 1
    s.replicas[r, w.R_SENT] += 1


@lean_inlined
def count_off(s: Any, slot: Any) -> None:
    """The router has the attempt out to no replica."""
    r = s.calls[slot, w.ON]
    if r >= 0:
        s.replicas[r, w.R_INFLIGHT] -= 1
        s.calls[slot, w.ON] = -1


@lean
def leave_router(s: Any, slot: Any, now: Any) -> None:
    """The router is done with the attempt; who waits in it has its turn."""
    count_off(s, slot)
    if s.calls[slot, w.ROUTED] == 1:
        s.calls[slot, w.ROUTED] = 0
        st = station_of(s, w.ST_ROUTER, s.calls[slot, w.POOL])
        free_server(s, st, now)
        serve_waiting(s, st, now)


@lean
def _pick_another(s: Any, slot: Any, pool: Any) -> Any:
    """As `pick`, and not the replica that has just failed it, while there are others."""
    avoid = s.calls[slot, w.AVOID]
    if avoid < 0:
        return pick(s, slot, pool)
    seen = s.replicas[avoid, w.R_SEEN]
    s.replicas[avoid, w.R_SEEN] = 0
    r = pick(s, slot, pool)
    s.replicas[avoid, w.R_SEEN] = seen
    return r if r >= 0 else pick(s, slot, pool)


@lean
def routed(s: Any, slot: Any, now: Any) -> None:
    """A replica is picked, and the request goes there; 503 when there is none."""
    calls, key = s.calls, s.calls[slot, w.KEY]
    pool = calls[slot, w.POOL]
    s.pools[pool, w.P_REQUESTS] += 1
    prefill = s.pools[pool, w.P_PREFILL]
    calls[slot, w.TRIES] += 1
    calls[slot, w.ROUTE_TRIES] += 1
    r = _pick_another(s, slot, pool if prefill < 0 else prefill)
    if r < 0:
        s.pools[pool, w.P_UNSERVED] += 1
        leave_router(s, slot, now)
        fail(s, slot, now, 503)
        return
    router = s.pools[pool, w.P_ZONE]
    if router >= 0:
        calls[slot, w.ROUTER_OUT] = now
    else:
        calls[slot, w.GATEWAY_OUT] = now
        if calls[slot, w.TRIES] == 1:
            calls[slot, w.UPSTREAM_FIRST] = now
    limit = s.k_pool[pool, k.ROUTER_TIMEOUT_S]
    if router >= 0 and limit > 0.0:
        beside_try(s, slot, w.EV_ROUTE_LATE, now + ns(limit), calls[slot, w.TRIES])
    calls[slot, w.REPLICA] = r
    if prefill >= 0:
        calls[slot, w.PREFILL_REPLICA] = r
    count_on(s, slot, r)
    there = s.replicas[r, w.R_ZONE]
    if router >= 0:
        took = edge_ns(s, ROUTER_TO_ENGINE, router, there, key, D_ENGINE_EDGE)
    else:
        here = s.gates[calls[slot, w.GATEWAY], w.G_ZONE]
        took = edge_ns(s, GATEWAY_TO_ENGINE, here, there, key, D_ENGINE_EDGE)
    next_step(s, slot, w.EV_AT_ENGINE, now + took)


@lean
def refresh(s: Any, pool: Any, now: Any) -> None:
    """A router reads its engines' gauges, and will again."""
    if s.pools[pool, w.P_REFRESHED] > now or int(s.k_pool[pool, k.POLICY]) != BY_METRICS:
        return
    first = s.pools[pool, w.P_FIRST]
    rep = s.engines.rep
    for r in range(first, first + s.pools[pool, w.P_SIZE]):
        s.replicas[r, w.R_METRIC] = rep[r, c.RUNNING_COUNT] + rep[r, c.WAITING_COUNT]
    s.pools[pool, w.P_REFRESHED] = now + ns(s.k_pool[pool, k.REFRESH_S])
    of_thing(s, pool, w.EV_REFRESH, s.pools[pool, w.P_REFRESHED])
