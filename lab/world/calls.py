"""Attempts under way: a slot taken, events for it, a slot given back and told."""

from typing import Any

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.fleet.arrays import EDGES
from tailburn.lab.world import knob_columns as k
from tailburn.lab.world import layout as w
from tailburn.lab.world.draws import D_LOSS, exponential, key_of, unit
from tailburn.lab.world.heap import push

TO_GATEWAY = EDGES.index("client>gateway")
TO_ROUTER = EDGES.index("gateway>router")
ROUTER_TO_ENGINE = EDGES.index("router>engine")
GATEWAY_TO_ENGINE = EDGES.index("gateway>engine")
TO_RETRIEVAL = EDGES.index("gateway>retrieval")
TO_GUARDRAIL = EDGES.index("gateway>guardrail")
TO_DECODE = EDGES.index("prefill>decode")

LEAST_TIMEOUT_NS = 200_000_000
"""TCP's least retransmission time-out on Linux."""


@lean_inlined
def ns(seconds: Any) -> Any:
    """Seconds as whole nanoseconds."""
    return int(seconds * 1e9)


@lean
def next_step(s: Any, slot: Any, kind: Any, when: Any) -> None:
    """The attempt's next event; void when its STEP has moved on by then."""
    life, step = s.calls[slot, w.LIFE], s.calls[slot, w.STEP]
    what = (kind << w.KIND_SHIFT) | (life << w.LIFE_SHIFT) | (step << w.STEP_SHIFT) | slot
    push(s.heap, s.vary, when, what)


@lean
def beside(s: Any, slot: Any, kind: Any, when: Any) -> None:
    """An event beside its way (a time-out, a hang-up); void when the slot has another life."""
    what = (kind << w.KIND_SHIFT) | (s.calls[slot, w.LIFE] << w.LIFE_SHIFT) | slot
    push(s.heap, s.vary, when, what)


@lean
def beside_try(s: Any, slot: Any, kind: Any, when: Any, number: Any) -> None:
    """An event beside its way that concerns one of its upstream calls, by number."""
    what = (kind << w.KIND_SHIFT) | (s.calls[slot, w.LIFE] << w.LIFE_SHIFT) | slot
    push(s.heap, s.vary, when, what | ((number & w.STEP_MASK) << w.STEP_SHIFT))


@lean
def of_thing(s: Any, thing: Any, kind: Any, when: Any) -> None:
    """An event of a replica or pool."""
    push(s.heap, s.vary, when, (kind << w.KIND_SHIFT) | thing)


@lean_inlined
def call_off(s: Any, slot: Any) -> None:
    """Whatever was next for the attempt will not be."""
    s.calls[slot, w.STEP] = (s.calls[slot, w.STEP] + 1) & w.STEP_MASK


@lean
def new_call(s: Any) -> Any:
    """A free slot with nothing happened yet; there must be one (`SPARE_CALLS`)."""
    calls, vary = s.calls, s.vary
    vary[w.FREE_DEPTH] -= 1
    slot = s.free[vary[w.FREE_DEPTH]]
    for column in range(w.ASKED, w.CALL):
        if column != w.LIFE and column != w.STEP:
            calls[slot, column] = w.NEVER
    for column in (w.ATTEMPT, w.HEDGE, w.CACHED, w.DONE_TOKENS, w.OUTCOME, w.STATUS):
        calls[slot, column] = 0
    for column in (w.PREEMPTIONS, w.DECODE_STEPS, w.STAGE, w.SERVED, w.POOLED, w.INFLIGHT):
        calls[slot, column] = 0
    for column in (w.ROUTED, w.LEFT, w.FAILED, w.FOLLOWED, w.TRIES, w.GATE_TRIES, w.ROUTE_TRIES):
        calls[slot, column] = 0
    vary[w.UNDER_WAY] += 1
    vary[w.N_ATTEMPTS] += 1
    return slot


@lean
def again(s: Any, slot: Any, attempt: Any, hedge: Any) -> Any:
    """A new attempt at the same request."""
    new = new_call(s)
    for column in range(w.ASKED + 1):
        s.calls[new, column] = s.calls[slot, column]
    name(s, new, attempt, hedge)
    return new


@lean
def name(s: Any, slot: Any, attempt: Any, hedge: Any) -> None:
    """Give an attempt its number and the key of its draws."""
    calls = s.calls
    calls[slot, w.ATTEMPT], calls[slot, w.HEDGE] = attempt, hedge
    request = key_of(s.fixed[w.SEED], calls[slot, w.REQUEST])
    calls[slot, w.KEY] = key_of(request, 2 * attempt + hedge)


@lean
def close(s: Any, slot: Any) -> None:
    """The attempt is over on all sides: tell it, give its slot back."""
    calls, vary = s.calls, s.vary
    row = vary[w.OUT_ROWS]
    for column in range(w.TOLD):
        s.out[row, column] = calls[slot, column]
    s.out[row, w.TOLD] = calls[slot, w.TOKENS_AT]
    vary[w.OUT_ROWS] = row + 1
    calls[slot, w.LIFE] = (calls[slot, w.LIFE] + 1) & w.LIFE_MASK
    calls[slot, w.STAGE] = w.AT_NOTHING
    s.free[vary[w.FREE_DEPTH]] = slot
    vary[w.FREE_DEPTH] += 1
    vary[w.UNDER_WAY] -= 1


@lean
def edge_ns(s: Any, kind: Any, here: Any, there: Any, key: Any, draw: Any) -> Any:
    """How long one message takes over an edge between two zones, one way."""
    zones = s.fixed[w.N_ZONES]
    at = (kind * zones + here) * zones + there
    jitter = s.edge_jitter_ns[at] + s.k_edge[at, k.EDGE_JITTER_S] * 1e9
    took = s.edge_ns[at] + s.k_edge[at, k.EDGE_DELAY_S] * 1e9 + jitter * exponential(key, draw)
    loss = s.k_edge[at, k.EDGE_LOSS]
    if loss > 0.0:
        wait = max(float(LEAST_TIMEOUT_NS), 2.0 * took)
        drawn = unit(key, draw + D_LOSS)
        while drawn < loss and wait < 60e9:
            took += wait
            wait *= 2.0
            drawn /= loss
    return int(took)
