"""Where each span of a request sits: its hop, its host's clock, its times made comparable."""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch.compiling import inlined, inner
from tailburn.collector.stitch.layout import (
    E2E,
    END,
    END_IS,
    FIRST,
    HOP,
    LAST,
    ROLE,
    SERVICE,
    START,
)
from tailburn.collector.stitch.outermost import is_behind, outermost
from tailburn.collector.stitch.tree import CALL, CHILD, EDGE, HEADERS, LOOSE, PART, SERVER
from tailburn.engine.compiled import Int
from tailburn.engine.names import HOP_INDEX, HOPS

CLIENT, GATEWAY, ROUTER = HOP_INDEX["client"], HOP_INDEX["gateway"], HOP_INDEX["router"]
ENGINE = HOP_INDEX["engine"]
NO_HOP = -1


def _edges() -> NDArray[np.int64]:
    """Index of the edge between two hops, by the caller's hop and the server's."""
    table = np.full((len(HOPS), len(HOPS)), NO_HOP, np.int64)
    for name in HOPS:
        if ">" in name:
            caller, server = name.split(">")
            table[HOP_INDEX[caller], HOP_INDEX[server]] = HOP_INDEX[name]
    table[CLIENT, ROUTER] = HOP_INDEX["client>gateway"]
    table[ROUTER, ROUTER] = HOP_INDEX["gateway>router"]
    return table


EDGE_BETWEEN = _edges()

W = NDArray[np.int64]
N = NDArray[np.int32]


@inlined
def _within(wide: W, shift_ns: W, outer: Int, inner: Int) -> bool:
    start = wide[inner, START] - shift_ns[inner] + shift_ns[outer]
    return wide[outer, START] <= start <= wide[outer, END]


@inlined
def _server_hop(wide: W, narrow: N, member: W, count: Int, shift_ns: W, k: Int) -> Int:
    """The hop of a server no rule could place: by what is outside and inside it."""
    outside, inside, calls_out = False, False, False
    start = wide[k, START] - shift_ns[k]
    for i in range(count):
        m = member[i]
        if m == k:
            continue
        later = wide[m, START] - shift_ns[m] >= start
        same_service = narrow[m, SERVICE] == narrow[k, SERVICE]
        if narrow[m, ROLE] == SERVER:
            if same_service:
                if narrow[m, HOP] >= 0:
                    return narrow[m, HOP]
            elif later and _within(wide, shift_ns, k, m):
                inside = True
            elif not later:
                outside = True
        elif narrow[m, ROLE] == EDGE and same_service and _within(wide, shift_ns, k, m):
            calls_out = True
    if inside or calls_out:
        return ROUTER if outside else GATEWAY
    return ENGINE if outside else GATEWAY


@inlined
def _caller_of(narrow: N, member: W, count: Int, hop: W, k: Int) -> Int:
    """The hop that makes call `k`: that of its service's server, or the client.

    A service whose own span is lost, below a client of another, is a gateway.
    """
    called, own = False, False
    for i in range(count):
        m = member[i]
        same = narrow[m, SERVICE] == narrow[k, SERVICE]
        if narrow[m, ROLE] == SERVER and same:
            return hop[m]
        if narrow[m, ROLE] == CALL:
            called = True
            own = own or same
    return GATEWAY if called and not own else CLIENT


@inlined
def _goes_on(wide: W, narrow: N, member: W, count: Int, shift_ns: W, k: Int) -> bool:
    """Whether another service calls on within call `k`: a server between them is lost."""
    for i in range(count):
        m = member[i]
        if narrow[m, ROLE] == EDGE and narrow[m, SERVICE] != narrow[k, SERVICE]:
            if m != k and _within(wide, shift_ns, k, m):
                return True
    return False


@inlined
def _edge_hop(
    wide: W,
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    shift_ns: W,
    hop: W,
    k: Int,
    edges: W,
) -> Int:
    """The edge of an outgoing call: from the hop that makes it to the server that answers."""
    caller, server = _caller_of(narrow, member, count, hop, k), NO_HOP
    answered = False
    for i in range(count):
        m = member[i]
        if narrow[m, ROLE] != SERVER or hop[m] <= caller:
            continue
        # A gateway may hand its caller's context on: what answers is the outermost of them.
        if parent[m] == k:
            server = min(server, hop[m]) if answered else hop[m]
            answered = True
        elif server == NO_HOP and narrow[m, SERVICE] != narrow[k, SERVICE]:
            if _within(wide, shift_ns, k, m):
                server = hop[m]
    if server == NO_HOP or (not answered and _goes_on(wide, narrow, member, count, shift_ns, k)):
        server = GATEWAY if caller == CLIENT else ENGINE
    edge = edges[caller, server]
    return edge if edge >= 0 else hop[k]


