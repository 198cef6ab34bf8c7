"""Which spans of a unit belong to which request.

A unit is one trace, or several that share a request id. Its spans come as rows of `wide`
and `narrow` (see `layout`) in canonical order: by start, then end, span id, digest.

An anchor is the outermost span that is an LLM call. Every other span belongs to the nearest
anchor above it; where the chain to it is broken, to the only anchor whose interval holds it
(flagged inferred); where propagation was cut, to the one that bears the same id (joined).
"""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.hops.columns import EndIs, Role
from tailburn.collector.stitch.compiling import inlined, inner
from tailburn.collector.stitch.layout import (
    CLASS,
    END,
    END_IS,
    FLAG_INFERRED,
    FLAG_JOINED,
    HOP,
    OWN,
    PARENT,
    PEER,
    ROLE,
    SERVICE,
    SPAN,
    START,
    TRACE,
)
from tailburn.engine.compiled import Int
from tailburn.engine.names import HOP_INDEX

NO_PARENT = -1
PARENT_MISSING = -2
NO_ANCHOR = -1

CALL, SERVER, EDGE = int(Role.CALL), int(Role.SERVER), int(Role.EDGE)
PART, INNER = int(Role.PART), int(Role.INNER)
HEADERS, LOOSE = int(EndIs.HEADERS), int(EndIs.LOOSE)
GATEWAY, ENGINE = HOP_INDEX["gateway"], HOP_INDEX["engine"]

CONTAINMENT_SLACK_NS = 1_000_000
"""Spans of one host are stamped in different threads: a child may start this much early."""
JOIN_SLACK_NS = 2_000_000_000
"""An equal id is strong, and hosts' clocks differ: how far outside it may start."""
MOST_ANCHORS = 2048
"""Past this many anchors in one unit, spans are not matched pair by pair any more."""

MOST_TWINS = 64
"""Spans of one id that are told apart; the id of more is a sender's fault or an attack."""

_UNSET, _ON_PATH = -9, -8

W = NDArray[np.int64]
N = NDArray[np.int32]


@inlined
def mix(value: Int, seed: Int) -> Int:
    """A hash of 64 bits that a sender who doesn't know the seed can't steer."""
    x = np.uint64(value) ^ np.uint64(seed)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27)) ^ np.uint64(seed)) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(31))) & np.uint64(0x7FFFFFFFFFFFFFFF))


@inlined
def _same_span(wide: W, k: Int, span: Int, trace: Int) -> bool:
    return wide[k, SPAN] == span and wide[k, TRACE] == trace


@inlined
def _has_client_twin(wide: W, narrow: N, k: Int, seed: Int, slots: N, size: Int) -> bool:
    """Whether the caller's span of this server bears the same id, as Zipkin's clients share it."""
    j = mix(wide[k, SPAN] ^ wide[k, TRACE], seed) & (size - 1)
    while slots[j] >= 0:
        other = slots[j]
        calls = narrow[other, ROLE] == CALL or narrow[other, ROLE] == EDGE
        if calls and _same_span(wide, other, wide[k, SPAN], wide[k, TRACE]):
            return True
        j = (j + 1) & (size - 1)
    return False


@inlined
def _fits_better(wide: W, other: Int, best: Int, child: Int) -> bool:
    """Whether `other` is the likelier parent of `child`: the last to start before it."""
    start = wide[child, START]
    if wide[other, START] > start:
        return wide[best, START] > start and wide[other, START] < wide[best, START]
    return wide[best, START] > start or wide[other, START] > wide[best, START]


