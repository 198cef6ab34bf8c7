"""The way of an answer back to the client, and of an error."""

from typing import Any

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import knob_columns as k
from tailburn.lab.world import layout as w
from tailburn.lab.world.calls import (
    GATEWAY_TO_ENGINE,
    ROUTER_TO_ENGINE,
    TO_GATEWAY,
    TO_ROUTER,
    beside,
    call_off,
    edge_ns,
    next_step,
    ns,
)
from tailburn.lab.world.draws import D_FIRST, D_LAST, D_REFUSE, key_of
from tailburn.lab.world.serve import cpu_of_gateway

CHUNK_BYTES = 250
"""Of one streamed token, as the SSE chunk of a chat completion."""
PASS_ON_NS = 50_000.0
"""What a gateway's CPU needs to pass a chunk on."""
SOCKET_TOKENS = 260
"""Chunks that a socket's buffers hold for a reader that is slow."""


@lean_inlined
def _gateway_zone(s: Any, slot: Any) -> Any:
    return s.gates[s.calls[slot, w.GATEWAY], w.G_ZONE]


@lean
def to_gateway(s: Any, slot: Any, when: Any, draw: Any, column: Any) -> Any:
    """When what leaves the engine at `when` is at the gateway.

    Notes in a column when it left the router; -1: nowhere.
    """
    calls, key = s.calls, s.calls[slot, w.KEY]
    here, router = _gateway_zone(s, slot), s.pools[calls[slot, w.POOL], w.P_ZONE]
    there = s.replicas[calls[slot, w.REPLICA], w.R_ZONE]
    if router < 0:
        return when + edge_ns(s, GATEWAY_TO_ENGINE, here, there, key, draw)
    when += edge_ns(s, ROUTER_TO_ENGINE, router, there, key, draw)
    if column >= 0:
        calls[slot, column] = when
    return when + edge_ns(s, TO_ROUTER, here, router, key, draw + 1)


@lean_inlined
def to_client(s: Any, slot: Any, when: Any, draw: Any) -> Any:
    """When what leaves the gateway at `when` is with the client."""
    calls = s.calls
    took = edge_ns(s, TO_GATEWAY, calls[slot, w.ZONE], _gateway_zone(s, slot),
                   calls[slot, w.KEY], draw)  # fmt: skip
    return when + took + ns(s.k_client[calls[slot, w.CLIENT], k.LOOP_DELAY_S])


