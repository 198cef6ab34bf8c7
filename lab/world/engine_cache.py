"""What of a request's context a replica still has, and what it leaves behind."""

from typing import Any

from tailburn.lab.compiled import lean
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.engine_blocks import (
    find_entry,
    give_blocks,
    hold_entry,
    let_entry,
    new_entry,
    offload_entry,
    take_blocks,
)


@lean
def look_up(e: Any, r: Any, slot: Any) -> Any:
    """(base entry, blocks, tail entry, blocks, blocks of both that the tier can bring).

    At least the last known token is always computed anew, as in vLLM.
    """
    seq, entries = e.seq, e.entries
    size = e.rep[r, c.BLOCK_SIZE]
    most = (seq[slot, c.PROMPT] + seq[slot, c.MADE] - 1) // size
    base, tail, held, reach = -1, -1, 0, 0
    if e.rep[r, c.CACHE_LIMIT] <= 0 and e.rep[r, c.TIER_BLOCKS] <= 0:
        return base, held, tail, held, reach
    key = seq[slot, c.TAIL]
    if key != 0:
        tail = find_entry(e, r, key)
    full = 0
    if tail >= 0:
        base, full = entries[r, tail, c.E_BASE], entries[r, tail, c.E_BASE_BLOCKS]
        if base >= 0 and entries[r, base, c.E_SERIAL] != entries[r, tail, c.E_BASE_SERIAL]:
            base, tail = -1, -1
    if tail < 0:
        full = min(seq[slot, c.PREFIX_TOKENS] // size, most)
        if seq[slot, c.PREFIX] != 0 and seq[slot, c.PREFIX] != key:
            base = find_entry(e, r, seq[slot, c.PREFIX])
            if base >= 0 and entries[r, base, c.E_BASE] >= 0:
                base = -1
    full = min(full, most)
    in_base, in_tail = 0, 0
    if base >= 0:
        in_base = min(entries[r, base, c.E_BLOCKS], full)
        reach = min(max(entries[r, base, c.E_BLOCKS], entries[r, base, c.E_TIER]), full)
    if tail >= 0:
        if in_base == full:
            in_tail = min(entries[r, tail, c.E_BLOCKS], most - full)
        if reach == full:
            both = max(entries[r, tail, c.E_BLOCKS], entries[r, tail, c.E_TIER])
            reach += min(both, most - full)
    return base, in_base, tail, in_tail, reach - in_base - in_tail


@lean
def attach(e: Any, r: Any, slot: Any, base: Any, in_base: Any, tail: Any, in_tail: Any) -> None:
    """Hold what was found; begin an entry for a prefix that nobody has."""
    seq = e.seq
    if base < 0 and e.rep[r, c.CACHE_LIMIT] > 0:
        key = seq[slot, c.PREFIX]
        if tail < 0 and key != 0 and key != seq[slot, c.TAIL] and find_entry(e, r, key) < 0:
            base = new_entry(e, r, key)
    seq[slot, c.BASE_ENTRY], seq[slot, c.BASE_BLOCKS] = base, in_base
    seq[slot, c.TAIL_ENTRY], seq[slot, c.TAIL_BLOCKS] = tail, in_tail
    if base >= 0:
        hold_entry(e, r, base, in_base)
    if tail >= 0:
        hold_entry(e, r, tail, in_tail)


@lean
def share_prefix(e: Any, r: Any, slot: Any, tokens: Any) -> None:
    """Of `tokens` computed, full blocks of the prefix are found by others from now on."""
    seq, entries = e.seq, e.entries
    base, have = seq[slot, c.BASE_ENTRY], seq[slot, c.BASE_BLOCKS]
    if base < 0 or seq[slot, c.TAIL_ENTRY] >= 0:
        return
    full = min(seq[slot, c.PREFIX_TOKENS], tokens) // e.rep[r, c.BLOCK_SIZE]
    more = min(full - have, seq[slot, c.OWN])
    if more <= 0 or entries[r, base, c.E_BLOCKS] != have or entries[r, base, c.E_KEY] == 0:
        return
    entries[r, base, c.E_BLOCKS] += more
    entries[r, base, c.E_HELD] += more
    seq[slot, c.BASE_BLOCKS] += more
    seq[slot, c.OWN] -= more
    offload_entry(e, r, base)


@lean
def _leave_tail(e: Any, r: Any, slot: Any, tokens: Any) -> None:
    """Of its own blocks the full ones become, or lengthen, its tail's entry."""
    seq, entries = e.seq, e.entries
    key = seq[slot, c.TAIL]
    if key == 0 or e.rep[r, c.CACHE_LIMIT] <= 0:
        return
    shared = seq[slot, c.BASE_BLOCKS] + seq[slot, c.TAIL_BLOCKS]
    more = min(tokens // e.rep[r, c.BLOCK_SIZE] - shared, seq[slot, c.OWN])
    if more <= 0:
        return
    tail, base = seq[slot, c.TAIL_ENTRY], seq[slot, c.BASE_ENTRY]
    if tail < 0:
        if find_entry(e, r, key) >= 0:
            return
        tail = new_entry(e, r, key)
        if tail < 0:
            return
        if base >= 0 and seq[slot, c.BASE_BLOCKS] > 0:
            entries[r, tail, c.E_BASE] = base
            entries[r, tail, c.E_BASE_BLOCKS] = seq[slot, c.BASE_BLOCKS]
            entries[r, tail, c.E_BASE_SERIAL] = entries[r, base, c.E_SERIAL]
        hold_entry(e, r, tail, 0)
        seq[slot, c.TAIL_ENTRY] = tail
    if entries[r, tail, c.E_BLOCKS] != seq[slot, c.TAIL_BLOCKS] or entries[r, tail, c.E_KEY] == 0:
        return
    entries[r, tail, c.E_BLOCKS] += more
    entries[r, tail, c.E_HELD] += more
    seq[slot, c.TAIL_BLOCKS] += more
    seq[slot, c.OWN] -= more
    offload_entry(e, r, tail)


@lean
def release(e: Any, r: Any, slot: Any) -> None:
    """Give back all blocks of a request, its last ones to be overwritten first."""
    seq = e.seq
    _leave_tail(e, r, slot, seq[slot, c.COMPUTED])
    give_blocks(e, r, seq[slot, c.OWN])
    seq[slot, c.OWN] = 0
    for entry, blocks in ((c.TAIL_ENTRY, c.TAIL_BLOCKS), (c.BASE_ENTRY, c.BASE_BLOCKS)):
        if seq[slot, entry] >= 0:
            let_entry(e, r, seq[slot, entry])
        seq[slot, entry], seq[slot, blocks] = -1, 0
    seq[slot, c.COMPUTED] = 0


@lean
def own_blocks(e: Any, r: Any, slot: Any, tokens: Any) -> None:
    """Take blocks until its context of `tokens` fits; the caller knows that they are free."""
    seq = e.seq
    held = seq[slot, c.BASE_BLOCKS] + seq[slot, c.TAIL_BLOCKS] + seq[slot, c.OWN]
    more = -(-tokens // e.rep[r, c.BLOCK_SIZE]) - held
    if more > 0:
        take_blocks(e, r, more)
        seq[slot, c.OWN] += more
