"""Requests whose trace was cut: their parts are found again by the ids they share."""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch.broken import (
    adopt_parts,
    find_extents,
    has_orphans,
    holds,
    inner_rank,
    merge_broken,
    outer_rank,
    root_anchor,
)
from tailburn.collector.stitch.clocks import read_by_one_clock
from tailburn.collector.stitch.compiling import inner
from tailburn.collector.stitch.layout import CLASS, FLAG_JOINED, OWN, PEER, ROLE
from tailburn.collector.stitch.tree import (
    CALL,
    CONTAINMENT_SLACK_NS,
    JOIN_SLACK_NS,
    MOST_ANCHORS,
    NO_ANCHOR,
    SERVER,
    find_anchors,
)
from tailburn.engine.compiled import Int

W = NDArray[np.int64]
N = NDArray[np.int32]


@inner
def join_by_id(
    wide: W, narrow: N, read_ns: W, anchor: W, extent_ns: W, count: Int, merged: W, flags: W
) -> None:
    """Merge anchors whose spans bear the same id, inner into outer, where it holds its start."""
    ids = np.empty(2 * count, np.int64)
    owner = np.empty(2 * count, np.int64)
    n = 0
    for k in range(count):
        if anchor[k] < 0:
            continue
        for column in (OWN, PEER):
            if wide[k, column] != 0:
                ids[n] = wide[k, column]
                owner[n] = anchor[k]
                n += 1
    order = np.argsort(ids[:n], kind="mergesort")
    first = 0
    while first < n:
        last = first
        while last < n and ids[order[last]] == ids[order[first]]:
            last += 1
        for i in range(first, last):
            a = root_anchor(merged, owner[order[i]])
            b = _outer_of(wide, narrow, read_ns, extent_ns, merged, owner, order, first, last, a)
            if b >= 0:
                merged[a] = b
                flags[b] |= FLAG_JOINED | flags[a]
        first = last


@inner
def _outer_of(
    wide: W,
    narrow: N,
    read_ns: W,
    extent_ns: W,
    merged: W,
    owner: W,
    order: W,
    first: Int,
    last: Int,
    a: Int,
) -> Int:
    """The one outermost anchor, among those with the same id, that holds the start of `a`.

    Spans of one kind that overlap under one id are the choices of one request: the first to
    start stands for them.
    """
    if narrow[a, ROLE] == CALL:
        return NO_ANCHOR
    best = NO_ANCHOR
    best_rank = 0
    unique = True
    for i in range(first, last):
        b = root_anchor(merged, owner[order[i]])
        if b == a or b == best:
            continue
        rank = outer_rank(narrow, b)
        choice = b < a and narrow[b, CLASS] == narrow[a, CLASS] and narrow[a, ROLE] == SERVER
        same_kind = rank == outer_rank(narrow, a) and read_ns[b] >= read_ns[a]
        if not choice and (rank >= inner_rank(narrow, a) or same_kind):
            continue
        slack = CONTAINMENT_SLACK_NS if choice else JOIN_SLACK_NS
        if not holds(read_ns, extent_ns, b, a, slack):
            continue
        if best < 0 or rank < best_rank:
            best, best_rank, unique = b, rank, True
        elif rank == best_rank:
            strict_new = holds(read_ns, extent_ns, b, a, CONTAINMENT_SLACK_NS)
            strict_old = holds(read_ns, extent_ns, best, a, CONTAINMENT_SLACK_NS)
            if strict_new and not strict_old:
                best, unique = b, True
            elif strict_new == strict_old:
                unique = unique and choice
    return best if unique else NO_ANCHOR


@inner
def requests_of(
    wide: W,
    narrow: N,
    parent: W,
    count: Int,
    pool: tuple[W, W, W, W, W, W],
    stack: W,
    head: W,
    extent_ns: W,
    merged: W,
    request: W,
    flags: W,
) -> Int:
    """Fill `request` with the anchor of the request each span belongs to (NO_ANCHOR: none)
    and `flags` at the anchors. Returns the number of anchors before merging."""
    anchors = find_anchors(narrow, parent, count, stack, request, head)
    for k in range(count):
        merged[k] = k
        flags[k] = 0
    if anchors == 0:
        return 0
    orphans = has_orphans(narrow, parent, request, head, count)
    if anchors > MOST_ANCHORS or (anchors == 1 and not orphans):
        return anchors
    read_ns = np.empty(count, np.int64)
    slack_ns = CONTAINMENT_SLACK_NS + read_by_one_clock(wide, narrow, count, pool, read_ns)
    find_extents(wide, narrow, read_ns, request, count, extent_ns)
    if anchors > 1:
        merge_broken(
            wide, narrow, read_ns, slack_ns, parent, request, head, extent_ns, count, merged, flags
        )  # fmt: skip
        join_by_id(wide, narrow, read_ns, request, extent_ns, count, merged, flags)
    if orphans:
        adopt_parts(
            wide, narrow, read_ns, slack_ns, parent, request, head, extent_ns, count, merged, flags
        )  # fmt: skip
    for k in range(count):
        if request[k] >= 0:
            request[k] = root_anchor(merged, request[k])
    return anchors