@inlined
def find_parents(wide: W, narrow: N, count: Int, seed: Int, slots: N, parent: W) -> bool:
    """Fill `parent` with the row of each span's parent, NO_PARENT or PARENT_MISSING.

    `slots` is scratch, at least four times `count` long. Where several spans bear the parent's
    id, the last to start before the child is meant. Returns whether one id stands for
    different spans, other than a caller and its server.
    """
    size = 16
    while size < 2 * count:
        size *= 2
    slots[:size] = -1
    conflict = False
    for k in range(count):
        j = mix(wide[k, SPAN] ^ wide[k, TRACE], seed) & (size - 1)
        twins = 0
        while slots[j] >= 0:
            other = slots[j]
            if _same_span(wide, other, wide[k, SPAN], wide[k, TRACE]):
                conflict = conflict or (narrow[k, ROLE] == SERVER) == (
                    narrow[other, ROLE] == SERVER
                )
                twins += 1
            j = (j + 1) & (size - 1)
        if twins < MOST_TWINS:
            slots[j] = k
    for k in range(count):
        wanted = wide[k, PARENT]
        parent[k] = NO_PARENT if wanted == 0 else PARENT_MISSING
        if narrow[k, ROLE] == SERVER and _has_client_twin(wide, narrow, k, seed, slots, size):
            wanted = wide[k, SPAN]
        if wanted == 0:
            continue
        j = mix(wanted ^ wide[k, TRACE], seed) & (size - 1)
        while slots[j] >= 0:
            other = slots[j]
            if other != k and _same_span(wide, other, wanted, wide[k, TRACE]):
                if parent[k] < 0 or _fits_better(wide, other, parent[k], k):
                    parent[k] = other
            j = (j + 1) & (size - 1)
    return conflict


@inlined
def find_anchors(narrow: N, parent: W, count: Int, stack: W, anchor: W, head: W) -> Int:
    """Fill `anchor` with the outermost candidate at or above each span, `head` with the
    uppermost span reached. Returns how many anchors there are. `stack` is scratch."""
    for k in range(count):
        anchor[k] = _UNSET
    anchors = 0
    for k in range(count):
        depth = 0
        current = k
        found = NO_ANCHOR
        top = k
        while anchor[current] == _UNSET:
            anchor[current] = _ON_PATH
            stack[depth] = current
            depth += 1
            above = parent[current]
            if above < 0 or anchor[above] == _ON_PATH:
                top = current
                break
            if anchor[above] != _UNSET:
                found = anchor[above]
                top = head[above]
                break
            current = above
        for d in range(depth - 1, -1, -1):
            x = stack[d]
            role = narrow[x, ROLE]
            if found == NO_ANCHOR and (role == CALL or role == SERVER or role == EDGE):
                found = x
                anchors += 1
            anchor[x] = found
            head[x] = top
    return anchors


@inlined
def _root(merged: W, a: Int) -> Int:
    while merged[a] != a:
        a = merged[a]
    return a


@inlined
def _outer_rank(narrow: N, b: Int) -> Int:
    role = narrow[b, ROLE]
    if role == CALL:
        return 0
    if role == EDGE:
        return 1
    return GATEWAY if narrow[b, HOP] < 0 else narrow[b, HOP]


@inlined
def _inner_rank(narrow: N, a: Int) -> Int:
    role = narrow[a, ROLE]
    if role == CALL:
        return -1
    return ENGINE if narrow[a, HOP] < 0 else narrow[a, HOP]


@inlined
def _holds(wide: W, extent_ns: W, b: Int, a: Int, slack_ns: Int) -> bool:
    start = wide[a, START]
    return wide[b, START] - slack_ns <= start <= extent_ns[b] + slack_ns


@inlined
def find_extents(wide: W, narrow: N, anchor: W, count: Int, extent_ns: W) -> None:
    """Fill `extent_ns` with the last trustworthy end among each anchor's spans."""
    for k in range(count):
        extent_ns[k] = wide[k, START]
    for k in range(count):
        a = anchor[k]
        if a >= 0 and narrow[k, END_IS] != LOOSE:
            extent_ns[a] = max(extent_ns[a], wide[k, END])


@inner
def merge_broken(
    wide: W, narrow: N, parent: W, anchor: W, head: W, extent_ns: W, count: Int, merged: W, flags: W
) -> None:
    """Put anchors below a missing parent into the request that holds them.

    First the twins: two servers' spans for one hop are siblings under one lost parent. Then
    what is deeper: into the only anchor of its trace whose interval holds its start.
    """
    for a in range(count):
        broken = anchor[a] == a and parent[head[a]] == PARENT_MISSING and head[a] == a
        if not broken or narrow[a, ROLE] == CALL:
            continue
        for b in range(a):
            if (
                anchor[b] == b
                and parent[b] == PARENT_MISSING
                and wide[b, PARENT] == wide[a, PARENT]
                and wide[b, TRACE] == wide[a, TRACE]
                and narrow[b, ROLE] != CALL
                and (
                    narrow[b, CLASS] != narrow[a, CLASS] or narrow[b, SERVICE] != narrow[a, SERVICE]
                )
                and _holds(wide, extent_ns, b, a, CONTAINMENT_SLACK_NS)
            ):
                merged[a] = _root(merged, b)
                flags[merged[a]] |= FLAG_INFERRED
                break
    for a in range(count):
        if anchor[a] != a or merged[a] != a or narrow[a, ROLE] == CALL:
            continue
        if parent[head[a]] != PARENT_MISSING:
            continue
        holder = _only_holder(wide, narrow, anchor, extent_ns, count, merged, a)
        if holder >= 0:
            merged[a] = holder
            flags[holder] |= FLAG_INFERRED


