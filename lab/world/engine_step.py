"""One turn of a replica: end the step that ran, begin the next, plan the one after."""

import math
from typing import Any

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.physics import coef as f
from tailburn.lab.physics.step import ALLREDUCE, PARTS, jittered_ns, step_parts_ns
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.engine_admit import reclaim, wake
from tailburn.lab.world.engine_batch import complete, put_out, trace_tokens, write_back
from tailburn.lab.world.engine_draws import normal, unit
from tailburn.lab.world.engine_plan import plan_step
from tailburn.lab.world.engine_queue import note_queued


@lean
def _finish(e: Any, r: Any, now: Any) -> None:
    """Who has all its tokens leaves; the others keep their order."""
    run, rep = e.run, e.rep
    count, kept = rep[r, c.RUNNING_COUNT], 0
    for i in range(count):
        if run[r, c.RUN_DUE, i] > 0:
            if kept < i:
                for row in range(c.RUN):
                    run[r, row, kept] = run[r, row, i]
            kept += 1
            continue
        complete(e, r, write_back(e, r, i), now)
    rep[r, c.RUNNING_COUNT] = kept


@lean_inlined
def _output(e: Any, r: Any, now: Any) -> None:
    """The tokens that the step made, which ends now."""
    run, rep = e.run, e.rep
    which = rep[r, c.NOW]
    count = rep[r, c.RUNNING_COUNT]
    if rep[r, c.TRACED] > 0:
        for i in range(count):
            trace_tokens(e, r, i, which, now)
    made, over = 0, False
    for i in range(count):
        gained = run[r, c.RUN_EMIT + which, i]
        if gained > 0:
            made += gained
            over |= put_out(e, r, i, which, now) <= 0
    rep[r, c.GENERATION_TOKENS] += made
    if over:
        _finish(e, r, now)


@lean_inlined
def _extra_ns(e: Any, r: Any, now: Any, batch: Any, prefill: Any) -> Any:
    """Ns that hold up this step: a pause of one rank, a shape not compiled yet."""
    rep, extra = e.rep, 0
    if rep[r, c.PAUSE_NS] > 0 and now >= rep[r, c.PAUSE_NEXT_NS]:
        extra += rep[r, c.PAUSE_NS]
        rep[r, c.PAUSE_NEXT_NS] = now + max(rep[r, c.PAUSE_EVERY_NS], 1)
        rep[r, c.PAUSES] += 1
    if rep[r, c.COMPILE_NS] > 0:
        shape, left = 0, (batch + prefill) >> 3
        while left > 0 and shape < 15:
            shape, left = shape + 1, left >> 1
        seen = 1 << (shape + (16 if prefill > 0 else 0))
        if rep[r, c.SHAPES] & seen == 0:
            rep[r, c.SHAPES] |= seen
            rep[r, c.COMPILES] += 1
            extra += rep[r, c.COMPILE_NS]
    return extra


@lean_inlined
def _begin(e: Any, r: Any, now: Any, which: Any) -> None:
    """The step of a plan begins now, and NEXT_NS is its end."""
    rep, real = e.rep, e.real
    plan = c.PLAN + which * c.PLAN_SIZE
    batch, prefill = rep[r, plan + c.PLAN_BATCH], rep[r, plan + c.PLAN_PREFILL]
    row = real[r]
    parts = row[c.PARTS_NOW : c.PARTS_NOW + PARTS]
    kv, pairs = float(rep[r, plan + c.PLAN_KV]), float(rep[r, plan + c.PLAN_PAIRS])
    mean = step_parts_ns(row, batch, kv, float(prefill), pairs, parts)
    sigma = row[c.COEF + f.ALLREDUCE_JITTER]
    if sigma > 0.0:
        jittered = parts[ALLREDUCE] * math.exp(sigma * normal(e, r) - 0.5 * sigma * sigma)
        mean += jittered - parts[ALLREDUCE]
        parts[ALLREDUCE] = jittered
    for part in range(PARTS):
        real[r, c.PARTS_SUM + part] += parts[part]
    extra = rep[r, plan + c.PLAN_EXTRA] + _extra_ns(e, r, now, batch, prefill)
    real[r, c.EXTRA_SUM] += extra
    length = max(int(jittered_ns(row, mean, normal(e, r), unit(e, r))), 1) + extra
    rep[r, c.NOW], rep[r, c.BUSY] = which, 1
    rep[r, c.STEP_START_NS], rep[r, c.NEXT_NS] = now, now + length
    rep[r, c.STEPS] += 1
    rep[r, c.BUSY_NS] += length
    rep[r, c.BATCH_SUM] += batch
    if prefill > 0:
        rep[r, c.PREFILL_STEPS] += 1
    for column in range(c.PLAN_SIZE):
        rep[r, plan + column] = 0


@lean_inlined
def _stands_off(e: Any, r: Any) -> Any:
    """Nothing runs nor will, as long as none of the queue gives way; one has done so now."""
    idle = e.rep[r, c.RUNNING_COUNT] + e.rep[r, c.BLOCKED_COUNT] == 0
    return idle and reclaim(e, r)


@lean
def engine_step(e: Any, r: Any, now: Any) -> Any:
    """Go on at `now`, when NEXT_NS is due; returns the next NEXT_NS, or NEVER when idle.

    Called too early it changes nothing. Events are appended to `events`.
    """
    rep = e.rep
    if now < rep[r, c.NEXT_NS] or rep[r, c.NEXT_NS] == c.NEVER:
        return rep[r, c.NEXT_NS]
    if now < rep[r, c.READY_AT_NS]:
        rep[r, c.NEXT_NS] = rep[r, c.READY_AT_NS]
        if rep[r, c.READY_AT_NS] >= c.FOREVER:
            rep[r, c.NEXT_NS] = c.NEVER
        return rep[r, c.NEXT_NS]
    if rep[r, c.BUSY] == 1:
        _output(e, r, now)
        rep[r, c.BUSY] = 0
    if rep[r, c.WAITING_COUNT] > 0:
        note_queued(e, r, now)
        if rep[r, c.BLOCKED_MIN_NS] <= now:
            wake(e, r, now)
    which = 1 - rep[r, c.NOW]
    plan = c.PLAN + which * c.PLAN_SIZE
    ready = rep[r, plan + c.PLAN_BATCH] + rep[r, plan + c.PLAN_PREFILL] > 0
    if not ready:
        preempted = rep[r, c.N_PREEMPTIONS]
        ready = plan_step(e, r, now, which)
        while not ready and (rep[r, c.N_PREEMPTIONS] > preempted or _stands_off(e, r)):
            preempted = rep[r, c.N_PREEMPTIONS]
            ready = plan_step(e, r, now, which)
    if ready:
        _begin(e, r, now, which)
        if rep[r, c.ASYNC] == 1:
            plan_step(e, r, now, 1 - which)
    elif rep[r, c.BLOCKED_COUNT] > 0:
        rep[r, c.NEXT_NS] = max(rep[r, c.BLOCKED_MIN_NS], now + 1)
    else:
        rep[r, c.NEXT_NS] = c.NEVER
    return rep[r, c.NEXT_NS]
