"""One request's spans become its row."""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch import layout as at
from tailburn.collector.stitch.clocks import MOST_CLOCKS
from tailburn.collector.stitch.compiling import inlined, inner
from tailburn.collector.stitch.facts import (
    count_tokens,
    http_status_of,
    judge_completeness,
    outcome_of,
    queue_of,
    take_dimensions,
)
from tailburn.collector.stitch.halves import is_split
from tailburn.collector.stitch.intervals import (
    add_waits,
    until_first_token,
    until_last_token,
)
from tailburn.collector.stitch.outermost import outer_is_lost
from tailburn.collector.stitch.places import (
    EDGE_BETWEEN,
    ENGINE,
    place_hops,
    read_times,
)
from tailburn.collector.stitch.shifts import observe_clocks, shift_clocks
from tailburn.collector.stitch.tree import (
    CALL,
    EDGE,
    PART,
    SERVER,
    mix,
)
from tailburn.collector.stitch.tries import find_tries
from tailburn.collector.stitch.unknown import find_unknown, set_way_in, take_away
from tailburn.collector.stitch.vantage import (
    AT_CLIENT,
    AT_GATEWAY,
    V_END,
    V_FIRST,
    V_LAST,
    V_SPAN,
    V_START,
    find_vantages,
    forget_late_first,
    read_tokens,
    was_streamed,
)
from tailburn.engine.breakdown import sweep
from tailburn.engine.compiled import Int
from tailburn.engine.names import HOPS

STREAMED_FROM_TOKENS = 3
"""This many separate sends are a stream, where nobody says so."""

W = NDArray[np.int64]
N = NDArray[np.int32]
I8 = NDArray[np.int8]


@inner
def build(
    wide: W,
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    anchor: Int,
    flags: Int,
    conflict: bool,
    tokens: W,
    pool: tuple[W, W, W, W, W, W],
    by_row: tuple[W, W, W, W, W, W],
    intervals: tuple[W, W, W, W, W],
    edges_ns: W,
    lost: I8,
    text_hash: W,
    closed_ns: Int,
    out: W,
    ttft_ns: W,
    decode_ns: W,
) -> bool:
    """Turn `count` spans (rows `member` of `wide` and `narrow`) into one row.

    `by_row`, `intervals`, `edges_ns` and `lost` are scratch. Fills
    `out`, and `ttft_ns` and `decode_ns` per hop, each summing exactly to its clock. Returns
    False where the spans are no request after all: calls that no server answered.

    1. clocks compared  2. hops placed  3. tries told apart  4. vantages  5. two breakdowns
    6. tokens, outcome, completeness, dimensions  7. the hash of all that is the row's content
    """
    if not _is_request(narrow, member, count, anchor):
        return False
    hop, shift, start, end, first, last = by_row
    for i in range(count):
        lost[member[i]] = 0
    observe_clocks(wide, narrow, parent, member, count, anchor, pool)
    clocks = np.empty((MOST_CLOCKS, 3), np.int64)
    offset, width = shift_clocks(wide, narrow, parent, member, count, anchor, pool, clocks, shift)
    place_hops(wide, narrow, parent, member, count, anchor, shift, EDGE_BETWEEN, hop)
    read_times(wide, narrow, parent, member, count, hop, shift, start, end, first, last)
    gap, sends, all_sends = read_tokens(wide, narrow, member, count, shift, tokens, first, last)
    served = 0
    for i in range(count):
        k = member[i]
        if narrow[k, at.ROLE] == CALL or (narrow[k, at.ROLE] == SERVER and hop[k] < ENGINE):
            if first[k] > 0:
                served = first[k] + shift[k]
                break
    begin, stop, which, wait_begin, wait_end = intervals
    attempts, waits, hedged = find_tries(
        wide, narrow, parent, member, count, served, start, end, lost, wait_begin, wait_end
    )
    halves = is_split(narrow, member, count, hop, lost)
    vantage = np.empty((3, 5), np.int64)
    find_vantages(
        narrow, parent, member, count, hop, lost, start, end, first, last, halves, vantage
    )
    gateway = vantage[AT_GATEWAY, V_SPAN]
    headless = gateway >= 0 and outer_is_lost(
        wide, narrow, parent, member, count, anchor, hop, lost, gateway
    )
    if gateway >= 0 and sends > 0 and width >= 0 and wide[gateway, at.FIRST] <= 0:
        forget_late_first(vantage, 2 * width)
    streamed = was_streamed(narrow, member, count, hop, lost)
    if streamed < 0 and (sends >= STREAMED_FROM_TOKENS or vantage[AT_CLIENT, V_FIRST] > 0):
        streamed = 1
    if streamed < 0 and sends == 1:  # the whole answer at once: a stream has an end besides
        vantage[AT_GATEWAY, V_FIRST] = 0
    if streamed == 0:
        vantage[AT_CLIENT, V_FIRST] = 0
        vantage[AT_GATEWAY, V_FIRST] = 0
    if headless:
        vantage[AT_GATEWAY, V_FIRST] = 0
    out[:] = -1
    _clocks(vantage, out)
    if out[at.O_START] == 0:
        _extent(member, count, start, end, out)
    if headless:
        out[at.O_E2E + AT_GATEWAY] = -1
    out[at.O_ITL] = gap if streamed != 0 else -1
    out[at.O_STREAMED] = streamed
    out[at.O_ATTEMPTS] = attempts
    out[at.O_HEDGED] = 1 if hedged else 0

    ttft_ns[:] = 0
    decode_ns[:] = 0
    unknown = np.empty(len(HOPS), np.int8)
    find_unknown(narrow, parent, member, count, anchor, hop, start, lost, unknown)
    if headless:
        set_way_in(narrow, member, count, hop, start, lost, gateway, unknown)
    v = _outermost_measured(vantage)
    out[at.O_FIRST] = 0
    if v >= 0:
        out[at.O_FIRST] = vantage[v, V_FIRST]
        n = until_first_token(
            wide, narrow, member, count, hop, lost, start, end, first, halves, vantage,
            begin, stop, which,
        )  # fmt: skip
        n = add_waits(wait_begin, wait_end, waits, begin, stop, which, n)
        sweep(begin, stop, which, n, vantage[v, V_START], vantage[v, V_FIRST], edges_ns, ttft_ns)
        take_away(unknown, ttft_ns)
        n = until_last_token(
            wide, narrow, member, count, hop, lost, start, end, first, last, halves,
            begin, stop, which,
        )  # fmt: skip
        n = add_waits(wait_begin, wait_end, waits, begin, stop, which, n)
        sweep(begin, stop, which, n, vantage[v, V_FIRST], vantage[v, V_LAST], edges_ns, decode_ns)
        take_away(unknown, decode_ns)

    out[at.O_QUEUE] = queue_of(wide, narrow, member, count, hop, start, end, lost, halves, vantage)
    count_tokens(narrow, member, count, hop, lost, halves, out)
    out[at.O_OUTCOME] = outcome_of(narrow, member, count, hop, lost, anchor, vantage)
    out[at.O_HTTP] = http_status_of(narrow, member, count, hop, lost)
    judge_completeness(wide, narrow, parent, member, count, hop, lost, anchor, flags, conflict, out)
    if headless:
        out[at.O_MISSING] |= 1 << AT_GATEWAY
    take_dimensions(narrow, member, count, hop, lost, vantage, out)
    if offset != 0:
        flags |= at.FLAG_OFFSET
    out[at.O_OFFSET] = offset
    out[at.O_HALF_WIDTH] = width
    for i in range(count):
        if narrow[member[i], at.REPAIRED]:
            flags |= at.FLAG_TIME
    out[at.O_FLAGS] = flags
    out[at.O_WEIGHT] = wide[anchor, at.WEIGHT]
    out[at.O_SPANS] = count
    out[at.O_SENDS] = all_sends
    out[at.O_ANCHOR] = wide[anchor, at.SPAN]
    out[at.O_TRACE] = wide[anchor, at.TRACE]
    out[at.O_CLOSED] = closed_ns
    out[at.O_HASH] = _content_hash(out, text_hash, ttft_ns, decode_ns)
    return True


