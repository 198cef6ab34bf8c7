"""What a step carries: who of the running list gets how many tokens, and what that makes."""

from typing import Any

from tailburn.lab.compiled import lean
from tailburn.lab.physics import coef as k
from tailburn.lab.physics.step import chunk_pairs
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.engine_admit import admit, reclaim
from tailburn.lab.world.engine_batch import plan_chunk, preempt, worst
from tailburn.lab.world.engine_blocks import free_blocks, take_blocks


@lean
def _make_room(e: Any, r: Any, i: Any, blocks: Any, which: Any) -> Any:
    """Preempt until number i can have its blocks.

    Returns (number i has now, or -1 - i when it gave way itself; tokens handed back to the
    budget).
    """
    run, back = e.run, 0
    while blocks > free_blocks(e, r):
        victim = worst(e, r)
        if e.rep[r, c.RUNNING_COUNT] == 1 and reclaim(e, r):
            continue
        if victim < i:
            _unplan(e, r, victim, which)
            back += run[r, c.RUN_NEW, victim]
        preempt(e, r, victim)
        if victim == i:
            return -1 - i, back
        if victim < i:
            i -= 1
    slot = run[r, c.RUN_SEQ, i]
    take_blocks(e, r, blocks)
    e.seq[slot, c.OWN] += blocks
    run[r, c.RUN_ROOM, i] += blocks * e.rep[r, c.BLOCK_SIZE]
    return i, back


@lean
def _unplan(e: Any, r: Any, i: Any, which: Any) -> None:
    """Take out of the plan what number i was given in it."""
    rep, run = e.rep, e.run
    plan = c.PLAN + which * c.PLAN_SIZE
    new = run[r, c.RUN_NEW, i]
    if new == 1 and run[r, c.RUN_EMIT + which, i] > 0:
        rep[r, plan + c.PLAN_BATCH] -= 1
        rep[r, plan + c.PLAN_KV] -= run[r, c.RUN_LEN, i]
    elif new > 0:
        rep[r, plan + c.PLAN_PREFILL] -= new
        before = run[r, c.RUN_LEN, i] - new
        rep[r, plan + c.PLAN_PAIRS] -= int(chunk_pairs(float(new), float(before)))
    rep[r, c.COMPUTED_TOKENS] -= new


@lean
def plan_step(e: Any, r: Any, now: Any, which: Any) -> Any:
    """Fill a plan as vLLM V1 schedules; returns whether it carries anything.

    The running come first, in order; who finds no free block takes those of the last one,
    whose work is lost. Only a step that preempted nobody admits from the queue.
    """
    run, rep = e.run, e.rep
    plan = c.PLAN + which * c.PLAN_SIZE
    rep[r, plan : plan + c.PLAN_SIZE] = 0
    budget, limit = rep[r, c.TOKEN_BUDGET], rep[r, c.CHUNK_LIMIT]
    drafts = int(e.real[r, c.COEF + k.DRAFT_TOKENS])
    size, preempted = rep[r, c.BLOCK_SIZE], rep[r, c.N_PREEMPTIONS]
    batch, kv, i = 0, 0, 0
    while i < rep[r, c.RUNNING_COUNT] and budget > 0:
        todo = run[r, c.RUN_TODO, i]
        if todo == 0:
            run[r, c.RUN_NEW, i] = 0
            run[r, c.RUN_EMIT + which, i] = 0
            i += 1
            continue
        new = min(todo, budget)
        if limit > 0:
            new = min(new, limit)
        ahead = drafts if todo == 1 else 0
        short = new + ahead - run[r, c.RUN_ROOM, i]
        if short > 0:
            blocks = -(-short // size)
            if blocks <= rep[r, c.CLEAN]:
                rep[r, c.CLEAN] -= blocks
                e.seq[run[r, c.RUN_SEQ, i], c.OWN] += blocks
                run[r, c.RUN_ROOM, i] += blocks * size
            else:
                rep[r, plan + c.PLAN_BATCH] += batch
                rep[r, plan + c.PLAN_KV] += kv
                batch, kv = 0, 0
                i, back = _make_room(e, r, i, blocks, which)
                budget += back
                if i < 0:
                    break
        if todo == 1 and run[r, c.RUN_LEN, i] > 0 and drafts == 0:
            length = run[r, c.RUN_LEN, i] + 1
            left = run[r, c.RUN_LEFT, i] - 1
            batch += 1
            kv += length
            run[r, c.RUN_LEN, i] = length
            run[r, c.RUN_ROOM, i] -= 1
            run[r, c.RUN_NEW, i] = 1
            run[r, c.RUN_EMIT + which, i] = 1
            run[r, c.RUN_LEFT, i] = left
            run[r, c.RUN_TODO, i] = 1 if left > 0 else 0
        else:
            plan_chunk(e, r, i, new, which)
        budget -= new + ahead
        i += 1
    rep[r, plan + c.PLAN_BATCH] += batch
    rep[r, plan + c.PLAN_KV] += kv
    rep[r, c.COMPUTED_TOKENS] += batch
    for rest in range(i if i >= 0 else -1 - i, rep[r, c.RUNNING_COUNT]):
        run[r, c.RUN_NEW, rest] = 0
        run[r, c.RUN_EMIT + which, rest] = 0
    if rep[r, c.N_PREEMPTIONS] == preempted and rep[r, c.WAITING_COUNT] > 0 and budget > 0:
        admit(e, r, now, budget, which)
    return rep[r, plan + c.PLAN_BATCH] + rep[r, plan + c.PLAN_PREFILL] > 0
