"""The engines of a fleet: continuous batching as vLLM V1 does it, compiled.

The caller owns time. It holds `Engines` (see `engine_layout`), adds requests, and calls
`engine_step` for a replica whenever `rep[replica, NEXT_NS]` is due; each call ends the step
that ran, begins the next one, and returns when to call again (NEVER: idle). Any function here
may bring NEXT_NS of a replica forward (`engine_step` that of a prefill replica too, whose KV
was pulled), so an event loop compares what it popped with NEXT_NS. What happened lies in
`events` and in the slots' instants.

    slot = engine_add(engines, replica, now_ns, owner, prompt, output, prefix, prefix_tokens,
                      tail, lora, priority, structured, source, flags, tokens_at)
    next_ns = engine_step(engines, replica, now_ns)
    engine_abort(engines, slot, now_ns)         # also while WAITING, BLOCKED, HELD
    engine_extend(engines, slot, output)        # it does not stop before so many tokens
    engine_forget(engines, slot)                # after DONE was read
    engine_down(engines, replica, now_ns)       # it dies: all its slots are DONE as LOST
    engine_up(engines, replica, ready_ns)       # empty caches, counters at 0, loads until then
    engine_set_blocks(engines, replica, blocks, now_ns)
"""

from typing import Any, Final

from tailburn.lab.compiled import lean
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.engine_batch import end, leave
from tailburn.lab.world.engine_blocks import trim_cache
from tailburn.lab.world.engine_queue import block, dequeue, enqueue, kick, unblock
from tailburn.lab.world.engine_step import engine_step

__all__ = [
    "FLAG_FIRST",
    "FLAG_SPLIT",
    "engine_abort",
    "engine_add",
    "engine_down",
    "engine_extend",
    "engine_forget",
    "engine_set_blocks",
    "engine_step",
    "engine_up",
]

FLAG_SPLIT: Final = 1
"""Prefill only: HELD after its first token, until a decode side pulls it or it is aborted."""
FLAG_FIRST: Final = 2
"""An event FIRST is wanted."""


@lean
def engine_add(
    e: Any,
    r: Any,
    now: Any,
    owner: Any,
    prompt: Any,
    output: Any,
    prefix: Any,
    prefix_tokens: Any,
    tail: Any,
    lora: Any,
    priority: Any,
    structured: Any,
    source: Any,
    flags: Any,
    tokens_at: Any,
) -> Any:
    """A request reaches a replica's engine, tokenized; returns its slot, -1 when none is free.

    prompt, output: tokens, both >= 1 (output: as many as it will make). prefix: id > 0 of
    what the first `prefix_tokens` are shared under, 0 none. tail: id > 0 under which its whole
    context is found again by later requests with the same tail (the session, or what is unique
    to a request that may be retried), 0 never. source: the HELD slot of its prefill, -1 none.
    tokens_at: where in `tokens` its instants go, -1 nowhere.
    """
    seq, rep, free = e.seq, e.rep, e.free
    if free[0] == 0:
        return -1
    slot = free[free[0]]
    free[0] -= 1
    seq[slot, :] = -1
    for column in (c.MADE, c.COMPUTED, c.OWN, c.BASE_BLOCKS, c.TAIL_BLOCKS, c.PREEMPTIONS):
        seq[slot, column] = 0
    for column in (c.CACHED, c.LOADED, c.DECODE_STEPS, c.PEAK, c.WAITS_FOR, c.END_KIND):
        seq[slot, column] = 0
    seq[slot, c.REPLICA], seq[slot, c.OWNER], seq[slot, c.ADDED_NS] = r, owner, now
    seq[slot, c.PROMPT], seq[slot, c.OUTPUT] = max(prompt, 1), max(output, 1)
    seq[slot, c.PREFIX], seq[slot, c.PREFIX_TOKENS] = prefix, min(prefix_tokens, prompt)
    seq[slot, c.TAIL], seq[slot, c.LORA], seq[slot, c.PRIORITY] = tail, lora, priority
    seq[slot, c.STRUCTURED], seq[slot, c.TOKENS_AT] = structured, tokens_at
    seq[slot, c.SPLIT], seq[slot, c.WANT_FIRST] = flags & 1, (flags >> 1) & 1
    if flags & 1:
        seq[slot, c.OUTPUT] = 1
    rep[r, c.SERIALS] += 1
    seq[slot, c.SERIAL] = rep[r, c.SERIALS]
    seq[slot, c.SOURCE] = source
    if source >= 0:
        seq[slot, c.SOURCE_SERIAL] = seq[source, c.SERIAL]
    rep[r, c.ORDERS] += 1
    seq[slot, c.ORDER] = rep[r, c.ORDERS]
    rep[r, c.N_ADDED] += 1
    if structured > 0 and rep[r, c.GRAMMAR_NS] > 0:
        # Workers compile grammars in parallel: on average each takes its share of the queue.
        workers = max(rep[r, c.GRAMMAR_WORKERS], 1)
        begin = max(now, rep[r, c.GRAMMAR_FREE_NS])
        rep[r, c.GRAMMAR_FREE_NS] = begin + rep[r, c.GRAMMAR_NS] // workers
        seq[slot, c.QUEUED_NS] = now
        block(e, r, slot, c.FOR_GRAMMAR, begin + rep[r, c.GRAMMAR_NS])
        if rep[r, c.BUSY] == 0:
            ready = max(rep[r, c.BLOCKED_MIN_NS], rep[r, c.READY_AT_NS])
            if rep[r, c.NEXT_NS] < 0 or ready < rep[r, c.NEXT_NS]:
                rep[r, c.NEXT_NS] = ready if ready < c.FOREVER else c.NEVER
    else:
        enqueue(e, r, slot)
        kick(e, r, now)
    return slot