@inner
def _only_holder(wide: W, narrow: N, anchor: W, extent_ns: W, count: Int, merged: W, a: Int) -> Int:
    holder = NO_ANCHOR
    for b in range(count):
        if wide[b, START] > wide[a, START] + CONTAINMENT_SLACK_NS:
            break
        if b == a or anchor[b] != b or wide[b, TRACE] != wide[a, TRACE]:
            continue
        if _outer_rank(narrow, b) >= _inner_rank(narrow, a):
            continue
        if not _holds(wide, extent_ns, b, a, CONTAINMENT_SLACK_NS):
            continue
        root = _root(merged, b)
        if root == a or root == holder:
            continue
        if holder >= 0:
            return NO_ANCHOR
        holder = root
    return holder


@inner
def adopt_parts(
    wide: W, narrow: N, parent: W, anchor: W, head: W, extent_ns: W, count: Int, merged: W, flags: W
) -> None:
    """Give parts whose way up is broken to the only anchor that holds them."""
    for k in range(count):
        role = narrow[k, ROLE]
        if anchor[k] != NO_ANCHOR or (role != PART and role != INNER):
            continue
        if parent[head[k]] != PARENT_MISSING:
            continue
        holder = NO_ANCHOR
        for b in range(count):
            if wide[b, START] > wide[k, START] + CONTAINMENT_SLACK_NS:
                break
            if anchor[b] != b or wide[b, TRACE] != wide[k, TRACE]:
                continue
            if not _holds(wide, extent_ns, b, k, CONTAINMENT_SLACK_NS):
                continue
            root = _root(merged, b)
            if holder >= 0 and root != holder:
                holder = NO_ANCHOR
                break
            holder = root
        if holder >= 0:
            anchor[k] = holder
            flags[holder] |= FLAG_INFERRED


@inner
def join_by_id(
    wide: W, narrow: N, anchor: W, extent_ns: W, count: Int, merged: W, flags: W
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
            a = _root(merged, owner[order[i]])
            b = _outer_of(wide, narrow, extent_ns, merged, owner, order, first, last, a)
            if b >= 0:
                merged[a] = b
                flags[b] |= FLAG_JOINED | flags[a]
        first = last


@inner
def _outer_of(
    wide: W,
    narrow: N,
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
        b = _root(merged, owner[order[i]])
        if b == a or b == best:
            continue
        rank = _outer_rank(narrow, b)
        choice = b < a and narrow[b, CLASS] == narrow[a, CLASS] and narrow[a, ROLE] == SERVER
        same_kind = rank == _outer_rank(narrow, a) and wide[b, START] >= wide[a, START]
        if not choice and (rank >= _inner_rank(narrow, a) or same_kind):
            continue
        slack = CONTAINMENT_SLACK_NS if choice else JOIN_SLACK_NS
        if not _holds(wide, extent_ns, b, a, slack):
            continue
        if best < 0 or rank < best_rank:
            best, best_rank, unique = b, rank, True
        elif rank == best_rank:
            strict_new = _holds(wide, extent_ns, b, a, CONTAINMENT_SLACK_NS)
            strict_old = _holds(wide, extent_ns, best, a, CONTAINMENT_SLACK_NS)
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
    find_extents(wide, narrow, request, count, extent_ns)
    if 1 < anchors <= MOST_ANCHORS:
        merge_broken(wide, narrow, parent, request, head, extent_ns, count, merged, flags)
        join_by_id(wide, narrow, request, extent_ns, count, merged, flags)
    if anchors <= MOST_ANCHORS:
        adopt_parts(wide, narrow, parent, request, head, extent_ns, count, merged, flags)
    for k in range(count):
        if request[k] >= 0:
            request[k] = _root(merged, request[k])
    return anchors
