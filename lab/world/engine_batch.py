"""The running list of a replica: who joins, who leaves, who gives way."""

from typing import Any

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.physics import coef as k
from tailburn.lab.physics.step import accepted_tokens, chunk_pairs
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.engine_adapters import let_adapter
from tailburn.lab.world.engine_cache import release, share_prefix
from tailburn.lab.world.engine_draws import unit
from tailburn.lab.world.engine_queue import enqueue, tell


@lean
def join(e: Any, r: Any, slot: Any, now: Any) -> Any:
    """Append to the running list, its blocks are taken already; returns its number there."""
    seq, run, rep = e.seq, e.run, e.rep
    i = rep[r, c.RUNNING_COUNT]
    rep[r, c.RUNNING_COUNT] = i + 1
    blocks = seq[slot, c.OWN] + seq[slot, c.BASE_BLOCKS] + seq[slot, c.TAIL_BLOCKS]
    computed, made = seq[slot, c.COMPUTED], seq[slot, c.MADE]
    run[r, c.RUN_SEQ, i] = slot
    run[r, c.RUN_LEN, i] = computed
    run[r, c.RUN_TODO, i] = seq[slot, c.PROMPT] + made - computed
    run[r, c.RUN_ROOM, i] = blocks * rep[r, c.BLOCK_SIZE] - computed
    run[r, c.RUN_LEFT, i] = seq[slot, c.OUTPUT] - made
    run[r, c.RUN_DUE, i] = seq[slot, c.OUTPUT] - made
    run[r, c.RUN_NEW, i] = 0
    run[r, c.RUN_EMIT, i] = 0
    run[r, c.RUN_EMIT + 1, i] = 0
    run[r, c.RUN_LAST, i] = seq[slot, c.LAST_NS]
    run[r, c.RUN_ITL, i] = seq[slot, c.ITL_MAX_NS]
    run[r, c.RUN_STEPS, i] = seq[slot, c.DECODE_STEPS]
    seq[slot, c.STATE] = c.RUNNING
    if seq[slot, c.SCHEDULED_NS] < 0:
        seq[slot, c.SCHEDULED_NS] = now
    if seq[slot, c.TOKENS_AT] >= 0:
        rep[r, c.TRACED] += 1
    return i


@lean_inlined
def _emit(e: Any, r: Any, i: Any, which: Any) -> Any:
    """All of number i's known tokens are in the step: so many output tokens come of it."""
    run, gained = e.run, 1
    left = run[r, c.RUN_LEFT, i]
    if e.real[r, c.COEF + k.DRAFT_TOKENS] > 0.0:
        drafts = int(e.real[r, c.COEF + k.DRAFT_TOKENS])
        if run[r, c.RUN_DUE, i] < e.seq[run[r, c.RUN_SEQ, i], c.OUTPUT]:
            # A resumed prompt's last chunk may have no room for drafts.
            gained = min(accepted_tokens(e.real[r], unit(e, r)), left)
            gained = min(gained, run[r, c.RUN_ROOM, i] + 1)
            e.rep[r, c.DRAFTS] += 1
            e.rep[r, c.DRAFTED] += drafts
            e.rep[r, c.ACCEPTED] += gained - 1
        run[r, c.RUN_LEN, i] += gained - 1
        run[r, c.RUN_ROOM, i] -= gained - 1
    run[r, c.RUN_EMIT + which, i] = gained
    run[r, c.RUN_LEFT, i] = left - gained
    run[r, c.RUN_TODO, i] = 1 if left > gained else 0
    return gained


@lean
def plan_chunk(e: Any, r: Any, i: Any, new: Any, which: Any) -> None:
    """Number i gets `new` tokens, which are a part of its prompt, or its first decode."""
    seq, run, rep = e.seq, e.run, e.rep
    plan = c.PLAN + which * c.PLAN_SIZE
    slot, length = run[r, c.RUN_SEQ, i], run[r, c.RUN_LEN, i]
    if run[r, c.RUN_TODO, i] == 1 and length > 0:
        rep[r, plan + c.PLAN_BATCH] += 1
        rep[r, plan + c.PLAN_KV] += length + 1
    else:
        rep[r, plan + c.PLAN_PREFILL] += new
        rep[r, plan + c.PLAN_PAIRS] += int(chunk_pairs(float(new), float(length)))
    rep[r, c.COMPUTED_TOKENS] += new
    rep[r, c.RECOMPUTED_TOKENS] += min(max(seq[slot, c.PEAK] - length, 0), new)
    run[r, c.RUN_NEW, i] = new
    run[r, c.RUN_LEN, i] = length + new
    run[r, c.RUN_ROOM, i] -= new
    run[r, c.RUN_TODO, i] -= new
    run[r, c.RUN_EMIT + which, i] = 0
    if seq[slot, c.PREFIX] != 0:
        share_prefix(e, r, slot, length + new)
    if run[r, c.RUN_TODO, i] == 0:
        _emit(e, r, i, which)


@lean_inlined
def write_back(e: Any, r: Any, i: Any) -> Any:
    """What the running list knows of number i goes to its slot, which is returned."""
    seq, run = e.seq, e.run
    slot = run[r, c.RUN_SEQ, i]
    seq[slot, c.COMPUTED] = run[r, c.RUN_LEN, i]
    seq[slot, c.PEAK] = max(seq[slot, c.PEAK], run[r, c.RUN_LEN, i])
    seq[slot, c.MADE] = seq[slot, c.OUTPUT] - run[r, c.RUN_DUE, i]
    seq[slot, c.LAST_NS] = run[r, c.RUN_LAST, i]
    seq[slot, c.ITL_MAX_NS] = run[r, c.RUN_ITL, i]
    seq[slot, c.DECODE_STEPS] = run[r, c.RUN_STEPS, i]
    if seq[slot, c.TOKENS_AT] >= 0:
        e.rep[r, c.TRACED] -= 1
    return slot