@inlined
def place_hops(
    wide: W,
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    anchor: Int,
    shift_ns: W,
    edges: W,
    hop: W,
) -> None:
    """Fill `hop` (by row) for the members; NO_HOP for spans that hold no place of their own.

    Of gateways of several services the outermost is the gateway, those behind it are routers.
    """
    gateway, several = -1, False
    for i in range(count):
        k = member[i]
        role = narrow[k, ROLE]
        hop[k] = NO_HOP
        if role == CALL or role == PART:
            hop[k] = narrow[k, HOP]
        elif role == SERVER:
            h = narrow[k, HOP]
            hop[k] = h if h >= 0 else _server_hop(wide, narrow, member, count, shift_ns, k)
            if hop[k] == GATEWAY:
                several = several or (
                    gateway >= 0 and narrow[k, SERVICE] != narrow[gateway, SERVICE]
                )
                gateway = k
    if several:
        _place_inner_gateways(wide, narrow, parent, member, count, anchor, shift_ns, hop)
    for i in range(count):
        k = member[i]
        if narrow[k, ROLE] == EDGE:
            hop[k] = narrow[k, HOP]
            if hop[k] < 0:
                hop[k] = _edge_hop(wide, narrow, parent, member, count, shift_ns, hop, k, edges)


@inner
def _place_inner_gateways(
    wide: W,
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    anchor: Int,
    shift_ns: W,
    hop: W,
) -> None:
    g = outermost(wide, narrow, parent, member, count, anchor, shift_ns, hop, GATEWAY)
    for i in range(count):
        k = member[i]
        if narrow[k, ROLE] == SERVER and hop[k] == GATEWAY:
            if narrow[k, SERVICE] != narrow[g, SERVICE] and is_behind(wide, parent, anchor, g, k):
                hop[k] = ROUTER


@inlined
def read_times(
    wide: W,
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    hop: W,
    shift_ns: W,
    start: W,
    end: W,
    first: W,
    last: W,
) -> None:
    """Fill start, end, first and last token time (by row, ns, 0 unknown) by the anchor's clock.

    A server that tells its own length ends then; what its span goes on for belongs outward. An
    end known to come late is cut at the end of what is outside, or else of what is inside. A
    part that lasts until its child begins is empty without one.
    """
    for i in range(count):
        k = member[i]
        shift = shift_ns[k]
        start[k] = wide[k, START] - shift
        end[k] = wide[k, END] - shift
        first[k] = wide[k, FIRST] - shift if wide[k, FIRST] > 0 else 0
        last[k] = wide[k, LAST] - shift if wide[k, LAST] > 0 else 0
        if wide[k, E2E] > 0:
            end[k] = min(end[k], start[k] + wide[k, E2E])
    for i in range(count):
        k = member[i]
        if narrow[k, END_IS] == CHILD:
            end[k] = _first_child(parent, member, count, start, k)
        if narrow[k, END_IS] != LOOSE:
            continue
        outer, inner = 0, 0
        for j in range(count):
            m = member[j]
            role = narrow[m, ROLE]
            if m == k or narrow[m, END_IS] == LOOSE or narrow[m, END_IS] == HEADERS:
                continue
            if role == CALL or (role == SERVER and hop[m] < hop[k]):
                if start[m] <= start[k] and (outer == 0 or end[m] < outer):
                    outer = end[m]
            elif role == SERVER and hop[m] > hop[k]:
                inner = max(inner, end[m])
        if outer > 0:
            end[k] = min(end[k], outer)
        elif inner > 0:
            end[k] = min(end[k], inner)


@inlined
def _first_child(parent: W, member: W, count: Int, start: W, k: Int) -> Int:
    """When the first child of `k` begins; when `k` does, where none came."""
    begun: Int = 0
    for i in range(count):
        m = member[i]
        if parent[m] == k and (begun == 0 or start[m] < begun):
            begun = start[m]
    return max(begun, start[k])
