"""Which server of a request is the outermost, and whether one outside it is lost.

By parents and ids where they tell, since clocks of hosts differ; by times only where they don't.
"""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch.compiling import inlined, inner
from tailburn.collector.stitch.layout import HOP, ROLE, SERVICE, START, TRACE
from tailburn.collector.stitch.tree import CALL, ENGINE, GATEWAY, PARENT_MISSING, PART, SERVER
from tailburn.engine.compiled import Int

MOST_STEPS = 64
"""A way up longer than this is a circle, or an attack."""
LINKED, SAME_TRACE, JOINED = 0, 1, 2

W = NDArray[np.int64]
N = NDArray[np.int32]
I8 = NDArray[np.int8]


@inlined
def _is_below(parent: W, k: Int, above: Int) -> bool:
    """Whether parents lead from `k` to `above`, or `k` is it."""
    for _ in range(MOST_STEPS):
        if k == above:
            return True
        if k < 0:
            return False
        k = parent[k]
    return False


@inlined
def _link(wide: W, parent: W, anchor: Int, k: Int) -> Int:
    """How `k` came to the request: by parents, by its trace and time, or by an id."""
    if _is_below(parent, k, anchor):
        return LINKED
    return SAME_TRACE if wide[k, TRACE] == wide[anchor, TRACE] else JOINED


@inlined
def is_behind(wide: W, parent: W, anchor: Int, g: Int, k: Int) -> bool:
    """Whether server `k` took the request after server `g` had it."""
    if _is_below(parent, k, g):
        return True
    return _link(wide, parent, anchor, k) > _link(wide, parent, anchor, g)


@inlined
def outermost(
    wide: W,
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    anchor: Int,
    shift_ns: W,
    hop: W,
    h: Int,
) -> Int:
    """The outermost server of hop `h`; -1: none."""
    best = -1
    for i in range(count):
        k = member[i]
        if narrow[k, ROLE] != SERVER or hop[k] != h:
            continue
        if best < 0 or is_behind(wide, parent, anchor, k, best):
            best = k
        elif not is_behind(wide, parent, anchor, best, k):
            if wide[k, START] - shift_ns[k] < wide[best, START] - shift_ns[best]:
                best = k
    return best


@inner
def outer_is_lost(
    wide: W, narrow: N, parent: W, member: W, count: Int, anchor: Int, hop: W, lost: I8, g: Int
) -> bool:
    """Whether `g`, the outermost server that told, may not be where the request came in.

    A service that shows something of the request below a lost span, and no server's span, has
    lost that; it stood before `g` or behind it. A gateway that its client's call leads to had
    nobody before it.
    """
    if hop[g] == GATEWAY and _link(wide, parent, anchor, g) == LINKED:
        return False
    for i in range(count):
        m = member[i]
        if parent[m] != PARENT_MISSING or lost[m] or narrow[m, ROLE] == CALL:
            continue
        if narrow[m, SERVICE] != narrow[g, SERVICE] and not _is_placed(
            narrow, member, count, narrow[m, SERVICE]
        ):
            return True
    return False


@inlined
def _is_placed(narrow: N, member: W, count: Int, service: Int) -> bool:
    """Whether a span says where this service stood: a server's, the client's, or an engine's."""
    for i in range(count):
        m = member[i]
        if narrow[m, SERVICE] == service:
            role = narrow[m, ROLE]
            if role == SERVER or role == CALL or (role == PART and narrow[m, HOP] > ENGINE):
                return True
    return False