@lean_inlined
def _held_tokens(s: Any, slot: Any) -> Any:
    """Tokens that the gateway holds back before it sends any; 1: none but the first."""
    held = s.k_gateway[s.calls[slot, w.GATEWAY], k.BUFFER_BYTES]
    return max(int(held + CHUNK_BYTES - 1) // CHUNK_BYTES, 1)


@lean
def way_back(s: Any, slot: Any) -> None:
    """Fill in when first and last byte pass router, gateway and client.

    The engine's own instants are there. What the gateway holds back goes out when the
    token that fills its buffer comes, tokens being spread evenly between first and last.
    """
    calls = s.calls
    gateway, client = calls[slot, w.GATEWAY], calls[slot, w.CLIENT]
    first, last = calls[slot, w.ENGINE_FIRST], calls[slot, w.ENGINE_LAST]
    end, made = calls[slot, w.ENGINE_END], calls[slot, w.DONE_TOKENS]
    work = int(PASS_ON_NS * cpu_of_gateway(s, gateway))
    at_last = to_gateway(s, slot, end, D_LAST, w.ROUTER_END) + work
    if calls[slot, w.STREAMED] == 1:
        at_first = min(to_gateway(s, slot, first, D_FIRST, w.ROUTER_FIRST) + work, at_last)
        if calls[slot, w.ROUTER_FIRST] > calls[slot, w.ROUTER_END]:
            calls[slot, w.ROUTER_FIRST] = calls[slot, w.ROUTER_END]
        held = _held_tokens(s, slot)
        if held > 1:
            share = (held - 1.0) / max(made - 1.0, 1.0)
            at_first += int((last - first) * share)
            if held >= made:
                at_first = at_last
            at_first = min(at_first, at_last)
        calls[slot, w.GATEWAY_FIRST] = at_first
        calls[slot, w.CLIENT_FIRST] = to_client(s, slot, at_first, D_FIRST + 2)
        at_end = max(to_client(s, slot, at_last, D_LAST + 2), calls[slot, w.CLIENT_FIRST])
        speed = s.k_client[client, k.READ_TOKENS_S]
        if speed > 0.0:
            at_end = max(at_end, calls[slot, w.CLIENT_FIRST] + int(made / speed * 1e9))
            slack = int(SOCKET_TOKENS / speed * 1e9)
            at_last = max(at_last, at_end - slack)
        calls[slot, w.CLIENT_LAST] = max(at_end - (end - last), calls[slot, w.CLIENT_FIRST])
    else:
        if calls[slot, w.ROUTER_END] >= 0:
            calls[slot, w.ROUTER_FIRST] = calls[slot, w.ROUTER_END]
        calls[slot, w.GATEWAY_FIRST] = at_last
        at_end = to_client(s, slot, at_last, D_LAST + 2)
        calls[slot, w.CLIENT_FIRST] = calls[slot, w.CLIENT_LAST] = at_end
    calls[slot, w.GATEWAY_LAST] = at_last
    calls[slot, w.CLIENT_END] = at_end


@lean
def made_so_far(s: Any, slot: Any) -> Any:
    """Output tokens that the engine has made of an attempt."""
    e, inside = s.engines, s.calls[slot, w.SLOT]
    if inside < 0:
        return 0
    if e.seq[inside, c.STATE] != c.RUNNING:
        return e.seq[inside, c.MADE]
    r = e.seq[inside, c.REPLICA]
    for i in range(e.rep[r, c.RUNNING_COUNT]):
        if e.run[r, c.RUN_SEQ, i] == inside:
            return e.seq[inside, c.OUTPUT] - e.run[r, c.RUN_DUE, i]
    return 0


@lean
def first_by(s: Any, slot: Any) -> Any:
    """When the first byte is with the client, as far as it is known; -1 it is not under way."""
    calls = s.calls
    if calls[slot, w.STAGE] == w.ANSWERED:
        return calls[slot, w.CLIENT_FIRST]
    inside = calls[slot, w.SLOT]
    if inside < 0 or calls[slot, w.STREAMED] == 0:
        return -1
    made = s.engines.seq[inside, c.PREFILL_END_NS]
    if made < 0 or made_so_far(s, slot) < _held_tokens(s, slot):
        return -1
    return first_after(s, slot, made)


@lean
def first_after(s: Any, slot: Any, made: Any) -> Any:
    """When a first token made at `made` is with the client, nothing being held back."""
    r = s.calls[slot, w.REPLICA]
    work = int(PASS_ON_NS * cpu_of_gateway(s, s.calls[slot, w.GATEWAY]))
    left = made + ns(s.k_replica[r, k.DETOKENIZER_S])
    return to_client(s, slot, to_gateway(s, slot, left, D_FIRST, -1) + work, D_FIRST + 2)


@lean
def leave_gateway(s: Any, slot: Any) -> None:
    """The gateway counts the attempt no more."""
    if s.calls[slot, w.INFLIGHT] == 1:
        s.calls[slot, w.INFLIGHT] = 0
        s.gates[s.calls[slot, w.GATEWAY], w.G_INFLIGHT] -= 1


@lean
def _forget_upstream(s: Any, slot: Any, router: Any) -> None:
    """What came of an upstream call that failed is taken back, from the router or the engine on."""
    calls = s.calls
    calls[slot, w.AVOID] = calls[slot, w.REPLICA]
    for column in range(w.ROUTER_OUT if router else w.ROUTER_IN, w.GATEWAY_FIRST):
        calls[slot, column] = w.NEVER
    for column in (w.REPLICA, w.PREFILL_REPLICA, w.ABORTED, w.ITL_MAX, w.TOKENS_AT):
        calls[slot, column] = w.NEVER
    for column in (w.CACHED, w.DONE_TOKENS, w.PREEMPTIONS, w.DECODE_STEPS):
        calls[slot, column] = 0
    # Another call meets other delays.
    calls[slot, w.KEY] = key_of(calls[slot, w.KEY], calls[slot, w.TRIES])
    calls[slot, w.STAGE] = w.AT_ROUTER


@lean
def _tried_again(s: Any, slot: Any, at_router: Any, at_gateway: Any) -> Any:
    """An upstream call failed: whether router or gateway calls again, unseen by the client.

    Not when its client is gone, nor when some of a stream has been passed on already.
    """
    calls = s.calls
    if calls[slot, w.LEFT] == 1:
        return False
    if calls[slot, w.ENGINE_FIRST] >= 0 and calls[slot, w.STREAMED] == 1:
        return False
    of_router = s.k_pool[calls[slot, w.POOL], k.ROUTER_RETRIES]
    if at_router >= 0 and calls[slot, w.ROUTE_TRIES] <= of_router:
        _forget_upstream(s, slot, True)
        next_step(s, slot, w.EV_REROUTE, at_router)
        return True
    if calls[slot, w.GATE_TRIES] <= s.k_gateway[calls[slot, w.GATEWAY], k.GATEWAY_RETRIES]:
        _forget_upstream(s, slot, False)
        next_step(s, slot, w.EV_AGAIN, at_gateway)
        return True
    return False


@lean
def fail(s: Any, slot: Any, now: Any, status: Any) -> None:
    """An error begins its way to the client, from where the attempt is.

    Router or gateway may try again instead: what a server did wrong, not what was asked wrong.
    """
    calls, key = s.calls, s.calls[slot, w.KEY]
    gateway, when, at_router = calls[slot, w.GATEWAY], now, -1
    stage = calls[slot, w.STAGE]
    router = -1
    if calls[slot, w.POOL] >= 0:
        router = s.pools[calls[slot, w.POOL], w.P_ZONE]
    here = s.gates[gateway, w.G_ZONE]
    if stage != w.AT_GATEWAY and calls[slot, w.REPLICA] >= 0:
        when = to_gateway(s, slot, now, D_REFUSE, w.ROUTER_END)
    elif stage != w.AT_GATEWAY and router >= 0:
        calls[slot, w.ROUTER_END] = now
        when += edge_ns(s, TO_ROUTER, here, router, key, D_REFUSE)
    if router >= 0:
        at_router = calls[slot, w.ROUTER_END]
    call_off(s, slot)
    if stage != w.AT_GATEWAY and status >= 500 and _tried_again(s, slot, at_router, when):
        return
    _tell_error(s, slot, when, status)


@lean
def late_upstream(s: Any, slot: Any, now: Any, by_router: Any) -> None:
    """Router or gateway has given an upstream call up: it tries again, or says 504."""
    calls = s.calls
    at_router, when = -1, now
    if by_router:
        at_router = now
        here, router = _gateway_zone(s, slot), s.pools[calls[slot, w.POOL], w.P_ZONE]
        calls[slot, w.ROUTER_END] = now
        when += edge_ns(s, TO_ROUTER, here, router, calls[slot, w.KEY], D_REFUSE)
    if not _tried_again(s, slot, at_router, when):
        _tell_error(s, slot, when, 504)


@lean
def _tell_error(s: Any, slot: Any, when: Any, status: Any) -> None:
    """The gateway passes an error on to the client."""
    calls = s.calls
    calls[slot, w.GATEWAY_LAST], calls[slot, w.FAILED] = when, status
    calls[slot, w.STAGE] = w.ANSWERED
    s.gates[calls[slot, w.GATEWAY], w.G_ERRORS] += 1
    next_step(s, slot, w.EV_REFUSED, to_client(s, slot, when, D_REFUSE + 2))


@lean
def tell_first(s: Any, slot: Any, made: Any) -> None:
    """One of a hedged pair has its first token: when it is with the client, the race ends.

    Who waits for whole answers sees none before the end.
    """
    if s.calls[slot, w.STREAMED] == 1:
        beside(s, slot, w.EV_FIRST, first_after(s, slot, made))