@lean
def leave(e: Any, r: Any, i: Any) -> Any:
    """Number i leaves the running list, the others keep their order; returns its slot."""
    slot = write_back(e, r, i)
    count = e.rep[r, c.RUNNING_COUNT] - 1
    e.rep[r, c.RUNNING_COUNT] = count
    for row in range(c.RUN):
        for at in range(i, count):
            e.run[r, row, at] = e.run[r, row, at + 1]
    return slot


@lean
def end(e: Any, r: Any, slot: Any, kind: Any, now: Any) -> None:
    """The slot is in no list any more: give back what it holds, and tell."""
    seq, rep = e.seq, e.rep
    release(e, r, slot)
    let_adapter(e, r, slot)
    seq[slot, c.STATE], seq[slot, c.END_KIND], seq[slot, c.END_NS] = c.DONE, kind, now
    rep[r, c.N_FINISHED if kind == c.FINISHED else c.N_ABORTED] += 1
    tell(e, c.EVENT_DONE, slot, now)


@lean
def worst(e: Any, r: Any) -> Any:
    """Number of the one that gives way: by priority the least and latest, else the last."""
    count = e.rep[r, c.RUNNING_COUNT]
    if e.rep[r, c.POLICY] == 0:
        return count - 1
    found, rank, order = -1, 0, 0
    for i in range(count):
        slot = e.run[r, c.RUN_SEQ, i]
        its_rank, its_order = e.seq[slot, c.PRIORITY], e.seq[slot, c.ORDER]
        if found < 0 or its_rank > rank or (its_rank == rank and its_order > order):
            found, rank, order = i, its_rank, its_order
    return found


@lean
def _first_token(e: Any, r: Any, i: Any, now: Any) -> None:
    slot = e.run[r, c.RUN_SEQ, i]
    if e.seq[slot, c.PREFILL_END_NS] < 0:
        e.seq[slot, c.PREFILL_END_NS] = now
        e.rep[r, c.PROMPT_TOKENS] += e.seq[slot, c.PROMPT]
        if e.seq[slot, c.WANT_FIRST] == 1:
            tell(e, c.EVENT_FIRST, slot, now)


@lean_inlined
def put_out(e: Any, r: Any, i: Any, which: Any, now: Any) -> Any:
    """The tokens that a plan's step makes for number i, out at `now`; returns what is due yet."""
    run = e.run
    gained = run[r, c.RUN_EMIT + which, i]
    if run[r, c.RUN_STEPS, i] == 0:
        _first_token(e, r, i, now)
    else:
        run[r, c.RUN_ITL, i] = max(run[r, c.RUN_ITL, i], now - run[r, c.RUN_LAST, i])
    run[r, c.RUN_STEPS, i] += 1
    run[r, c.RUN_LAST, i] = now
    due = run[r, c.RUN_DUE, i] - gained
    run[r, c.RUN_DUE, i] = due
    run[r, c.RUN_EMIT + which, i] = 0
    return due


@lean
def trace_tokens(e: Any, r: Any, i: Any, which: Any, now: Any) -> None:
    """Token instants of number i, if asked for; before its tokens are put out."""
    slot, gained = e.run[r, c.RUN_SEQ, i], e.run[r, c.RUN_EMIT + which, i]
    if gained > 0 and e.seq[slot, c.TOKENS_AT] >= 0:
        at = e.seq[slot, c.TOKENS_AT] + e.seq[slot, c.OUTPUT] - e.run[r, c.RUN_DUE, i]
        for token in range(at, at + gained):
            e.tokens[token] = now


@lean
def complete(e: Any, r: Any, slot: Any, now: Any) -> None:
    """It has all its tokens and has left the running list."""
    if e.seq[slot, c.SPLIT] == 1:
        e.seq[slot, c.STATE] = c.HELD
        e.rep[r, c.HELD_COUNT] += 1
        tell(e, c.EVENT_HELD, slot, now)
    else:
        end(e, r, slot, c.FINISHED, now)


@lean
def drop(e: Any, r: Any, slot: Any) -> None:
    """All its blocks are given up; what it had will be computed again."""
    if e.seq[slot, c.TAIL] == 0:
        e.seq[slot, c.TAIL] = -e.seq[slot, c.SERIAL]
    release(e, r, slot)
    let_adapter(e, r, slot)


@lean
def preempt(e: Any, r: Any, i: Any) -> None:
    """Number i gives up all its blocks and waits again.

    A token of it in the step that runs is kept, as of that step's end.
    """
    seq, rep, which, due = e.seq, e.rep, e.rep[r, c.NOW], 1
    if rep[r, c.BUSY] == 1 and e.run[r, c.RUN_EMIT + which, i] > 0:
        rep[r, c.GENERATION_TOKENS] += e.run[r, c.RUN_EMIT + which, i]
        trace_tokens(e, r, i, which, rep[r, c.NEXT_NS])
        due = put_out(e, r, i, which, rep[r, c.NEXT_NS])
    slot = leave(e, r, i)
    if due <= 0:
        complete(e, r, slot, rep[r, c.NEXT_NS])
        return
    drop(e, r, slot)
    seq[slot, c.PREEMPTIONS] += 1
    rep[r, c.N_PREEMPTIONS] += 1
    enqueue(e, r, slot)
