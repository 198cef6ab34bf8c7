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
    HOP,
    PARENT,
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
HEADERS, LOOSE, CHILD = int(EndIs.HEADERS), int(EndIs.LOOSE), int(EndIs.CHILD)
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
def holds(wide: W, extent_ns: W, b: Int, a: Int, slack_ns: Int) -> bool:
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
                and holds(wide, extent_ns, b, a, CONTAINMENT_SLACK_NS)
            ):
                merged[a] = root_anchor(merged, b)
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
        if outer_rank(narrow, b) >= inner_rank(narrow, a):
            continue
        if not holds(wide, extent_ns, b, a, CONTAINMENT_SLACK_NS):
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
            if not holds(wide, extent_ns, b, k, CONTAINMENT_SLACK_NS):
                continue
            root = root_anchor(merged, b)
            if holder >= 0 and root != holder:
                holder = NO_ANCHOR
                break
            holder = root
        if holder >= 0:
            anchor[k] = holder
            flags[holder] |= FLAG_INFERRED
