"""From the queue into the batch: as vLLM V1 admits, first what fits, nobody overtakes a block."""

from typing import Any

from tailburn.lab.compiled import lean
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.engine_adapters import NO_SLOT, adapter_slot, hold_adapter
from tailburn.lab.world.engine_batch import drop, end, join, plan_chunk
from tailburn.lab.world.engine_blocks import free_blocks, touch_cost
from tailburn.lab.world.engine_cache import attach, look_up, own_blocks
from tailburn.lab.world.engine_queue import (
    block,
    dequeue,
    enqueue,
    first_waiting,
    kick,
    next_waiting,
    unblock,
)

MOST_SKIPPED = 256
"""Of requests that wait for an adapter slot, so many are passed over in one step."""


@lean
def _pull(e: Any, r: Any, slot: Any, now: Any) -> None:
    """Begin to pull the prefill's KV from where it is; the slot's blocks are taken."""
    seq, rep = e.seq, e.rep
    size = seq[slot, c.PROMPT] * rep[r, c.KV_BYTES]
    start = max(now, rep[r, c.TRANSFER_FREE_NS])
    busy = start + int(size / max(e.real[r, c.TRANSFER_GBPS], 1e-6))
    rep[r, c.TRANSFER_FREE_NS] = busy
    rep[r, c.TRANSFERRED_BYTES] += size
    if e.real[r, c.TRANSFER_FLOW_GBPS] > 0.0:
        busy = max(busy, now + int(size / e.real[r, c.TRANSFER_FLOW_GBPS]))
    ready = busy + rep[r, c.TRANSFER_LATENCY_NS]
    seq[slot, c.TRANSFER_START_NS], seq[slot, c.TRANSFER_END_NS] = now, ready
    block(e, r, slot, c.FOR_TRANSFER, ready)


@lean
def _load(e: Any, r: Any, slot: Any, blocks: Any, now: Any) -> None:
    """Begin to load blocks from the offload tier."""
    seq, rep = e.seq, e.rep
    tokens = blocks * rep[r, c.BLOCK_SIZE]
    size = tokens * rep[r, c.KV_BYTES]
    busy = max(now, rep[r, c.LOAD_FREE_NS]) + int(size / max(e.real[r, c.LOAD_GBPS], 1e-6))
    rep[r, c.LOAD_FREE_NS] = busy
    rep[r, c.LOADED_BYTES] += size
    rep[r, c.TIER_HITS] += tokens
    ready = busy + rep[r, c.LOAD_LATENCY_NS]
    seq[slot, c.LOAD_START_NS], seq[slot, c.LOAD_END_NS] = now, ready
    seq[slot, c.LOADED] = tokens
    block(e, r, slot, c.FOR_LOAD, ready)


@lean
def wake(e: Any, r: Any, now: Any) -> None:
    """Who has what it waited for goes back to where it stood in the queue."""
    seq, rep = e.seq, e.rep
    at = rep[r, c.BLOCKED_HEAD]
    while at >= 0:
        after = seq[at, c.NEXT]
        if seq[at, c.READY_NS] <= now:
            unblock(e, r, at)
            source, kept = seq[at, c.SOURCE], True
            if seq[at, c.WAITS_FOR] == c.FOR_TRANSFER:
                kept = seq[source, c.SERIAL] == seq[at, c.SOURCE_SERIAL]
                kept = kept and seq[source, c.STATE] == c.HELD
                if kept:
                    home = seq[source, c.REPLICA]
                    e.rep[home, c.HELD_COUNT] -= 1
                    end(e, home, source, c.FINISHED, seq[at, c.TRANSFER_END_NS])
                    kick(e, home, now)
            if kept:
                enqueue(e, r, at)
            else:
                end(e, r, at, c.LOST, now)
        at = after


@lean
def reclaim(e: Any, r: Any) -> Any:
    """Those back from a load hold in the queue what another needs: the last gives way.

    Returns whether one did. vLLM lets such a stand-off stand.
    """
    seq, rep = e.seq, e.rep
    for level in range(c.PRIORITIES - 1, -1, -1):
        at = rep[r, c.WAIT_TAIL + level]
        while at >= 0:
            if seq[at, c.OWN] + seq[at, c.BASE_BLOCKS] + seq[at, c.TAIL_BLOCKS] > 0:
                drop(e, r, at)
                return True
            at = seq[at, c.PREV]
    return False


