"""At an engine: its front end, the tokenizer, the scheduler, what comes out of it."""

from typing import Any

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import knob_columns as k
from tailburn.lab.world import layout as w
from tailburn.lab.world.answer import fail, leave_gateway, tell_first, way_back
from tailburn.lab.world.calls import TO_DECODE, close, edge_ns, next_step, ns, of_thing
from tailburn.lab.world.draws import D_DETOKENIZE, D_ENGINE_EDGE, exponential
from tailburn.lab.world.engine import (
    FLAG_FIRST,
    FLAG_SPLIT,
    engine_abort,
    engine_add,
    engine_forget,
    engine_step,
)
from tailburn.lab.world.routing import count_off, count_on, leave_router, pick
from tailburn.lab.world.serve import come, done_at
from tailburn.lab.world.stations import station_of

UNIQUE = 1 << 61
"""Above it lie the ids of contexts that belong to one request alone."""
END_NS = 100_000
"""From the last token to the end of the engine's HTTP answer."""


@lean
def at_engine(s: Any, slot: Any, now: Any) -> None:
    """The request is at an engine's front end: refused when that is not there."""
    calls, r = s.calls, s.calls[slot, w.ON]
    state = s.replicas[r, w.R_STATE]
    waits = s.k_pool[calls[slot, w.POOL], k.ROUTE_TO_LOADING] > 0.5
    if state == w.DOWN or (state == w.LOADING_STATE and not waits):
        s.replicas[r, w.R_REFUSED] += 1
        leave_router(s, slot, now)
        fail(s, slot, now, 503)
        return
    calls[slot, w.EPOCH] = s.replicas[r, w.R_EPOCH]
    calls[slot, w.STAGE], calls[slot, w.ENGINE_IN] = w.AT_TOKENIZER, now
    come(s, station_of(s, w.ST_TOKENIZER, r), slot, now)


@lean
def tokenized(s: Any, slot: Any, now: Any) -> None:
    """Tokens are made: into the scheduler, of the prefill side where the pool is split."""
    calls, r = s.calls, s.calls[slot, w.ON]
    done_at(s, slot, now)
    calls[slot, w.TOKENIZE_END], calls[slot, w.STAGE] = now, w.AT_ENGINE
    if s.replicas[r, w.R_STATE] == w.LOADING_STATE:
        calls[slot, w.MODEL_START] = max(s.replicas[r, w.R_LOAD_START], calls[slot, w.ENGINE_IN])
    split = s.pools[calls[slot, w.POOL], w.P_PREFILL] >= 0
    inside = _put_in(s, slot, r, now, -1, FLAG_SPLIT if split else 0)
    calls[slot, w.PREFILL_SLOT if split else w.SLOT] = inside
    after_engine(s, r, now)


@lean
def _put_in(s: Any, slot: Any, r: Any, now: Any, source: Any, flags: Any) -> Any:
    """Into a replica's scheduler; returns the slot there."""
    calls = s.calls
    tail = calls[slot, w.SESSION]
    if tail == 0:
        tail = UNIQUE + calls[slot, w.REQUEST]
    races = s.k_client[calls[slot, w.CLIENT], k.HEDGE_AFTER_S] > 0.0
    if (races or calls[slot, w.PARTNER] >= 0) and flags & FLAG_SPLIT == 0:
        flags |= FLAG_FIRST
    output = min(calls[slot, w.OUTPUT], calls[slot, w.MAX_TOKENS])
    if s.fixed[w.WANT_TOKENS] == 1 and flags & FLAG_SPLIT == 0:
        calls[slot, w.TOKENS_AT] = s.vary[w.TOKENS_USED]
        s.vary[w.TOKENS_USED] += output
    structured = 0 if source >= 0 else calls[slot, w.STRUCTURED]
    return engine_add(
        s.engines, r, now, slot, calls[slot, w.PROMPT], output, calls[slot, w.PREFIX],
        calls[slot, w.PREFIX_TOKENS], tail, calls[slot, w.LORA], calls[slot, w.PRIORITY],
        structured, source, flags, -1 if flags & FLAG_SPLIT else calls[slot, w.TOKENS_AT],
    )  # fmt: skip


@lean_inlined
def due(s: Any, r: Any) -> None:
    """See to it that a replica's next step has its event."""
    when = s.engines.rep[r, c.NEXT_NS]
    if when >= 0 and when != s.replicas[r, w.R_DUE]:
        s.replicas[r, w.R_DUE] = when
        of_thing(s, r, w.EV_ENGINE, when)


@lean
def step(s: Any, r: Any, now: Any) -> None:
    """A replica's step is due, unless that has changed."""
    if s.replicas[r, w.R_DUE] == now:
        s.replicas[r, w.R_DUE] = -1
    if s.engines.rep[r, c.NEXT_NS] == now:
        engine_step(s.engines, r, now)
        after_engine(s, r, now)


