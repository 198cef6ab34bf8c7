"""Hops whose share of a request can't be told: something between them and the next never came.

A call that nothing answered may have waited anywhere behind it. Below a parent that is lost
lies a hop, or a call, that would have had a part of what the next hop outside seems to hold.
Both count as unattributed: what isn't known is never a hop's.
"""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch.compiling import inlined
from tailburn.collector.stitch.layout import END_IS, ROLE, SERVICE
from tailburn.collector.stitch.places import ENGINE, ROUTER
from tailburn.collector.stitch.tree import CALL, EDGE, HEADERS, PARENT_MISSING, PART, SERVER
from tailburn.engine.breakdown import UNATTRIBUTED_INDEX
from tailburn.engine.compiled import Int

SLACK_NS = 1_000_000

W = NDArray[np.int64]
N = NDArray[np.int32]
I8 = NDArray[np.int8]


@inlined
def find_unknown(
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    anchor: Int,
    hop: W,
    start: W,
    lost: I8,
    unknown: I8,
) -> None:
    """Set `unknown` (by hop) to 1 for the hops whose share can't be told."""
    unknown[:] = 0
    deepest, inside = -1, -1
    engine = False
    for i in range(count):
        k = member[i]
        role = narrow[k, ROLE]
        if lost[k] or hop[k] < 0:
            continue
        if role == SERVER and (deepest < 0 or hop[k] > hop[deepest]):
            deepest = k
        engine = engine or (role == SERVER and hop[k] >= ENGINE)
        if role == PART and hop[k] > ENGINE:
            inside = k
        if role == EDGE and not _answered(narrow, member, count, hop, lost, k):
            unknown[hop[k]] = 1
            if narrow[k, END_IS] == HEADERS:  # what it waited for after them is its caller's too
                _set_callers(narrow, member, count, hop, lost, k, unknown)
        broken = parent[k] == PARENT_MISSING and k != anchor
        if broken and (role == SERVER or role == EDGE):
            outside = _next_outside(narrow, member, count, hop, start, lost, k)
            if outside >= 0:
                unknown[hop[outside]] = 1
    if inside >= 0 and not engine:  # parts of an engine whose own span is lost
        outside = _next_outside(narrow, member, count, hop, start, lost, inside)
        if outside >= 0:
            unknown[hop[outside]] = 1
    if deepest >= 0 and not engine and inside < 0 and hop[deepest] <= ROUTER:
        if not _calls(narrow, member, count, lost, deepest):
            unknown[hop[deepest]] = 1


@inlined
def set_way_in(
    narrow: N, member: W, count: Int, hop: W, start: W, lost: I8, g: Int, unknown: I8
) -> None:
    """Set `unknown` for what led to server `g`, where the one that the request came to is lost."""
    outside = _next_outside(narrow, member, count, hop, start, lost, g)
    if outside >= 0 and narrow[outside, ROLE] == EDGE:
        unknown[hop[outside]] = 1


@inlined
def _set_callers(narrow: N, member: W, count: Int, hop: W, lost: I8, k: Int, unknown: I8) -> None:
    """Set `unknown` for the hop whose server, or client, made call `k`."""
    for i in range(count):
        m = member[i]
        role = narrow[m, ROLE]
        if lost[m] or hop[m] < 0 or narrow[m, SERVICE] != narrow[k, SERVICE]:
            continue
        if role == SERVER or role == CALL:
            unknown[hop[m]] = 1


@inlined
def _answered(narrow: N, member: W, count: Int, hop: W, lost: I8, k: Int) -> bool:
    """Whether a server behind call `k` told of itself."""
    for i in range(count):
        m = member[i]
        if narrow[m, ROLE] == SERVER and hop[m] > hop[k] and not lost[m]:
            return True
    return False


@inlined
def _calls(narrow: N, member: W, count: Int, lost: I8, k: Int) -> bool:
    """Whether server `k` shows a call of its own."""
    for i in range(count):
        m = member[i]
        if narrow[m, ROLE] == EDGE and narrow[m, SERVICE] == narrow[k, SERVICE] and not lost[m]:
            return True
    return False


@inlined
def _next_outside(narrow: N, member: W, count: Int, hop: W, start: W, lost: I8, k: Int) -> Int:
    """The deepest hop outside `k` that was active when `k` began; -1: none."""
    found = -1
    for i in range(count):
        m = member[i]
        role = narrow[m, ROLE]
        if m == k or lost[m] or hop[m] < 0 or hop[m] >= hop[k]:
            continue
        if role != CALL and role != SERVER and role != EDGE:
            continue
        if start[m] <= start[k] + SLACK_NS and (found < 0 or hop[m] > hop[found]):
            found = m
    return found


@inlined
def take_away(unknown: I8, hops_ns: W) -> None:
    """Count what unknown hops seem to hold as unattributed."""
    for h in range(len(unknown)):
        if unknown[h]:
            hops_ns[UNATTRIBUTED_INDEX] += hops_ns[h]
            hops_ns[h] = 0
