"""KV blocks of a replica: counted, not named; shared by content; the unused ones in an LRU.

As in vLLM a block that a request gives back keeps its content until it is taken again, the
longest unused first, a request's last blocks before its first. So the LRU is a list of
*entries*: contents that can be found again by a key, and stretches without a key. Entries of
a prefix are shared by all who begin with it; those of a tail (a conversation, a preempted
request) continue a prefix. BLOCKS = CLEAN + CACHE + blocks held, at all times.
"""

from typing import Any

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.world import engine_layout as c


@lean_inlined
def free_blocks(e: Any, r: Any) -> Any:
    """Blocks that may be taken, those with content of old included."""
    return e.rep[r, c.CLEAN] + e.rep[r, c.CACHE]


@lean_inlined
def bucket_of(e: Any, key: Any) -> Any:
    """Row of `buckets` a key is chained in (Fibonacci hashing)."""
    mixed = (key ^ (key >> 31)) * 0x1E3779B97F4A7C15
    return (mixed >> 20) & (e.buckets.shape[1] - 1)


@lean
def find_entry(e: Any, r: Any, key: Any) -> Any:
    """The entry of that key, or -1."""
    at = e.buckets[r, bucket_of(e, key)]
    while at >= 0 and e.entries[r, at, c.E_KEY] != key:
        at = e.entries[r, at, c.E_CHAIN]
    return at


@lean_inlined
def _unhash(e: Any, r: Any, at: Any) -> None:
    entries = e.entries
    bucket = bucket_of(e, entries[r, at, c.E_KEY])
    chain = e.buckets[r, bucket]
    if chain == at:
        e.buckets[r, bucket] = entries[r, at, c.E_CHAIN]
    else:
        while entries[r, chain, c.E_CHAIN] != at:
            chain = entries[r, chain, c.E_CHAIN]
        entries[r, chain, c.E_CHAIN] = entries[r, at, c.E_CHAIN]
    entries[r, at, c.E_KEY] = 0


@lean
def _forget_oldest(e: Any, r: Any) -> None:
    """Content is many small pieces: the longest unused goes, if nobody else counts on it."""
    rep, entries, at = e.rep, e.entries, e.rep[r, c.LRU_HEAD]
    if at < 0 or entries[r, at, c.E_REFS] > 0 or entries[r, at, c.E_TIER] > 0:
        return
    idle = entries[r, at, c.E_IDLE]
    entries[r, at, c.E_BLOCKS] -= idle
    entries[r, at, c.E_IDLE] = 0
    rep[r, c.CACHE] -= idle
    rep[r, c.CLEAN] += idle
    if entries[r, at, c.E_KEY] != 0:
        rep[r, c.EVICTED] += idle
    _cut(e, r, at, c.LRU_HEAD, c.LRU_TAIL, c.E_BEFORE, c.E_AFTER)
    _drop_if_empty(e, r, at)


@lean
def new_entry(e: Any, r: Any, key: Any) -> Any:
    """An empty entry (key 0: a stretch without one), or -1 when there is no room for it."""
    if e.rep[r, c.ENTRY_FREE] < 0:
        _forget_oldest(e, r)
    at = e.rep[r, c.ENTRY_FREE]
    if at < 0:
        return at
    entries = e.entries
    e.rep[r, c.ENTRY_FREE] = entries[r, at, c.E_CHAIN]
    serial = entries[r, at, c.E_SERIAL] + 1
    entries[r, at, :] = 0
    entries[r, at, c.E_SERIAL] = serial
    entries[r, at, c.E_KEY] = key
    for link in (c.E_CHAIN, c.E_BASE, c.E_BEFORE, c.E_AFTER, c.E_TIER_BEFORE, c.E_TIER_AFTER):
        entries[r, at, link] = -1
    if key != 0:
        bucket = bucket_of(e, key)
        entries[r, at, c.E_CHAIN] = e.buckets[r, bucket]
        e.buckets[r, bucket] = at
    return at


@lean_inlined
def _cut(e: Any, r: Any, at: Any, head: Any, tail: Any, before: Any, after: Any) -> None:
    b, a = e.entries[r, at, before], e.entries[r, at, after]
    if b >= 0:
        e.entries[r, b, after] = a
    else:
        e.rep[r, head] = a
    if a >= 0:
        e.entries[r, a, before] = b
    else:
        e.rep[r, tail] = b
    e.entries[r, at, before] = -1
    e.entries[r, at, after] = -1


@lean_inlined
def _push(e: Any, r: Any, at: Any, head: Any, tail: Any, before: Any, after: Any) -> None:
    last = e.rep[r, tail]
    e.entries[r, at, before] = last
    e.entries[r, at, after] = -1
    if last >= 0:
        e.entries[r, last, after] = at
    else:
        e.rep[r, head] = at
    e.rep[r, tail] = at


@lean_inlined
def _drop_if_empty(e: Any, r: Any, at: Any) -> None:
    entries = e.entries
    used = entries[r, at, c.E_BLOCKS] + entries[r, at, c.E_REFS] + entries[r, at, c.E_TIER]
    if used == 0:
        if entries[r, at, c.E_KEY] != 0:
            _unhash(e, r, at)
        entries[r, at, c.E_SERIAL] += 1  # tails that continue it find that it is gone
        entries[r, at, c.E_CHAIN] = e.rep[r, c.ENTRY_FREE]
        e.rep[r, c.ENTRY_FREE] = at


