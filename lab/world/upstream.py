"""Upstream calls that a gateway or router gives up on, unseen by the client."""

from typing import Any

from tailburn.lab.compiled import lean
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import knob_columns as k
from tailburn.lab.world import layout as w
from tailburn.lab.world.answer import late_upstream
from tailburn.lab.world.draws import D_ABORT_LOST, unit
from tailburn.lab.world.engine import engine_abort
from tailburn.lab.world.hangup import let_go
from tailburn.lab.world.routing import leave_router
from tailburn.lab.world.serving import after_engine, read, read_start


@lean
def _waits(s: Any, slot: Any) -> Any:
    """Whether no token has come of its upstream call; who waits for a whole answer has none."""
    calls, stage = s.calls, s.calls[slot, w.STAGE]
    if calls[slot, w.LEFT] == 1 or stage < w.AT_ROUTER or stage > w.AT_HANDOFF:
        return False
    inside = calls[slot, w.SLOT]
    if inside < 0 or calls[slot, w.STREAMED] == 0:
        return True
    return s.engines.seq[inside, c.PREFILL_END_NS] < 0


@lean
def _orphan(s: Any, slot: Any, inside: Any, now: Any, lost: Any, decodes: Any) -> None:
    """An engine's slot belongs to nobody from now on; it ends unless the hang-up is lost."""
    seq, rep = s.engines.seq, s.engines.rep
    if inside < 0:
        return
    r = seq[inside, c.REPLICA]
    seq[inside, c.OWNER] = -1
    if seq[inside, c.TOKENS_AT] >= 0:
        seq[inside, c.TOKENS_AT] = -1
        if seq[inside, c.STATE] == c.RUNNING:
            rep[r, c.TRACED] -= 1
    if not lost:
        engine_abort(s.engines, inside, now)
    if decodes:
        read(s, slot, inside, now)
    elif s.calls[slot, w.SCHEDULED] < 0:
        read_start(s, slot, inside, now)
    if not lost:
        after_engine(s, r, now)


@lean
def _drop(s: Any, slot: Any, now: Any) -> None:
    """Take the attempt out of wherever its upstream call has come to."""
    calls = s.calls
    inside, held = calls[slot, w.SLOT], calls[slot, w.PREFILL_SLOT]
    share = s.k_gateway[calls[slot, w.GATEWAY], k.ABORT_LOST]
    lost = held < 0 and unit(calls[slot, w.KEY], D_ABORT_LOST) < share
    calls[slot, w.SLOT] = calls[slot, w.PREFILL_SLOT] = -1
    let_go(s, slot, now)
    leave_router(s, slot, now)
    _orphan(s, slot, inside, now, lost, True)
    _orphan(s, slot, held, now, False, False)
    if calls[slot, w.ENGINE_IN] >= 0:
        calls[slot, w.ENGINE_END] = max(calls[slot, w.ENGINE_LAST], now)
        if not lost:
            calls[slot, w.ABORTED] = now


@lean
def gateway_late(s: Any, slot: Any, number: Any, now: Any) -> None:
    """The gateway's upstream call has had its time."""
    if s.calls[slot, w.GATE_TRIES] & w.STEP_MASK == number and _waits(s, slot):
        _drop(s, slot, now)
        late_upstream(s, slot, now, False)


@lean
def router_late(s: Any, slot: Any, number: Any, now: Any) -> None:
    """The router's call to a replica has had its time."""
    if s.calls[slot, w.TRIES] & w.STEP_MASK == number and _waits(s, slot):
        _drop(s, slot, now)
        late_upstream(s, slot, now, True)
