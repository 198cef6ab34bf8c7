"""Clients: how a try begins, how it ends for them, and whether they try again."""

from typing import Any

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.records import Outcome
from tailburn.lab.world import knob_columns as k
from tailburn.lab.world import layout as w
from tailburn.lab.world.calls import again, beside, name, new_call, next_step, ns
from tailburn.lab.world.draws import D_BACKOFF, D_LEAVES, D_PATIENCE, normal, unit
from tailburn.lab.world.heap import push
from tailburn.lab.world.serve import come, serve_waiting
from tailburn.lab.world.stations import free_server, quit_queue, station_of

OK, ERROR = int(Outcome.OK), int(Outcome.ERROR)
TIMED_OUT, CANCELLED = int(Outcome.CLIENT_TIMEOUT), int(Outcome.CANCELLED)
REJECTED = int(Outcome.REJECTED)

PATIENCE_SIGMA = 0.8
NO_GATEWAY = 0


@lean
def ask(s: Any, row: Any, now: Any) -> None:
    """Row `row` of what was fed begins: the first try of a request."""
    calls, vary = s.calls, s.vary
    slot = new_call(s)
    for column in range(w.ASKED):
        calls[slot, column] = s.fed[row, column]
    calls[slot, w.REQUEST] = vary[w.REQUESTS]
    vary[w.REQUESTS] += 1
    s.people[calls[slot, w.CLIENT], w.C_REQUESTS] += 1
    name(s, slot, 0, 0)
    start(s, slot, now)


@lean_inlined
def _gateway_for(s: Any, client: Any, zone: Any) -> Any:
    """The load balancer: in turn, those of the client's zone first, then all that are up."""
    turn, count = s.people[client, w.C_TURN], s.fixed[w.N_GATEWAYS]
    s.people[client, w.C_TURN] = turn + 1
    other = -1
    for i in range(count):
        gateway = (client + turn + i) % count
        if s.k_gateway[gateway, k.GATEWAY_DOWN] > 0.5:
            continue
        if s.gates[gateway, w.G_ZONE] == zone:
            return gateway
        if other < 0:
            other = gateway
    return other if other >= 0 else NO_GATEWAY


@lean
def start(s: Any, slot: Any, now: Any) -> None:
    """The client begins a try: it waits for a slot of its pool, then connects."""
    calls = s.calls
    client, key = calls[slot, w.CLIENT], calls[slot, w.KEY]
    zone = s.people[client, w.C_ZONE]
    calls[slot, w.STAGE], calls[slot, w.CLIENT_START] = w.AT_CLIENT, now
    calls[slot, w.ZONE] = zone
    calls[slot, w.GATEWAY] = _gateway_for(s, client, zone)
    if s.k_client[client, k.STREAM_OFF] > 0.5:
        calls[slot, w.STREAMED] = 0
    timeout = s.k_client[client, k.TIMEOUT_S]
    if timeout > 0.0:
        beside(s, slot, w.EV_TIMEOUT, now + ns(timeout))
    if unit(key, D_LEAVES) < s.k_client[client, k.CANCEL_SHARE]:
        patience = s.k_client[client, k.PATIENCE_S] * _spread(key)
        beside(s, slot, w.EV_LEAVE, now + ns(patience))
    hedge = s.k_client[client, k.HEDGE_AFTER_S]
    if hedge > 0.0 and calls[slot, w.HEDGE] == 0:
        beside(s, slot, w.EV_HEDGE, now + ns(hedge))
    come(s, station_of(s, w.ST_CLIENT, client), slot, now)


@lean_inlined
def _spread(key: Any) -> Any:
    return 2.718281828 ** (PATIENCE_SIGMA * normal(key, D_PATIENCE))


@lean
def part(s: Any, slot: Any) -> Any:
    """A hedged pair is none any more; returns the other, -1 when there was none."""
    other = s.calls[slot, w.PARTNER]
    if other >= 0:
        s.calls[slot, w.PARTNER] = -1
        s.calls[other, w.PARTNER] = -1
    return other


@lean
def leave(s: Any, slot: Any, now: Any, outcome: Any) -> None:
    """The client is done with a try, one way or another; it may begin the next.

    Its slot of the pool is free again, and its connection too unless it hung up.
    """
    calls = s.calls
    client = calls[slot, w.CLIENT]
    calls[slot, w.LEFT], calls[slot, w.OUTCOME], calls[slot, w.CLIENT_END] = 1, outcome, now
    st = station_of(s, w.ST_CLIENT, client)
    if calls[slot, w.POOLED] == 1:
        calls[slot, w.POOLED] = 0
        if outcome in (OK, ERROR, REJECTED):
            s.people[client, w.C_IDLE] += 1
            s.people[client, w.C_IDLE_AT] = now
        free_server(s, st, now)
        serve_waiting(s, st, now)
    elif calls[slot, w.STATION] == st:
        quit_queue(s, slot, now)
    other = part(s, slot)
    if other >= 0:
        calls[slot, w.FOLLOWED] = 1
    wants = outcome in (ERROR, TIMED_OUT, REJECTED)
    if calls[slot, w.STATUS] == 400:
        wants = False
    if wants and other < 0 and calls[slot, w.ATTEMPT] < s.k_client[client, k.RETRY_MAX]:
        calls[slot, w.FOLLOWED] = 1
        _try_again(s, slot, client, now)


@lean
def _try_again(s: Any, slot: Any, client: Any, now: Any) -> None:
    """The next try, after a wait that doubles."""
    attempt = s.calls[slot, w.ATTEMPT]
    wait = s.k_client[client, k.BACKOFF_S] * 2.0**attempt
    wait = min(wait, s.k_client[client, k.BACKOFF_CAP_S])
    if s.k_client[client, k.RETRY_JITTER] > 0.5:
        wait *= 0.5 + 0.5 * unit(s.calls[slot, w.KEY], D_BACKOFF)
    new = again(s, slot, attempt + 1, 0)
    next_step(s, new, w.EV_START, now + ns(wait))


@lean
def hedge(s: Any, slot: Any, now: Any) -> None:
    """No first byte yet: a second try beside the first."""
    calls = s.calls
    new = again(s, slot, calls[slot, w.ATTEMPT], 1)
    calls[slot, w.PARTNER], calls[new, w.PARTNER] = new, slot
    what = (w.EV_START << w.KIND_SHIFT) | (calls[new, w.LIFE] << w.LIFE_SHIFT)
    push(s.heap, s.vary, now, what | (calls[new, w.STEP] << w.STEP_SHIFT) | new)
