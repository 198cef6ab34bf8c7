"""The intervals of one request: which hop was active from when to when.

Up to the first token a hop's interval ends where it passed its own first token on, and no
later than any hop outside it did; up to the last token likewise. What follows the engine's
first token so belongs outward, never to decode, and a gateway that buffers is seen. Where
several hops don't tell when they passed it on, it is the outermost of them that held it.
"""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch.compiling import inlined
from tailburn.collector.stitch.halves import decodes, prefills
from tailburn.collector.stitch.layout import (
    DECODE,
    KV_LOAD,
    KV_TRANSFER,
    PREFILL,
    QUEUE,
    ROLE,
    SERVICE,
)
from tailburn.collector.stitch.places import ENGINE
from tailburn.collector.stitch.tree import CALL, EDGE, PART, SERVER
from tailburn.collector.stitch.vantage import AT_ENGINE, V_FIRST, V_SPAN
from tailburn.engine.compiled import Int
from tailburn.engine.names import HOP_INDEX, HOPS

QUEUE_HOP, PREFILL_HOP, DECODE_HOP = HOP_INDEX["queue"], HOP_INDEX["prefill"], HOP_INDEX["decode"]
KV_TRANSFER_HOP, KV_LOAD_HOP = HOP_INDEX["kv_transfer"], HOP_INDEX["kv_load"]
RETRY_HOP = HOP_INDEX["retry"]
DEPTHS = len(HOPS)
FOREVER = np.iinfo(np.int64).max

INTERVALS_PER_SPAN = 6
"""A server's own and its queue, prefill, decode, KV transfer and KV load."""

W = NDArray[np.int64]
N = NDArray[np.int32]


@inlined
def _limits(
    narrow: N,
    member: W,
    count: Int,
    hop: W,
    lost: NDArray[np.int8],
    halves: bool,
    passed: W,
    outer: W,
    inner: W,
) -> None:
    """Per depth: the earliest `passed` of any hop outside it, and of any server inside it."""
    at = np.full(DEPTHS, FOREVER, np.int64)
    for i in range(count):
        k = member[i]
        role = narrow[k, ROLE]
        if lost[k] or hop[k] < 0 or passed[k] == 0 or (role != CALL and role != SERVER):
            continue
        if halves and prefills(narrow, hop, k):
            continue
        at[hop[k]] = min(at[hop[k]], passed[k])
    least = FOREVER
    for h in range(DEPTHS):
        outer[h] = least
        least = min(least, at[h])
    least = FOREVER
    for h in range(DEPTHS - 1, -1, -1):
        inner[h] = least
        least = min(least, at[h])


@inlined
def _is_inside(narrow: N, member: W, count: Int, hop: W, lost: NDArray[np.int8], h: Int) -> bool:
    """Whether a server's span outside hop `h` is there."""
    for i in range(count):
        k = member[i]
        if narrow[k, ROLE] == SERVER and 0 <= hop[k] < h and not lost[k]:
            return True
    return False


@inlined
def _answered(narrow: N, member: W, count: Int) -> bool:
    """Whether any server's span is there: else nothing says where the caller waited."""
    for i in range(count):
        if narrow[member[i], ROLE] == SERVER:
            return True
    return False


@inlined
def _put(begin: W, end: W, which: W, n: Int, h: Int, a: Int, b: Int) -> Int:
    if b <= a:
        return n
    begin[n] = a
    end[n] = b
    which[n] = h
    return n + 1


@inlined
def _put_transfer(
    wide: W, k: Int, start: W, first: W, cut: Int, begin: W, end: W, which: W, n: Int
) -> Int:
    if wide[k, KV_TRANSFER] <= 0:
        return n
    moving = max(first[k] - wide[k, KV_TRANSFER], start[k])
    return _put(begin, end, which, n, KV_TRANSFER_HOP, moving, min(first[k], cut))


