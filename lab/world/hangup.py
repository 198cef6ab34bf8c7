"""Clients that go before their answer has come: time-outs, lost patience, lost races."""

from typing import Any

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.world import knob_columns as k
from tailburn.lab.world import layout as w
from tailburn.lab.world.answer import first_by, leave_gateway
from tailburn.lab.world.calls import (
    GATEWAY_TO_ENGINE,
    ROUTER_TO_ENGINE,
    TO_GATEWAY,
    TO_ROUTER,
    beside,
    call_off,
    close,
    edge_ns,
)
from tailburn.lab.world.client import CANCELLED, TIMED_OUT, hedge, leave, part
from tailburn.lab.world.draws import D_ABORT, D_ABORT_LOST, unit
from tailburn.lab.world.engine import engine_abort, engine_extend
from tailburn.lab.world.routing import leave_router
from tailburn.lab.world.serve import done_at
from tailburn.lab.world.serving import after_engine, finish
from tailburn.lab.world.stations import quit_queue


@lean
def timeout(s: Any, slot: Any, now: Any) -> None:
    """The client's time-out ends: it goes when not even a first byte is there."""
    if s.calls[slot, w.LEFT] == 0:
        first = first_by(s, slot)
        if first < 0 or first > now:
            go(s, slot, now, TIMED_OUT)


@lean
def lose_patience(s: Any, slot: Any, now: Any) -> None:
    """The user leaves, whatever has come by now."""
    if s.calls[slot, w.LEFT] == 0:
        go(s, slot, now, CANCELLED)


@lean
def maybe_hedge(s: Any, slot: Any, now: Any) -> None:
    """A second try beside this one, when no first byte is there."""
    calls = s.calls
    if calls[slot, w.LEFT] == 0 and calls[slot, w.PARTNER] < 0 and calls[slot, w.FAILED] <= 0:
        first = first_by(s, slot)
        if first < 0 or first > now:
            hedge(s, slot, now)


@lean
def won(s: Any, slot: Any, now: Any) -> None:
    """This one's first byte is there: the other of the pair is let go."""
    if s.calls[slot, w.LEFT] == 0:
        other = part(s, slot)
        if other >= 0 and s.calls[other, w.LEFT] == 0:
            s.calls[other, w.FOLLOWED] = 1
            go(s, other, now, CANCELLED)


@lean
def go(s: Any, slot: Any, now: Any, outcome: Any) -> None:
    """The client goes; its gateway hears of it one edge later."""
    calls = s.calls
    stage = calls[slot, w.STAGE]
    leave(s, slot, now, outcome)
    if stage == w.AT_CLIENT or stage == w.AT_NOTHING:
        call_off(s, slot)
        close(s, slot)
        return
    zone, there = calls[slot, w.ZONE], s.gates[calls[slot, w.GATEWAY], w.G_ZONE]
    when = now + edge_ns(s, TO_GATEWAY, zone, there, calls[slot, w.KEY], D_ABORT)
    if stage == w.ANSWERED:
        call_off(s, slot)
        calls[slot, w.GONE] = when
        finish(s, slot)
    else:
        beside(s, slot, w.EV_HANGUP, when)


@lean
def hang_up(s: Any, slot: Any, now: Any) -> None:
    """The gateway hears that the client has gone, and tells those behind it if it can."""
    calls, key = s.calls, s.calls[slot, w.KEY]
    gateway = calls[slot, w.GATEWAY]
    calls[slot, w.GONE] = now
    s.gates[gateway, w.G_HUNG_UP] += 1
    leave_gateway(s, slot)
    if calls[slot, w.STAGE] == w.AT_GATEWAY:
        let_go(s, slot, now)
        close(s, slot)
        return
    if unit(key, D_ABORT_LOST) < s.k_gateway[gateway, k.ABORT_LOST]:
        _run_on(s, slot)
        return
    here, router = s.gates[gateway, w.G_ZONE], s.pools[calls[slot, w.POOL], w.P_ZONE]
    r, took = calls[slot, w.ON], 0
    if router >= 0:
        took += edge_ns(s, TO_ROUTER, here, router, key, D_ABORT + 1)
    if r >= 0:
        there = s.replicas[r, w.R_ZONE]
        if router >= 0:
            took += edge_ns(s, ROUTER_TO_ENGINE, router, there, key, D_ABORT + 2)
        else:
            took += edge_ns(s, GATEWAY_TO_ENGINE, here, there, key, D_ABORT + 2)
    beside(s, slot, w.EV_ABORT, now + took)


@lean_inlined
def _run_on(s: Any, slot: Any) -> None:
    """An engine that stops by its client alone decodes what nobody reads to its limit."""
    calls, inside = s.calls, s.calls[slot, w.SLOT]
    runs_on = inside >= 0 and s.k_replica[calls[slot, w.ON], k.ORPHANS_RUN_ON] > 0.5
    if runs_on and engine_extend(s.engines, inside, calls[slot, w.MAX_TOKENS]):
        calls[slot, w.TOKENS_AT] = -1


@lean
def let_go(s: Any, slot: Any, now: Any) -> None:
    """Out of whatever station it waits in or is served by; nothing is next for it."""
    calls = s.calls
    call_off(s, slot)
    if calls[slot, w.STATION] >= 0:
        if calls[slot, w.SERVED] == 1:
            done_at(s, slot, now)
        else:
            quit_queue(s, slot, now)


@lean
def abort(s: Any, slot: Any, now: Any) -> None:
    """Router and engine hear of it: the work ends where it is."""
    calls, stage = s.calls, s.calls[slot, w.STAGE]
    if stage == w.ANSWERED:
        return
    if stage == w.AT_ENGINE or stage == w.AT_HANDOFF:
        calls[slot, w.ABORTED] = now
        inside = calls[slot, w.SLOT]
        if inside < 0:
            inside = calls[slot, w.PREFILL_SLOT]
        if stage == w.AT_HANDOFF:
            call_off(s, slot)
        r = calls[slot, w.ON]
        engine_abort(s.engines, inside, now)
        after_engine(s, r, now)
        return
    if stage == w.AT_TOKENIZER:
        calls[slot, w.ABORTED] = calls[slot, w.ENGINE_END] = now
    let_go(s, slot, now)
    leave_router(s, slot, now)
    finish(s, slot)
