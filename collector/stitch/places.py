"""Where each span of a request sits: its hop, its host's clock, its times made comparable."""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.hops.columns import EndIs
from tailburn.collector.stitch.clocks import UNKNOWN_WIDTH_NS, observe, offset_of
from tailburn.collector.stitch.compiling import inlined
from tailburn.collector.stitch.layout import (
    E2E,
    END,
    END_IS,
    FIRST,
    HOP,
    HOST,
    LAST,
    OUTCOME,
    RECEIVED,
    ROLE,
    SERVICE,
    START,
)
from tailburn.collector.stitch.tree import CALL, CHILD, EDGE, HEADERS, INNER, LOOSE, PART, SERVER
from tailburn.engine.compiled import Int
from tailburn.engine.names import HOP_INDEX, HOPS

CLIENT, GATEWAY, ROUTER = HOP_INDEX["client"], HOP_INDEX["gateway"], HOP_INDEX["router"]
ENGINE = HOP_INDEX["engine"]
NO_HOP = -1
END_IS_END = int(EndIs.END)
FOREVER = np.int64(1 << 62)


def _edges() -> NDArray[np.int64]:
    """Index of the edge between two hops, by the caller's hop and the server's."""
    table = np.full((len(HOPS), len(HOPS)), NO_HOP, np.int64)
    for name in HOPS:
        if ">" in name:
            caller, server = name.split(">")
            table[HOP_INDEX[caller], HOP_INDEX[server]] = HOP_INDEX[name]
    table[CLIENT, ROUTER] = HOP_INDEX["client>gateway"]
    table[GATEWAY, GATEWAY] = HOP_INDEX["gateway>router"]
    table[ROUTER, ROUTER] = HOP_INDEX["gateway>router"]
    return table


EDGE_BETWEEN = _edges()

W = NDArray[np.int64]
N = NDArray[np.int32]


@inlined
def _within(wide: W, outer: Int, inner: Int) -> bool:
    return wide[outer, START] <= wide[inner, START] <= wide[outer, END]


@inlined
def _server_hop(wide: W, narrow: N, member: W, count: Int, k: Int) -> Int:
    """The hop of a server no rule could place: by what is outside and inside it."""
    outside, inside, calls_out = False, False, False
    for i in range(count):
        m = member[i]
        if m == k:
            continue
        same_service = narrow[m, SERVICE] == narrow[k, SERVICE]
        if narrow[m, ROLE] == SERVER:
            if same_service:
                if narrow[m, HOP] >= 0:
                    return narrow[m, HOP]
            elif wide[m, START] >= wide[k, START] and _within(wide, k, m):
                inside = True
            elif wide[m, START] < wide[k, START]:
                outside = True
        elif narrow[m, ROLE] == EDGE and same_service and _within(wide, k, m):
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
def _goes_on(wide: W, narrow: N, member: W, count: Int, k: Int) -> bool:
    """Whether another service calls on within call `k`: a server between them is lost."""
    for i in range(count):
        m = member[i]
        if narrow[m, ROLE] == EDGE and narrow[m, SERVICE] != narrow[k, SERVICE]:
            if m != k and _within(wide, k, m):
                return True
    return False


@inlined
def _edge_hop(
    wide: W, narrow: N, parent: W, member: W, count: Int, hop: W, k: Int, edges: W
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
        elif server == NO_HOP and _within(wide, k, m) and narrow[m, SERVICE] != narrow[k, SERVICE]:
            server = hop[m]
    if server == NO_HOP or (not answered and _goes_on(wide, narrow, member, count, k)):
        server = GATEWAY if caller == CLIENT else ENGINE
    edge = edges[caller, server]
    return edge if edge >= 0 else hop[k]


@inlined
def place_hops(wide: W, narrow: N, parent: W, member: W, count: Int, edges: W, hop: W) -> None:
    """Fill `hop` (by row) for the members; NO_HOP for spans that hold no place of their own."""
    for i in range(count):
        k = member[i]
        role = narrow[k, ROLE]
        hop[k] = NO_HOP
        if role == CALL or role == PART:
            hop[k] = narrow[k, HOP]
        elif role == SERVER:
            h = narrow[k, HOP]
            hop[k] = h if h >= 0 else _server_hop(wide, narrow, member, count, k)
    for i in range(count):
        k = member[i]
        if narrow[k, ROLE] == EDGE:
            h = narrow[k, HOP]
            hop[k] = h if h >= 0 else _edge_hop(wide, narrow, parent, member, count, hop, k, edges)


@inlined
def clock_of(narrow: N, k: Int) -> Int:
    """Which clock stamped the span: its host's, else one of its service's own."""
    host = narrow[k, HOST]
    return host if host != 0 else -np.int64(narrow[k, SERVICE])


@inlined
def _calls(narrow: N, q: Int, k: Int) -> bool:
    """Whether `q` is the call of server `k`, or the stay of one that shows no calls of its own."""
    role = narrow[q, ROLE]
    other = narrow[q, SERVICE] != narrow[k, SERVICE]
    return bool(role == EDGE or role == CALL or (role == SERVER and other))


@inlined
def observe_clocks(
    wide: W, narrow: N, parent: W, member: W, count: Int, pool: tuple[W, W, W, W, W, W]
) -> None:
    """Let each call between two clocks bound their offset."""
    for i in range(count):
        k = member[i]
        q = parent[k]
        if narrow[k, ROLE] != SERVER or q < 0:
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
            if mine == 0 or _find_clock(clocks, known, mine) >= 0:
                continue
            c = _find_clock(clocks, known, callers)
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
        c = _find_clock(clocks, known, mine)
        if c < 0 and narrow[k, ROLE] == SERVER and known < len(clocks):
            c = _known_elsewhere(pool, clocks, known, mine, wide[k, RECEIVED])
            if c >= 0:
                known += 1
                width = max(width, clocks[c, 2]) if width >= 0 else width
                if abs(clocks[c, 1]) > abs(largest):
                    largest = clocks[c, 1]
        if c < 0 and mine != 0 and narrow[k, ROLE] != INNER:
            width = UNKNOWN_WIDTH_NS
        shift_ns[k] = clocks[c, 1] if c >= 0 else 0
    return largest, width


@inlined
def _known_elsewhere(
    pool: tuple[W, W, W, W, W, W], clocks: W, known: Int, mine: Int, now_ns: Int
) -> Int:
    """A clock that no call of this request leads to, by the calls of others; -1: never seen.

    It is added to `clocks` at place `known`.
    """
    for c in range(known):
        offset, half = offset_of(*pool, clocks[c, 0], mine, now_ns)
        if half >= 0 and clocks[c, 2] >= 0:
            clocks[known, 0] = mine
            clocks[known, 1] = clocks[c, 1] + offset
            clocks[known, 2] = clocks[c, 2] + half
            return known
    return -1


@inlined
def _find_clock(clocks: W, known: Int, clock: Int) -> Int:
    for c in range(known):
        if clocks[c, 0] == clock:
            return c
    return -1


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
