"""Gateways: a worker for the head, authentication, policy check, retrieval, then upstream."""

from typing import Any

from tailburn.lab.compiled import lean
from tailburn.lab.world import knob_columns as k
from tailburn.lab.world import layout as w
from tailburn.lab.world.answer import fail
from tailburn.lab.world.calls import (
    TO_GUARDRAIL,
    TO_RETRIEVAL,
    TO_ROUTER,
    beside_try,
    edge_ns,
    next_step,
    ns,
)
from tailburn.lab.world.draws import (
    D_AUTH,
    D_GUARDRAIL_EDGE,
    D_RETRIEVAL_EDGE,
    D_ROUTER_EDGE,
    D_STALL,
    exponential,
    unit,
)
from tailburn.lab.world.serve import come, cpu_of_gateway, done_at
from tailburn.lab.world.stations import station_of


@lean
def send_on(s: Any, slot: Any, now: Any) -> None:
    """To the router of the pool that serves it, or straight to where the gateway picks."""
    calls = s.calls
    calls[slot, w.GATEWAY_OUT], calls[slot, w.STAGE] = now, w.AT_ROUTER
    calls[slot, w.GATE_TRIES] += 1
    calls[slot, w.ROUTE_TRIES] = 0
    if calls[slot, w.UPSTREAM_FIRST] < 0:
        calls[slot, w.UPSTREAM_FIRST] = now
    limit = s.k_gateway[calls[slot, w.GATEWAY], k.GATEWAY_TIMEOUT_S]
    if limit > 0.0:
        beside_try(s, slot, w.EV_GATE_LATE, now + ns(limit), calls[slot, w.GATE_TRIES])
    pool = s.routes[calls[slot, w.ROUTE], calls[slot, w.MODEL]]
    calls[slot, w.POOL] = pool
    router = s.pools[pool, w.P_ZONE]
    if router < 0:
        next_step(s, slot, w.EV_ROUTED, now + ns(s.k_pool[pool, k.ROUTER_WORK_S]))
        return
    here, key = s.gates[calls[slot, w.GATEWAY], w.G_ZONE], calls[slot, w.KEY]
    took = edge_ns(s, TO_ROUTER, here, router, key, D_ROUTER_EDGE)
    next_step(s, slot, w.EV_AT_ROUTER, now + took)


@lean
def _enrich(s: Any, slot: Any, now: Any) -> None:
    """Retrieval, where the request wants it."""
    calls = s.calls
    if calls[slot, w.RAG] == 1:
        calls[slot, w.RETRIEVAL_START] = now
        come(s, s.fixed[w.ST_RETRIEVAL], slot, now)
    else:
        send_on(s, slot, now)


@lean
def arrive(s: Any, slot: Any, now: Any) -> None:
    """The request is at its gateway: refused when it is too many, else to a worker."""
    calls, gateway = s.calls, s.calls[slot, w.GATEWAY]
    calls[slot, w.STAGE], calls[slot, w.GATEWAY_IN] = w.AT_GATEWAY, now
    s.gates[gateway, w.G_REQUESTS] += 1
    most = s.k_gateway[gateway, k.MAX_INFLIGHT]
    if most > 0.0 and s.gates[gateway, w.G_INFLIGHT] >= most:
        s.gates[gateway, w.G_REFUSED] += 1
        fail(s, slot, now, 429)
        return
    calls[slot, w.INFLIGHT] = 1
    s.gates[gateway, w.G_INFLIGHT] += 1
    come(s, station_of(s, w.ST_WORK, gateway), slot, now)


@lean
def worked(s: Any, slot: Any, now: Any) -> None:
    """Its head is read: authentication and the upstream's name, which may stall."""
    gateway, key = s.calls[slot, w.GATEWAY], s.calls[slot, w.KEY]
    done_at(s, slot, now)
    took = s.k_gateway[gateway, k.AUTH_S] * 1e9 * cpu_of_gateway(s, gateway)
    took *= 0.5 + 0.5 * exponential(key, D_AUTH)
    if unit(key, D_STALL) < s.k_gateway[gateway, k.STALL_SHARE]:
        took += s.k_gateway[gateway, k.STALL_S] * 1e9
    next_step(s, slot, w.EV_AUTHED, now + int(took))


@lean
def authed(s: Any, slot: Any, now: Any) -> None:
    """Who asks is known: the policy check, where the route has one."""
    calls = s.calls
    calls[slot, w.GATEWAY_AUTHED] = now
    if s.guarded[calls[slot, w.ROUTE]] == 1:
        calls[slot, w.GUARDRAIL_START] = now
        come(s, s.fixed[w.ST_GUARDRAIL], slot, now)
    else:
        _enrich(s, slot, now)


@lean
def _trip(s: Any, slot: Any, kind: Any, zone: Any, draw: Any) -> Any:
    """There and back between a gateway and what it calls."""
    here = s.gates[s.calls[slot, w.GATEWAY], w.G_ZONE]
    there = here if zone < 0 else zone
    key = s.calls[slot, w.KEY]
    out = edge_ns(s, kind, here, there, key, draw)
    return out + edge_ns(s, kind, here, there, key, draw + 1)


@lean
def guarded(s: Any, slot: Any, now: Any) -> None:
    """The policy check is done; its answer has a way back."""
    done_at(s, slot, now)
    end = now + _trip(s, slot, TO_GUARDRAIL, s.fixed[w.GUARDRAIL_ZONE], D_GUARDRAIL_EDGE)
    s.calls[slot, w.GUARDRAIL_END] = end
    next_step(s, slot, w.EV_CHECKED, end)


@lean
def checked(s: Any, slot: Any, now: Any) -> None:
    """The policy check's answer is at the gateway."""
    _enrich(s, slot, now)


@lean
def retrieved(s: Any, slot: Any, now: Any) -> None:
    """Documents are found; they have a way back."""
    done_at(s, slot, now)
    end = now + _trip(s, slot, TO_RETRIEVAL, s.fixed[w.RETRIEVAL_ZONE], D_RETRIEVAL_EDGE)
    s.calls[slot, w.RETRIEVAL_END] = end
    send_on(s, slot, end)