@inlined
def _engine_phases(
    wide: W, k: Int, start: W, first: W, cut: Int, begin: W, end: W, which: W, n: Int
) -> Int:
    """The phases before the first token that an engine tells as durations.

    They lie end to end up to the first token: KV load, queue, prefill; a KV transfer ends
    with the first token. Without a first token or a prefill only the queue can be placed, at
    the start.
    """
    queue, prefill = max(wide[k, QUEUE], 0), max(wide[k, PREFILL], 0)
    if first[k] > 0 and wide[k, PREFILL] < 0:
        n = _put(begin, end, which, n, QUEUE_HOP, start[k], min(start[k] + queue, cut))
        return _put_transfer(wide, k, start, first, cut, begin, end, which, n)
    if first[k] == 0:
        return _put(begin, end, which, n, QUEUE_HOP, start[k], min(start[k] + queue, cut))
    scheduled = max(first[k] - prefill, start[k])
    n = _put(begin, end, which, n, PREFILL_HOP, scheduled, min(first[k], cut))
    enqueued = max(scheduled - queue, start[k])
    n = _put(begin, end, which, n, QUEUE_HOP, enqueued, min(scheduled, cut))
    if wide[k, KV_LOAD] > 0:
        loading = max(scheduled - wide[k, KV_LOAD], start[k])
        n = _put(begin, end, which, n, KV_LOAD_HOP, loading, min(scheduled, cut))
    return _put_transfer(wide, k, start, first, cut, begin, end, which, n)


@inlined
def until_first_token(
    wide: W,
    narrow: N,
    member: W,
    count: Int,
    hop: W,
    lost: NDArray[np.int8],
    start: W,
    stop: W,
    first: W,
    halves: bool,
    vantage: W,
    begin: W,
    end: W,
    which: W,
) -> Int:
    """Fill `begin`, `end`, `which` with the intervals that count up to the first token."""
    if not _answered(narrow, member, count):
        return 0
    outer = np.empty(DEPTHS, np.int64)
    inner = np.empty(DEPTHS, np.int64)
    _limits(narrow, member, count, hop, lost, halves, first, outer, inner)
    engine = vantage[AT_ENGINE, V_SPAN]
    engine_first = vantage[AT_ENGINE, V_FIRST]
    n = 0
    for i in range(count):
        k = member[i]
        h = hop[k]
        if h < 0 or lost[k] or h == DECODE_HOP:
            continue
        role = narrow[k, ROLE]
        b = min(stop[k], outer[h])
        if (role == CALL or role == SERVER) and first[k] > 0:
            b = min(b, first[k])
        elif role == SERVER and engine_first > 0:
            if h == ENGINE or _is_inside(narrow, member, count, hop, lost, h):
                b = min(b, engine_first)
        elif role == EDGE:
            b = min(b, inner[h])
        elif role == PART and engine >= 0 and engine_first > 0 and h > ENGINE:
            if narrow[k, SERVICE] == narrow[engine, SERVICE]:
                b = min(b, engine_first)
        n = _put(begin, end, which, n, h, start[k], b)
        if role == SERVER and h == ENGINE and not (halves and decodes(narrow, hop, k)):
            n = _engine_phases(wide, k, start, first, b, begin, end, which, n)
    return n


@inlined
def until_last_token(
    wide: W,
    narrow: N,
    member: W,
    count: Int,
    hop: W,
    lost: NDArray[np.int8],
    start: W,
    stop: W,
    first: W,
    last: W,
    halves: bool,
    begin: W,
    end: W,
    which: W,
) -> Int:
    """Fill `begin`, `end`, `which` with the intervals that count from first to last token."""
    if not _answered(narrow, member, count):
        return 0
    outer = np.empty(DEPTHS, np.int64)
    inner = np.empty(DEPTHS, np.int64)
    _limits(narrow, member, count, hop, lost, halves, last, outer, inner)
    n = 0
    for i in range(count):
        k = member[i]
        h = hop[k]
        if h < 0 or lost[k]:
            continue
        role = narrow[k, ROLE]
        b = min(stop[k], outer[h])
        if (role == CALL or role == SERVER) and last[k] > 0:
            b = min(b, last[k])
        elif role == EDGE:
            b = min(b, inner[h])
        n = _put(begin, end, which, n, h, start[k], b)
        if role == SERVER and h == ENGINE and first[k] > 0:
            decoded = first[k] + wide[k, DECODE] if wide[k, DECODE] >= 0 else b
            n = _put(begin, end, which, n, DECODE_HOP, first[k], min(decoded, b))
            if not (halves and decodes(narrow, hop, k)):
                n = _engine_phases(wide, k, start, first, b, begin, end, which, n)
    return n


@inlined
def add_waits(wait_begin: W, wait_end: W, waits: Int, begin: W, end: W, which: W, n: Int) -> Int:
    """Add the waits for retries: the deepest hop, whatever else ran meanwhile."""
    for i in range(waits):
        n = _put(begin, end, which, n, RETRY_HOP, wait_begin[i], wait_end[i])
    return n
