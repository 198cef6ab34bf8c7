"""Which spans of a unit belong to which request.

A unit is one trace, or several that share a request id. Its spans come as rows of `wide`
and `narrow` (see `layout`) in canonical order: by start, then end, span id, digest.

An anchor is the outermost span that is an LLM call. Every other span belongs to the nearest
anchor above it; where the chain to it is broken, to the only anchor whose interval holds it
(`broken`, flagged inferred); where propagation was cut, to the one that bears the same id
(`joining`, flagged joined).
"""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.hops.columns import EndIs, Role
from tailburn.collector.stitch.compiling import inlined
from tailburn.collector.stitch.layout import PARENT, ROLE, SPAN, START, TRACE
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