@inlined
def _is_request(narrow: N, member: W, count: Int, anchor: Int) -> bool:
    """Whether some server took the call: its span came, or one from inside its engine."""
    if narrow[anchor, at.ROLE] != EDGE:
        return True
    for i in range(count):
        k = member[i]
        if narrow[k, at.ROLE] == SERVER:
            return True
        if narrow[k, at.ROLE] == PART and narrow[k, at.HOP] > ENGINE:
            return True
    return False


@inlined
def _clocks(vantage: W, out: W) -> None:
    starts, ends = 0, 0
    for v in range(3):
        if vantage[v, V_SPAN] < 0:
            continue
        if starts == 0:
            starts, ends = vantage[v, V_START], vantage[v, V_END]
        out[at.O_E2E + v] = max(vantage[v, V_END] - vantage[v, V_START], 0)
        if vantage[v, V_FIRST] > 0:
            out[at.O_TTFT + v] = vantage[v, V_FIRST] - vantage[v, V_START]
            vantage[v, V_LAST] = max(vantage[v, V_LAST], vantage[v, V_FIRST])
            out[at.O_STREAM + v] = vantage[v, V_LAST] - vantage[v, V_FIRST]
    out[at.O_START] = starts
    out[at.O_END] = ends


@inlined
def _extent(member: W, count: Int, start: W, end: W, out: W) -> None:
    """Without any vantage a request begins with its first span and ends with its last."""
    out[at.O_START], out[at.O_END] = start[member[0]], end[member[0]]
    for i in range(1, count):
        out[at.O_START] = min(out[at.O_START], start[member[i]])
        out[at.O_END] = max(out[at.O_END], end[member[i]])


@inlined
def _outermost_measured(vantage: W) -> Int:
    for v in range(3):
        if vantage[v, V_SPAN] >= 0 and vantage[v, V_FIRST] > 0:
            return v
    return -1


@inlined
def _content_hash(out: W, text_hash: W, ttft_ns: W, decode_ns: W) -> Int:
    """The same in every process and order of arrival: texts count by their hash, not code."""
    h: Int = np.int64(17)
    for c in range(at.O_START, at.O_HASH):
        if c != at.O_OFFSET and c != at.O_HALF_WIDTH:
            h = _fold(h, out[c])
    for c in range(at.O_CODES, len(out)):
        h = _fold(h, text_hash[out[c]])
    for i in range(len(ttft_ns)):
        h = _fold(_fold(h, ttft_ns[i]), decode_ns[i])
    return mix(h, 11)


@inlined
def _fold(h: Int, value: Int) -> Int:
    return ((h ^ value) * np.int64(0x9E3779B97F4A7C1)) ^ (h >> 29)
