"""Requests whose chain of parents is broken: what lies below a lost span finds its anchor again.

Times of different hosts are compared as `read_ns` says, by one clock as far as calls bound them.
"""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch.compiling import inlined, inner
from tailburn.collector.stitch.layout import (
    CLASS,
    END,
    END_IS,
    FLAG_INFERRED,
    HOP,
    PARENT,
    ROLE,
    SERVICE,
    START,
    TRACE,
)
from tailburn.collector.stitch.tree import (
    CALL,
    EDGE,
    ENGINE,
    GATEWAY,
    INNER,
    LOOSE,
    NO_ANCHOR,
    PARENT_MISSING,
    PART,
)
from tailburn.engine.compiled import Int

MOST_ROUNDS = 4
"""Two that could hold a span may turn out to be of one request, once they are held themselves."""

W = NDArray[np.int64]
N = NDArray[np.int32]


@inlined
def root_anchor(merged: W, a: Int) -> Int:
    while merged[a] != a:
        a = merged[a]
    return a


@inlined
def outer_rank(narrow: N, b: Int) -> Int:
    role = narrow[b, ROLE]
    if role == CALL:
        return 0
    if role == EDGE:
        return 1
    return GATEWAY if narrow[b, HOP] < 0 else narrow[b, HOP]


@inlined
def inner_rank(narrow: N, a: Int) -> Int:
    role = narrow[a, ROLE]
    if role == CALL:
        return -1
    return ENGINE if narrow[a, HOP] < 0 else narrow[a, HOP]


@inlined
def holds(read_ns: W, extent_ns: W, b: Int, a: Int, slack_ns: Int) -> bool:
    return read_ns[b] - slack_ns <= read_ns[a] <= extent_ns[b] + slack_ns


@inlined
def find_extents(wide: W, narrow: N, read_ns: W, anchor: W, count: Int, extent_ns: W) -> None:
    """Fill `extent_ns` with the last trustworthy end among each anchor's spans."""
    for k in range(count):
        extent_ns[k] = read_ns[k]
    for k in range(count):
        a = anchor[k]
        if a >= 0 and narrow[k, END_IS] != LOOSE:
            extent_ns[a] = max(extent_ns[a], read_ns[k] + wide[k, END] - wide[k, START])


@inlined
def has_orphans(narrow: N, parent: W, anchor: W, head: W, count: Int) -> bool:
    """Whether a part of a hop has no anchor because its way up is broken."""
    for k in range(count):
        if anchor[k] == NO_ANCHOR and _is_orphan(narrow, parent, head, k):
            return True
    return False


@inlined
def _is_orphan(narrow: N, parent: W, head: W, k: Int) -> bool:
    role = narrow[k, ROLE]
    return bool((role == PART or role == INNER) and parent[head[k]] == PARENT_MISSING)


@inlined
def _list_anchors(anchor: W, count: Int, listed: W) -> Int:
    n = 0
    for k in range(count):
        if anchor[k] == k:
            listed[n] = k
            n += 1
    return n


@inner
def merge_broken(
    wide: W,
    narrow: N,
    read_ns: W,
    slack_ns: Int,
    parent: W,
    anchor: W,
    head: W,
    extent_ns: W,
    count: Int,
    merged: W,
    flags: W,
) -> None:
    """Put anchors below a missing parent into the request that holds them.

    First the twins: two servers' spans for one hop are siblings under one lost parent. Then
    what is deeper: into the only anchor of its trace whose interval holds its start.
    """
    listed = np.empty(count, np.int64)
    anchors = _list_anchors(anchor, count, listed)
    for i in range(anchors):
        a = listed[i]
        if parent[head[a]] != PARENT_MISSING or head[a] != a or narrow[a, ROLE] == CALL:
            continue
        for j in range(i):
            b = listed[j]
            if (
                parent[b] == PARENT_MISSING
                and wide[b, PARENT] == wide[a, PARENT]
                and wide[b, TRACE] == wide[a, TRACE]
                and narrow[b, ROLE] != CALL
                and (
                    narrow[b, CLASS] != narrow[a, CLASS] or narrow[b, SERVICE] != narrow[a, SERVICE]
                )
                and holds(read_ns, extent_ns, b, a, slack_ns)
            ):
                merged[a] = root_anchor(merged, b)
                flags[merged[a]] |= FLAG_INFERRED
                break
    for _ in range(MOST_ROUNDS):
        found = False
        for i in range(anchors):
            a = listed[i]
            if merged[a] != a or narrow[a, ROLE] == CALL or parent[head[a]] != PARENT_MISSING:
                continue
            holder = _only_holder(
                wide, narrow, read_ns, slack_ns, extent_ns, listed[:anchors], merged, a
            )
            if holder >= 0:
                merged[a] = holder
                flags[holder] |= FLAG_INFERRED
                found = True
        if not found:
            break


@inner
def _only_holder(
    wide: W,
    narrow: N,
    read_ns: W,
    slack_ns: Int,
    extent_ns: W,
    anchors: W,
    merged: W,
    a: Int,
) -> Int:
    holder = NO_ANCHOR
    for b in anchors:
        if b == a or wide[b, TRACE] != wide[a, TRACE]:
            continue
        if outer_rank(narrow, b) >= inner_rank(narrow, a):
            continue
        if not holds(read_ns, extent_ns, b, a, slack_ns):
            continue
        root = root_anchor(merged, b)
        if root == a or root == holder:
            continue
        if holder >= 0:
            return NO_ANCHOR
        holder = root
    return holder


@inner
def adopt_parts(
    wide: W,
    narrow: N,
    read_ns: W,
    slack_ns: Int,
    parent: W,
    anchor: W,
    head: W,
    extent_ns: W,
    count: Int,
    merged: W,
    flags: W,
) -> None:
    """Give parts whose way up is broken to the only anchor that holds them."""
    listed = np.empty(count, np.int64)
    anchors = _list_anchors(anchor, count, listed)
    for k in range(count):
        if anchor[k] != NO_ANCHOR or not _is_orphan(narrow, parent, head, k):
            continue
        holder = NO_ANCHOR
        for b in listed[:anchors]:
            if wide[b, TRACE] != wide[k, TRACE]:
                continue
            if not holds(read_ns, extent_ns, b, k, slack_ns):
                continue
            root = root_anchor(merged, b)
            if holder >= 0 and root != holder:
                holder = NO_ANCHOR
                break
            holder = root
        if holder >= 0:
            anchor[k] = holder
            flags[holder] |= FLAG_INFERRED