@lean
def after_engine(s: Any, r: Any, now: Any) -> None:
    """Handle what an engine has told, and note when it is due next."""
    events = s.engines.events
    at = 1
    while at <= events[0, 0]:
        kind, inside = events[at, 0], events[at, 1]
        owner = s.engines.seq[inside, c.OWNER]
        at += 1
        if owner < 0:
            engine_forget(s.engines, inside)
            due(s, s.engines.seq[inside, c.REPLICA])
        elif kind == c.EVENT_DONE:
            home = s.engines.seq[inside, c.REPLICA]
            _done(s, owner, inside, now)
            if home != r:
                due(s, home)
        elif kind == c.EVENT_FIRST:
            tell_first(s, owner, now)
        else:
            _held(s, owner, now)
    events[0, 0] = 0
    due(s, r)


@lean
def _held(s: Any, slot: Any, now: Any) -> None:
    """The prefill side is done: on to the decode side."""
    calls, e = s.calls, s.engines
    inside = calls[slot, w.PREFILL_SLOT]
    read_start(s, slot, inside, now)
    calls[slot, w.STAGE] = w.AT_HANDOFF
    count_off(s, slot)
    pool = calls[slot, w.POOL]
    r = pick(s, slot, pool)
    if r < 0:
        s.pools[pool, w.P_UNSERVED] += 1
        engine_abort(e, inside, now)
        return
    count_on(s, slot, r)
    here = s.replicas[calls[slot, w.PREFILL_REPLICA], w.R_ZONE]
    took = edge_ns(
        s, TO_DECODE, here, s.replicas[r, w.R_ZONE], calls[slot, w.KEY], D_ENGINE_EDGE + 300
    )
    next_step(s, slot, w.EV_HANDOFF, now + took + ns(s.k_pool[pool, k.HANDOFF_S]))


@lean
def handoff(s: Any, slot: Any, now: Any) -> None:
    """The decode side has the request and pulls its KV."""
    calls, r, source = s.calls, s.calls[slot, w.ON], s.calls[slot, w.PREFILL_SLOT]
    if s.replicas[r, w.R_STATE] != w.UP:
        s.replicas[r, w.R_REFUSED] += 1
        if source >= 0:
            engine_abort(s.engines, source, now)
            after_engine(s, calls[slot, w.PREFILL_REPLICA], now)
        return
    calls[slot, w.REPLICA], calls[slot, w.STAGE] = r, w.AT_ENGINE
    calls[slot, w.SLOT] = _put_in(s, slot, r, now, source, 0)
    after_engine(s, r, now)


@lean_inlined
def _by(when: Any, now: Any) -> Any:
    """An instant that was planned; -1 when the attempt ended before it."""
    return when if when <= now else -1


@lean
def read_start(s: Any, slot: Any, inside: Any, now: Any) -> None:
    """What happened in an engine up to the first token, by now."""
    calls, seq = s.calls, s.engines.seq
    added, seen = seq[inside, c.ADDED_NS], seq[inside, c.QUEUED_NS]
    calls[slot, w.QUEUED] = seen if seen >= 0 else added
    calls[slot, w.SCHEDULED] = seq[inside, c.SCHEDULED_NS]
    calls[slot, w.PREFILL_END] = seq[inside, c.PREFILL_END_NS]
    calls[slot, w.KV_LOAD_START] = seq[inside, c.LOAD_START_NS]
    calls[slot, w.KV_LOAD_END] = _by(seq[inside, c.LOAD_END_NS], now)
    calls[slot, w.LORA_START] = _by(seq[inside, c.LORA_START_NS], now)
    calls[slot, w.LORA_END] = _by(seq[inside, c.LORA_END_NS], now)
    calls[slot, w.CACHED] = seq[inside, c.CACHED]
    calls[slot, w.PREEMPTIONS] += seq[inside, c.PREEMPTIONS]


@lean
def _done(s: Any, slot: Any, inside: Any, now: Any) -> None:
    """An engine is done with one of an attempt's slots."""
    calls, seq = s.calls, s.engines.seq
    kind = seq[inside, c.END_KIND]
    if inside == calls[slot, w.PREFILL_SLOT]:
        calls[slot, w.PREFILL_SLOT] = -1
        engine_end = kind != c.FINISHED and calls[slot, w.SLOT] < 0
        if engine_end:
            if calls[slot, w.STAGE] == w.AT_ENGINE:
                read_start(s, slot, inside, now)
            _over(s, slot, kind, now)
        engine_forget(s.engines, inside)
        return
    read(s, slot, inside, now)
    calls[slot, w.SLOT] = -1
    engine_forget(s.engines, inside)
    held = calls[slot, w.PREFILL_SLOT]
    if held >= 0:  # its prefill waits for a decode side that will not come
        calls[slot, w.PREFILL_SLOT] = -1
        seq[held, c.OWNER] = -1
        engine_abort(s.engines, held, now)
    _over(s, slot, kind, now)


