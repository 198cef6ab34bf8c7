"""Where requests stand in a replica: the queue by priority, those that wait for something."""

from typing import Any

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.links import unlink


@lean_inlined
def tell(e: Any, kind: Any, slot: Any, now: Any) -> None:
    """Append an event."""
    count = e.events[0, 0] + 1
    e.events[0, 0] = count
    e.events[count, 0] = kind
    e.events[count, 1] = slot
    e.events[count, 2] = now


@lean_inlined
def kick(e: Any, r: Any, now: Any) -> None:
    """Something changed for a replica that idles or only waits: have it looked at now."""
    rep = e.rep
    if rep[r, c.BUSY] == 0 and rep[r, c.WAITING_COUNT] > 0 and rep[r, c.READY_AT_NS] < c.FOREVER:
        rep[r, c.NEXT_NS] = max(now, rep[r, c.READY_AT_NS])


@lean_inlined
def level_of(e: Any, r: Any, slot: Any) -> Any:
    """Which of the waiting lists: one for all, or one a priority."""
    if e.rep[r, c.POLICY] == 0:
        return 0
    return min(max(e.seq[slot, c.PRIORITY], 0), c.PRIORITIES - 1)


@lean
def enqueue(e: Any, r: Any, slot: Any) -> None:
    """Into its waiting list at the back; one that was there before, where it stood."""
    seq, rep = e.seq, e.rep
    level = level_of(e, r, slot)
    order = seq[slot, c.ORDER]
    seq[slot, c.STATE] = c.WAITING
    rep[r, c.WAITING_COUNT] += 1
    after, before = -1, rep[r, c.WAIT_TAIL + level]
    if before >= 0 and seq[before, c.ORDER] > order:
        # Who comes back is older than nearly all: look from the front.
        before, after = -1, rep[r, c.WAIT_HEAD + level]
        while seq[after, c.ORDER] < order:
            before, after = after, seq[after, c.NEXT]
    seq[slot, c.PREV], seq[slot, c.NEXT] = before, after
    if before >= 0:
        seq[before, c.NEXT] = slot
    else:
        rep[r, c.WAIT_HEAD + level] = slot
    if after >= 0:
        seq[after, c.PREV] = slot
    else:
        rep[r, c.WAIT_TAIL + level] = slot


@lean
def dequeue(e: Any, r: Any, slot: Any) -> None:
    """Out of its waiting list."""
    level = level_of(e, r, slot)
    unlink(e.seq, slot, c.PREV, c.NEXT, e.rep, r, c.WAIT_HEAD + level, c.WAIT_TAIL + level)
    e.rep[r, c.WAITING_COUNT] -= 1


@lean
def block(e: Any, r: Any, slot: Any, reason: Any, ready: Any) -> None:
    """It waits for something until `ready`; not in a waiting list meanwhile."""
    seq, rep = e.seq, e.rep
    seq[slot, c.STATE], seq[slot, c.WAITS_FOR], seq[slot, c.READY_NS] = c.BLOCKED, reason, ready
    head = rep[r, c.BLOCKED_HEAD]
    seq[slot, c.NEXT], seq[slot, c.PREV] = head, -1
    if head >= 0:
        seq[head, c.PREV] = slot
    rep[r, c.BLOCKED_HEAD] = slot
    rep[r, c.BLOCKED_COUNT] += 1
    rep[r, c.WAITING_COUNT] += 1
    rep[r, c.BLOCKED_MIN_NS] = min(rep[r, c.BLOCKED_MIN_NS], ready)


@lean
def unblock(e: Any, r: Any, slot: Any) -> None:
    """It waits no longer; in no list now."""
    seq, rep = e.seq, e.rep
    before, after = seq[slot, c.PREV], seq[slot, c.NEXT]
    if before >= 0:
        seq[before, c.NEXT] = after
    else:
        rep[r, c.BLOCKED_HEAD] = after
    if after >= 0:
        seq[after, c.PREV] = before
    rep[r, c.BLOCKED_COUNT] -= 1
    rep[r, c.WAITING_COUNT] -= 1
    least, at = c.FOREVER, rep[r, c.BLOCKED_HEAD]
    while at >= 0:
        least = min(least, seq[at, c.READY_NS])
        at = seq[at, c.NEXT]
    rep[r, c.BLOCKED_MIN_NS] = least


@lean
def first_waiting(e: Any, r: Any, level: Any) -> Any:
    """First of the waiting lists from that level on, or -1."""
    while level < c.PRIORITIES:
        if e.rep[r, c.WAIT_HEAD + level] >= 0:
            return e.rep[r, c.WAIT_HEAD + level]
        level += 1
    return -1


@lean_inlined
def next_waiting(e: Any, r: Any, slot: Any) -> Any:
    """The one to look at after a waiting slot, or -1."""
    after = e.seq[slot, c.NEXT]
    return after if after >= 0 else first_waiting(e, r, level_of(e, r, slot) + 1)


@lean
def note_queued(e: Any, r: Any, now: Any) -> None:
    """The scheduler takes what was added since it last looked."""
    seq = e.seq
    for level in range(c.PRIORITIES):
        at = e.rep[r, c.WAIT_TAIL + level]
        while at >= 0 and seq[at, c.QUEUED_NS] < 0:
            seq[at, c.QUEUED_NS] = now
            at = seq[at, c.PREV]