@lean
def engine_abort(e: Any, slot: Any, now: Any) -> Any:
    """The engine is told to stop a request; returns whether there was anything to stop."""
    seq, rep = e.seq, e.rep
    r, state = seq[slot, c.REPLICA], seq[slot, c.STATE]
    if state == c.WAITING:
        dequeue(e, r, slot)
    elif state == c.BLOCKED:
        unblock(e, r, slot)
    elif state == c.RUNNING:
        i = 0
        while e.run[r, c.RUN_SEQ, i] != slot:
            i += 1
        leave(e, r, i)
    elif state == c.HELD:
        rep[r, c.HELD_COUNT] -= 1
    else:
        return False
    end(e, r, slot, c.ABORTED, now)
    kick(e, r, now)
    return True


@lean
def engine_extend(e: Any, slot: Any, output: Any) -> Any:
    """A request makes `output` tokens in all; returns whether that is more than it was to.

    Not one whose last token is scheduled, nor a split prefill. Its token instants are kept
    no longer.
    """
    seq, run = e.seq, e.run
    r, more = seq[slot, c.REPLICA], output - seq[slot, c.OUTPUT]
    if more <= 0 or seq[slot, c.SPLIT] == 1 or seq[slot, c.STATE] >= c.HELD:
        return False
    if seq[slot, c.STATE] == c.RUNNING:
        i = 0
        while run[r, c.RUN_SEQ, i] != slot:
            i += 1
        if run[r, c.RUN_LEFT, i] == 0:
            return False
        run[r, c.RUN_LEFT, i] += more
        run[r, c.RUN_DUE, i] += more
        if seq[slot, c.TOKENS_AT] >= 0:
            e.rep[r, c.TRACED] -= 1
    seq[slot, c.TOKENS_AT] = -1
    seq[slot, c.OUTPUT] = output
    return True


@lean
def engine_forget(e: Any, slot: Any) -> None:
    """A DONE slot has been read: it may be used again."""
    if e.seq[slot, c.STATE] == c.DONE:
        e.seq[slot, c.STATE] = c.FREE
        e.free[0] += 1
        e.free[e.free[0]] = slot


@lean
def engine_down(e: Any, r: Any, now: Any) -> None:
    """The replica dies: every request in it ends as LOST, and nothing runs until `engine_up`."""
    seq = e.seq
    for slot in range(len(seq)):
        if seq[slot, c.REPLICA] == r and c.WAITING <= seq[slot, c.STATE] <= c.HELD:
            engine_abort(e, slot, now)
            seq[slot, c.END_KIND] = c.LOST
    e.rep[r, c.READY_AT_NS], e.rep[r, c.NEXT_NS], e.rep[r, c.BUSY] = c.FOREVER, c.NEVER, 0


@lean
def engine_up(e: Any, r: Any, ready: Any) -> None:
    """A new process of a replica that holds no request: it loads its model until `ready`.

    Its caches are empty and its counters 0.
    """
    rep, entries = e.rep, e.entries
    rep[r, c.CLEAN], rep[r, c.CACHE], rep[r, c.TIER_USED] = rep[r, c.BLOCKS], 0, 0
    rep[r, c.COUNTERS :] = 0
    e.real[r, c.PARTS_NOW :] = 0.0
    rep[r, c.PLAN : c.PLAN + 2 * c.PLAN_SIZE] = 0
    for head in (c.LRU_HEAD, c.LRU_TAIL, c.TIER_HEAD, c.TIER_TAIL, c.BLOCKED_HEAD, c.NEXT_NS):
        rep[r, head] = -1
    rep[r, c.WAIT_HEAD : c.COUNTERS] = -1
    for column in (c.RUNNING_COUNT, c.WAITING_COUNT, c.BLOCKED_COUNT, c.HELD_COUNT, c.TRACED):
        rep[r, column] = 0
    for column in (c.BUSY, c.NOW, c.SHAPES, c.LOAD_FREE_NS, c.TRANSFER_FREE_NS):
        rep[r, column] = 0
    rep[r, c.GRAMMAR_FREE_NS], rep[r, c.BLOCKED_MIN_NS] = 0, c.FOREVER
    rep[r, c.READY_AT_NS] = ready
    e.buckets[r, :] = -1
    last = entries.shape[1] - 1
    for at in range(last + 1):
        serial = entries[r, at, c.E_SERIAL]
        entries[r, at, :] = 0
        entries[r, at, c.E_SERIAL] = serial
        entries[r, at, c.E_CHAIN] = at + 1 if at < last else -1
    rep[r, c.ENTRY_FREE] = 0
    for at in range(e.adapters.shape[1]):
        e.adapters[r, at, :] = 0
        e.adapters[r, at, c.A_ID], e.adapters[r, at, c.A_HOST_ID] = -1, -1


@lean
def engine_set_blocks(e: Any, r: Any, blocks: Any, now: Any) -> None:
    """Give a replica so many KV blocks; what is in use beyond that stays until given back."""
    e.rep[r, c.CLEAN] += blocks - e.rep[r, c.BLOCKS]
    e.rep[r, c.BLOCKS] = blocks
    trim_cache(e, r)
    kick(e, r, now)
