"""The clocks of a request's hosts: calls between them bound their offsets, and correct times."""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.hops.columns import EndIs
from tailburn.collector.stitch.clocks import (
    UNKNOWN_WIDTH_NS,
    clock_of,
    find_clock,
    known_elsewhere,
    observe,
    offset_of,
)
from tailburn.collector.stitch.compiling import inlined
from tailburn.collector.stitch.layout import (
    E2E,
    END,
    END_IS,
    OUTCOME,
    RECEIVED,
    ROLE,
    SERVICE,
    START,
    TRACE,
)
from tailburn.collector.stitch.tree import CALL, EDGE, INNER, SERVER
from tailburn.engine.compiled import Int

END_IS_END = int(EndIs.END)
FOREVER = np.int64(1 << 62)

W = NDArray[np.int64]
N = NDArray[np.int32]


@inlined
def _calls(narrow: N, q: Int, k: Int) -> bool:
    """Whether `q` is the call of server `k`, or the stay of one that shows no calls of its own."""
    role = narrow[q, ROLE]
    other = narrow[q, SERVICE] != narrow[k, SERVICE]
    return bool(role == EDGE or role == CALL or (role == SERVER and other))


@inlined
def observe_clocks(
    wide: W,
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    anchor: Int,
    pool: tuple[W, W, W, W, W, W],
) -> None:
    """Let each call between two clocks bound their offset."""
    for i in range(count):
        k = member[i]
        q = parent[k]
        if narrow[k, ROLE] != SERVER:
            continue
        if q < 0:
            if wide[k, TRACE] != wide[anchor, TRACE]:
                _observe_joined(wide, narrow, anchor, k, pool)
            continue
        if not _calls(narrow, q, k):
            continue
        caller, server = clock_of(narrow, q), clock_of(narrow, k)
        if caller == server or caller == 0 or server == 0:
            continue
        high = wide[k, START] - wide[q, START]
        low = wide[k, START] - wide[q, END]
        whole = narrow[q, END_IS] == END_IS_END and narrow[k, END_IS] == END_IS_END
        whole = whole and narrow[q, ROLE] != SERVER
        tight = wide[k, END] - wide[q, END]
        if whole and tight <= high and narrow[q, OUTCOME] <= 1:
            low = max(low, tight)
        told = _told_end(wide, narrow, parent, k, q)
        if told <= high:
            low = max(low, told)
        if low <= high:
            observe(*pool, caller, server, low, high, wide[k, RECEIVED])


@inlined
def _observe_joined(wide: W, narrow: N, anchor: Int, k: Int, pool: tuple[W, W, W, W, W, W]) -> None:
    """What an id joins to a request was within it, whoever stood between."""
    caller, server = clock_of(narrow, anchor), clock_of(narrow, k)
    if caller == server or caller == 0 or server == 0:
        return
    high = wide[k, START] - wide[anchor, START]
    low = -FOREVER
    if narrow[anchor, END_IS] == END_IS_END and narrow[anchor, OUTCOME] <= 1:
        low = wide[k, START] - wide[anchor, END]
        tight = wide[k, END] - wide[anchor, END]
        if narrow[k, END_IS] == END_IS_END and tight <= high:
            low = tight
    if -FOREVER < low <= high:
        observe(*pool, caller, server, low, high, wide[k, RECEIVED])


@inlined
def _told_end(wide: W, narrow: N, parent: W, k: Int, q: Int) -> Int:
    """How far server `k` says it sent its last token after its caller's own stay ended.

    A call that ends at headers, or late, bounds little; the stay of the one who made it does.
    """
    if wide[k, E2E] <= 0 or narrow[k, OUTCOME] > 1:
        return -FOREVER
    above = q
    for _ in range(8):
        if above < 0 or clock_of(narrow, above) != clock_of(narrow, q):
            break
        role = narrow[above, ROLE]
        if (role == SERVER or role == CALL) and narrow[above, END_IS] == END_IS_END:
            if narrow[above, OUTCOME] > 1:
                break
            return wide[k, START] + wide[k, E2E] - wide[above, END]
        above = parent[above]
    return -FOREVER


@inlined
def _that_can_be(
    wide: W, narrow: N, parent: W, k: Int, q: Int, offset: Int, half: Int
) -> tuple[Int, Int]:
    """(offset, half width), moved to what this call itself allows: a clock may have been set."""
    if not _calls(narrow, q, k):
        return offset, half
    high = wide[k, START] - wide[q, START]
    low = wide[k, START] - wide[q, END]
    told = _told_end(wide, narrow, parent, k, q)
    if told <= high:
        low = max(low, told)
    if low <= offset <= high or low > high:
        return offset, half
    return min(max(offset, low), high), max(half, high - low)


@inlined
def shift_clocks(
    wide: W,
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    anchor: Int,
    pool: tuple[W, W, W, W, W, W],
    clocks: W,
    shift_ns: W,
) -> tuple[Int, Int]:
    """Fill `shift_ns` (by row): what to take off a span's times to read the anchor's clock.

    `clocks` is scratch, (n, 3). Returns (largest shift, its chain's half width) in ns; the
    half width is UNKNOWN_WIDTH_NS where a pair of clocks was never bounded.
    """
    clocks[0, 0] = clock_of(narrow, anchor)
    clocks[0, 1] = 0
    clocks[0, 2] = 0
    known = 1
    largest, width = 0, 0
    for _ in range(4):
        before = known
        for i in range(count):
            k = member[i]
            q = parent[k]
            if narrow[k, ROLE] != SERVER or q < 0 or known >= len(clocks):
                continue
            mine, callers = clock_of(narrow, k), clock_of(narrow, q)
            if mine == 0 or find_clock(clocks, known, mine) >= 0:
                continue
            c = find_clock(clocks, known, callers)
            if c < 0:
                continue
            offset, half = offset_of(*pool, callers, mine, wide[k, RECEIVED])
            offset, half = _that_can_be(wide, narrow, parent, k, q, offset, half)
            clocks[known, 0] = mine
            clocks[known, 1] = clocks[c, 1] + offset
            clocks[known, 2] = (
                UNKNOWN_WIDTH_NS if half < 0 or clocks[c, 2] < 0 else clocks[c, 2] + half
            )
            if abs(clocks[known, 1]) > abs(largest):
                largest = clocks[known, 1]
            if width >= 0 and (clocks[known, 2] < 0 or clocks[known, 2] > width):
                width = clocks[known, 2]
            known += 1
        if known == before:
            break
    for i in range(count):
        k = member[i]
        mine = clock_of(narrow, k)
        c = find_clock(clocks, known, mine)
        if c < 0 and mine != 0 and narrow[k, ROLE] != INNER and known < len(clocks):
            c = known_elsewhere(pool, clocks, known, mine, wide[k, RECEIVED])
            if c >= 0:
                known += 1
                width = max(width, clocks[c, 2]) if width >= 0 else width
                if abs(clocks[c, 1]) > abs(largest):
                    largest = clocks[c, 1]
        if c < 0 and mine != 0 and narrow[k, ROLE] != INNER:
            width = UNKNOWN_WIDTH_NS
        shift_ns[k] = clocks[c, 1] if c >= 0 else 0
    return largest, width