@lean
def _found(e: Any, r: Any, slot: Any, blocks: Any) -> None:
    """Count a look-up, and what it found in the replica's own cache."""
    seq, rep = e.seq, e.rep
    known = seq[slot, c.PROMPT] + seq[slot, c.MADE]
    tokens = blocks * rep[r, c.BLOCK_SIZE]
    seq[slot, c.COMPUTED] = tokens
    if rep[r, c.CACHE_LIMIT] > 0:
        rep[r, c.PREFIX_QUERIES] += known
        rep[r, c.PREFIX_HITS] += tokens
    if rep[r, c.TIER_BLOCKS] > 0:
        rep[r, c.TIER_QUERIES] += known - tokens
    if seq[slot, c.PREEMPTIONS] == 0:
        seq[slot, c.CACHED] = tokens


@lean
def admit(e: Any, r: Any, now: Any, budget: Any, which: Any) -> None:
    """Move requests from the queue into the running list, and give them tokens.

    Those that no empty replica could hold are refused. Then of each:

    1 its adapter is, or can be, on the GPU; else it is passed over
    2 what of it is cached; 3 its blocks fit, else all behind it wait too
    4 KV to be pulled or loaded: it waits for that, holding its blocks
    5 it joins, and has its first tokens in the plan
    """
    seq, rep = e.seq, e.rep
    skipped = 0
    slot = first_waiting(e, r, 0)
    while slot >= 0 and budget > 0 and rep[r, c.RUNNING_COUNT] < rep[r, c.MAX_SEQS]:
        after = next_waiting(e, r, slot)
        size, known = rep[r, c.BLOCK_SIZE], seq[slot, c.PROMPT] + seq[slot, c.MADE]
        if -(-known // size) > rep[r, c.BLOCKS]:
            dequeue(e, r, slot)
            end(e, r, slot, c.REFUSED, now)
            slot = after
            continue
        at = seq[slot, c.ADAPTER_AT]
        if seq[slot, c.LORA] >= 0 and at < 0:
            at = adapter_slot(e, r, seq[slot, c.LORA])
            if at == NO_SLOT:
                skipped += 1
                if skipped > MOST_SKIPPED:
                    break
                slot = after
                continue
        fresh = seq[slot, c.COMPUTED] + seq[slot, c.OWN] == 0
        base, in_base, tail, in_tail, afar = -1, 0, -1, 0, 0
        pull = fresh and seq[slot, c.SOURCE] >= 0 and seq[slot, c.TRANSFER_START_NS] < 0
        if fresh:
            base, in_base, tail, in_tail, afar = look_up(e, r, slot)
            if pull:
                afar = 0
        computed = seq[slot, c.COMPUTED] + (in_base + in_tail) * size
        if pull:
            tokens = known
        elif afar > 0:
            tokens = computed + afar * size
        else:
            new = min(known - computed, budget)
            if rep[r, c.CHUNK_LIMIT] > 0:
                new = min(new, rep[r, c.CHUNK_LIMIT])
            tokens = computed + new
        check = known if rep[r, c.RESERVE] == 1 else tokens
        have = seq[slot, c.OWN] + seq[slot, c.BASE_BLOCKS] + seq[slot, c.TAIL_BLOCKS]
        have += in_base + in_tail
        need = max(-(-check // size) - have, 0)
        need += touch_cost(e, r, base, in_base) + touch_cost(e, r, tail, in_tail)
        margin = rep[r, c.WATERMARK] if rep[r, c.RUNNING_COUNT] > 0 else 0
        if need + margin > free_blocks(e, r):
            break
        dequeue(e, r, slot)
        ready = now
        if seq[slot, c.LORA] >= 0 and seq[slot, c.ADAPTER_AT] < 0:
            ready = hold_adapter(e, r, slot, at, now)
            if ready > now and rep[r, c.LORA_BLOCKING] == 0:
                block(e, r, slot, c.FOR_ADAPTER, ready)
                slot = after
                continue
        if fresh:
            attach(e, r, slot, base, in_base, tail, in_tail)
            _found(e, r, slot, in_base + in_tail)
        own_blocks(e, r, slot, tokens)
        if pull:
            _pull(e, r, slot, now)
            seq[slot, c.COMPUTED] = known - 1
        elif afar > 0:
            _load(e, r, slot, afar, now)
            seq[slot, c.COMPUTED] = tokens
            if seq[slot, c.PREEMPTIONS] == 0:
                seq[slot, c.CACHED] = tokens
        else:
            rep[r, c.PLAN + which * c.PLAN_SIZE + c.PLAN_EXTRA] += ready - now
            plan_chunk(e, r, join(e, r, slot, now), tokens - computed, which)
            budget -= tokens - computed
        slot = after
