"""The event loop: knobs, scrapes, arrivals and events, in the order of their instants."""

from typing import Any

from tailburn.lab.compiled import lean
from tailburn.lab.world import layout as w
from tailburn.lab.world.answer import leave_gateway
from tailburn.lab.world.calls import close
from tailburn.lab.world.client import ERROR, OK, REJECTED, ask, leave, start
from tailburn.lab.world.gateway import (
    arrive,
    authed,
    checked,
    guarded,
    retrieved,
    send_on,
    worked,
)
from tailburn.lab.world.hangup import abort, hang_up, lose_patience, maybe_hedge, timeout, won
from tailburn.lab.world.heap import drop_first
from tailburn.lab.world.replicas import apply, loaded, seen
from tailburn.lab.world.routing import at_router, refresh, routed
from tailburn.lab.world.scrape import scrape
from tailburn.lab.world.serving import at_engine, finish, handoff, step, tokenized
from tailburn.lab.world.upstream import gateway_late, router_late


@lean
def run(s: Any, until: Any) -> Any:
    """Go on until `until`, which is left to the next call; says why it came back.

    At one instant knobs come first, then scrapes, arrivals, and events by their kind, so
    that how a run is cut into calls changes nothing. When it comes back for room it has
    done nothing that the next call would do again.
    """
    vary = s.vary
    while True:
        plan = s.plan[vary[w.PLAN_NEXT], 0] if vary[w.PLAN_NEXT] < vary[w.PLAN_COUNT] else w.FOREVER
        at_scrape = vary[w.SCRAPE_NEXT]
        row = vary[w.FED_NEXT]
        arrival = s.fed[row, w.ARRIVAL] if row < vary[w.FED_COUNT] else w.FOREVER
        event = s.heap[0, 0] if vary[w.HEAP_SIZE] > 0 else w.FOREVER
        now = min(min(plan, at_scrape), min(arrival, event))
        if now >= until:
            vary[w.NOW] = until
            return w.REACHED
        full = _room(s)
        if full != w.REACHED:
            return full
        vary[w.NOW] = now
        if plan == now:
            at = vary[w.PLAN_NEXT]
            vary[w.PLAN_NEXT] = at + 1
            p = s.plan
            apply(s, p[at, 1], p[at, 2], p[at, 3], s.plan_value[at], now)
        elif at_scrape == now:
            scrape(s, now)
        elif arrival == now:
            vary[w.FED_NEXT] = row + 1
            ask(s, row, now)
        else:
            what = s.heap[0, 1]
            drop_first(s.heap, vary)
            vary[w.EVENTS] += 1
            handle(s, what, now)


@lean
def _room(s: Any) -> Any:
    """What has no room left for one more event; REACHED when all have."""
    vary, e = s.vary, s.engines
    calls = len(s.calls)
    if vary[w.FREE_DEPTH] < w.SPARE_CALLS:
        return w.FULL_CALLS
    if vary[w.HEAP_SIZE] + 2 * calls + w.SPARE_HEAP > len(s.heap):
        return w.FULL_HEAP
    if vary[w.OUT_ROWS] + calls > len(s.out):
        return w.FULL_OUT
    if vary[w.SCRAPE_ROWS] >= len(s.s_at):
        return w.FULL_SAMPLES
    if e.free[0] < w.SPARE_CALLS:
        return w.FULL_ENGINES
    if s.fixed[w.WANT_TOKENS] == 1 and vary[w.TOKENS_USED] + w.MOST_OUTPUT > len(e.tokens):
        return w.FULL_TOKENS
    return w.REACHED


@lean
def handle(s: Any, what: Any, now: Any) -> None:
    """One event: of a replica or pool, or of an attempt if it still concerns that one."""
    kind = what >> w.KIND_SHIFT
    slot = what & w.SLOT_MASK
    if kind == w.EV_ENGINE:
        step(s, slot, now)
    elif kind >= w.EV_REFRESH and kind <= w.EV_LOADED:
        if kind == w.EV_REFRESH:
            refresh(s, slot, now)
        elif kind == w.EV_SEEN:
            seen(s, slot, now)
        else:
            loaded(s, slot, now)
    elif (what >> w.LIFE_SHIFT) & w.LIFE_MASK == s.calls[slot, w.LIFE]:
        if kind >= w.EV_FIRST and kind <= w.EV_ABORT:
            _beside(s, slot, kind, now)
        elif kind == w.EV_GATE_LATE:
            gateway_late(s, slot, (what >> w.STEP_SHIFT) & w.STEP_MASK, now)
        elif kind == w.EV_ROUTE_LATE:
            router_late(s, slot, (what >> w.STEP_SHIFT) & w.STEP_MASK, now)
        elif (what >> w.STEP_SHIFT) & w.STEP_MASK == s.calls[slot, w.STEP]:
            _onward(s, slot, kind, now)


@lean
def _beside(s: Any, slot: Any, kind: Any, now: Any) -> None:
    """What happens beside an attempt's way."""
    if kind == w.EV_TIMEOUT:
        timeout(s, slot, now)
    elif kind == w.EV_LEAVE:
        lose_patience(s, slot, now)
    elif kind == w.EV_HEDGE:
        maybe_hedge(s, slot, now)
    elif kind == w.EV_FIRST:
        won(s, slot, now)
    elif kind == w.EV_HANGUP:
        hang_up(s, slot, now)
    else:
        abort(s, slot, now)


@lean
def _onward(s: Any, slot: Any, kind: Any, now: Any) -> None:
    """The next step of an attempt's way."""
    if kind == w.EV_START:
        start(s, slot, now)
    elif kind == w.EV_ARRIVE:
        arrive(s, slot, now)
    elif kind == w.EV_WORKED:
        worked(s, slot, now)
    elif kind == w.EV_AUTHED:
        authed(s, slot, now)
    elif kind == w.EV_GUARDED:
        guarded(s, slot, now)
    elif kind == w.EV_CHECKED:
        checked(s, slot, now)
    elif kind == w.EV_RETRIEVED:
        retrieved(s, slot, now)
    elif kind == w.EV_AGAIN:
        send_on(s, slot, now)
    elif kind == w.EV_AT_ROUTER or kind == w.EV_REROUTE:
        at_router(s, slot, now)
    elif kind == w.EV_ROUTED:
        routed(s, slot, now)
    elif kind == w.EV_AT_ENGINE:
        at_engine(s, slot, now)
    elif kind == w.EV_TOKENIZED:
        tokenized(s, slot, now)
    elif kind == w.EV_HANDOFF:
        handoff(s, slot, now)
    elif kind == w.EV_ANSWER:
        _answered(s, slot, now)
    else:
        _refused(s, slot, now)


@lean
def _answered(s: Any, slot: Any, now: Any) -> None:
    """The client has its whole answer; who still runs beside it is let go."""
    won(s, slot, now)
    s.calls[slot, w.STATUS] = 200
    leave(s, slot, now, OK)
    leave_gateway(s, slot)
    close(s, slot)


@lean
def _refused(s: Any, slot: Any, now: Any) -> None:
    """The client has an error, if it is still there."""
    status = s.calls[slot, w.FAILED]
    if s.calls[slot, w.LEFT] == 0:
        s.calls[slot, w.STATUS] = status
        leave(s, slot, now, REJECTED if status == 429 or status == 503 else ERROR)
    finish(s, slot)