@lean
def read(s: Any, slot: Any, inside: Any, now: Any) -> None:
    """All that happened in the engine that decoded."""
    calls, seq = s.calls, s.engines.seq
    r = seq[inside, c.REPLICA]
    first, split = seq[inside, c.PREFILL_END_NS], calls[slot, w.PREFILL_REPLICA] >= 0
    if split:
        calls[slot, w.KV_TRANSFER_START] = seq[inside, c.TRANSFER_START_NS]
        calls[slot, w.KV_TRANSFER_END] = _by(seq[inside, c.TRANSFER_END_NS], now)
        calls[slot, w.PREEMPTIONS] += seq[inside, c.PREEMPTIONS]
    else:
        read_start(s, slot, inside, now)
    calls[slot, w.DONE_TOKENS] = seq[inside, c.MADE]
    calls[slot, w.ITL_MAX] = seq[inside, c.ITL_MAX_NS] if seq[inside, c.MADE] > 1 else -1
    calls[slot, w.DECODE_STEPS] = seq[inside, c.DECODE_STEPS]
    if calls[slot, w.MODEL_START] >= 0:
        calls[slot, w.MODEL_END] = min(s.replicas[r, w.R_READY], now)
    if first >= 0:
        took = s.k_replica[r, k.DETOKENIZER_S] * 1e9
        took *= s.k_host[s.replicas[r, w.R_HOST], k.CPU_FACTOR]
        took = int(took * (0.5 + 0.5 * exponential(calls[slot, w.KEY], D_DETOKENIZE)))
        calls[slot, w.ENGINE_FIRST] = first + took
        calls[slot, w.ENGINE_LAST] = max(seq[inside, c.LAST_NS], first) + took


@lean
def _over(s: Any, slot: Any, kind: Any, now: Any) -> None:
    """No engine has the attempt any more: its answer, or an error, goes back."""
    calls = s.calls
    leave_router(s, slot, now)
    last = calls[slot, w.ENGINE_LAST]
    calls[slot, w.ENGINE_END] = max(last, now) + (END_NS if kind == c.FINISHED else 0)
    if calls[slot, w.LEFT] == 1:
        calls[slot, w.STAGE] = w.ANSWERED
        finish(s, slot)
    elif kind == c.FINISHED:
        calls[slot, w.STAGE] = w.ANSWERED
        way_back(s, slot)
        next_step(s, slot, w.EV_ANSWER, calls[slot, w.CLIENT_END])
    else:
        fail(s, slot, now, 400 if kind == c.REFUSED else 502)


@lean
def finish(s: Any, slot: Any) -> None:
    """Client and engine are done with an attempt whose client left early, or got an error.

    What would have come after that did not happen: those instants are taken back.
    """
    calls = s.calls
    left, gone = calls[slot, w.CLIENT_END], calls[slot, w.GONE]
    failed = calls[slot, w.FAILED] > 0
    begun = calls[slot, w.ENGINE_FIRST] >= 0 and calls[slot, w.CLIENT_LAST] < 0
    if begun and not (failed and calls[slot, w.STREAMED] == 0):
        router_end, gateway_last = calls[slot, w.ROUTER_END], calls[slot, w.GATEWAY_LAST]
        way_back(s, slot)
        if failed:
            calls[slot, w.ROUTER_END], calls[slot, w.GATEWAY_LAST] = router_end, gateway_last
    calls[slot, w.CLIENT_END] = left
    if gone < 0:
        gone = left
    _take_back(s, slot, w.CLIENT_FIRST, w.CLIENT_LAST, left)
    _take_back(s, slot, w.GATEWAY_FIRST, w.GATEWAY_LAST, gone)
    if calls[slot, w.ABORTED] >= 0:
        _take_back(s, slot, w.ROUTER_FIRST, w.ROUTER_END, calls[slot, w.ABORTED])
    if calls[slot, w.CLIENT_FIRST] >= 0:
        calls[slot, w.STATUS] = 200
    leave_gateway(s, slot)
    close(s, slot)


@lean_inlined
def _take_back(s: Any, slot: Any, first: Any, last: Any, until: Any) -> None:
    """A first byte after `until` was never seen; a last one is the end of what was."""
    if s.calls[slot, first] > until:
        s.calls[slot, first] = -1
    if s.calls[slot, last] > until:
        s.calls[slot, last] = until if s.calls[slot, first] >= 0 else -1