@lean
def take_blocks(e: Any, r: Any, count: Any) -> None:
    """Take blocks that are free (the caller has looked): clean ones, then the LRU's oldest."""
    rep, entries = e.rep, e.entries
    part = min(max(rep[r, c.CLEAN], 0), count)
    rep[r, c.CLEAN] -= part
    left = count - part
    while left > 0:
        at = rep[r, c.LRU_HEAD]
        part = min(left, entries[r, at, c.E_IDLE])
        entries[r, at, c.E_IDLE] -= part
        entries[r, at, c.E_BLOCKS] -= part
        rep[r, c.CACHE] -= part
        if entries[r, at, c.E_KEY] != 0:
            rep[r, c.EVICTED] += part
        left -= part
        if entries[r, at, c.E_IDLE] == 0:
            _cut(e, r, at, c.LRU_HEAD, c.LRU_TAIL, c.E_BEFORE, c.E_AFTER)
            _drop_if_empty(e, r, at)


@lean
def trim_cache(e: Any, r: Any) -> None:
    """Hold the LRU to its limit, and let it pay for blocks that were taken away."""
    rep = e.rep
    over = max(rep[r, c.CACHE] - rep[r, c.CACHE_LIMIT], -rep[r, c.CLEAN])
    over = min(over, rep[r, c.CACHE])
    if over > 0:
        clean = rep[r, c.CLEAN]
        rep[r, c.CLEAN] = 0
        take_blocks(e, r, over)
        rep[r, c.CLEAN] = clean + over


@lean
def give_blocks(e: Any, r: Any, count: Any) -> None:
    """Blocks whose content nobody will look for go to the young end of the LRU."""
    rep = e.rep
    if count <= 0:
        return
    at = -1
    if rep[r, c.CACHE_LIMIT] > 0:
        at = rep[r, c.LRU_TAIL]
        if at < 0 or e.entries[r, at, c.E_KEY] != 0 or e.entries[r, at, c.E_HELD] > 0:
            at = new_entry(e, r, 0)
            if at >= 0:
                _push(e, r, at, c.LRU_HEAD, c.LRU_TAIL, c.E_BEFORE, c.E_AFTER)
    if at < 0:
        rep[r, c.CLEAN] += count
        return
    e.entries[r, at, c.E_BLOCKS] += count
    e.entries[r, at, c.E_IDLE] += count
    rep[r, c.CACHE] += count
    trim_cache(e, r)


@lean_inlined
def touch_cost(e: Any, r: Any, at: Any, want: Any) -> Any:
    """Free blocks that holding the first `want` of an entry would use up."""
    return max(want - e.entries[r, at, c.E_HELD], 0) if at >= 0 else 0


@lean
def hold_entry(e: Any, r: Any, at: Any, want: Any) -> None:
    """One more holds the first `want` blocks of an entry."""
    entries = e.entries
    entries[r, at, c.E_REFS] += 1
    more = want - entries[r, at, c.E_HELD]
    if more > 0:
        entries[r, at, c.E_HELD] += more
        entries[r, at, c.E_IDLE] -= more
        e.rep[r, c.CACHE] -= more
        if entries[r, at, c.E_IDLE] == 0:
            _cut(e, r, at, c.LRU_HEAD, c.LRU_TAIL, c.E_BEFORE, c.E_AFTER)


@lean
def let_entry(e: Any, r: Any, at: Any) -> None:
    """One less holds an entry; the last one gives its blocks to the young end of the LRU."""
    rep, entries = e.rep, e.entries
    entries[r, at, c.E_REFS] -= 1
    if entries[r, at, c.E_REFS] > 0:
        return
    held = entries[r, at, c.E_HELD]
    if held > 0:
        if entries[r, at, c.E_IDLE] > 0:
            _cut(e, r, at, c.LRU_HEAD, c.LRU_TAIL, c.E_BEFORE, c.E_AFTER)
        entries[r, at, c.E_HELD] = 0
        entries[r, at, c.E_IDLE] += held
        rep[r, c.CACHE] += held
        _push(e, r, at, c.LRU_HEAD, c.LRU_TAIL, c.E_BEFORE, c.E_AFTER)
        trim_cache(e, r)
    else:
        _drop_if_empty(e, r, at)


@lean
def offload_entry(e: Any, r: Any, at: Any) -> None:
    """Write an entry through to the offload tier; its oldest entries make room."""
    rep, entries = e.rep, e.entries
    if rep[r, c.TIER_BLOCKS] <= 0 or entries[r, at, c.E_KEY] == 0:
        return
    if entries[r, at, c.E_TIER] > 0:
        _cut(e, r, at, c.TIER_HEAD, c.TIER_TAIL, c.E_TIER_BEFORE, c.E_TIER_AFTER)
    more = max(entries[r, at, c.E_BLOCKS] - entries[r, at, c.E_TIER], 0)
    entries[r, at, c.E_TIER] += more
    rep[r, c.TIER_USED] += more
    if entries[r, at, c.E_TIER] > 0:
        _push(e, r, at, c.TIER_HEAD, c.TIER_TAIL, c.E_TIER_BEFORE, c.E_TIER_AFTER)
    while rep[r, c.TIER_USED] > rep[r, c.TIER_BLOCKS]:
        oldest = rep[r, c.TIER_HEAD]
        _cut(e, r, oldest, c.TIER_HEAD, c.TIER_TAIL, c.E_TIER_BEFORE, c.E_TIER_AFTER)
        rep[r, c.TIER_USED] -= entries[r, oldest, c.E_TIER]
        entries[r, oldest, c.E_TIER] = 0
        if oldest != at:
            _drop_if_empty(e, r, oldest)
