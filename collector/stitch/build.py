"""One request's spans become its row."""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch import layout as at
from tailburn.collector.stitch.compiling import inlined, inner
from tailburn.collector.stitch.intervals import (
    QUEUE_HOP,
    add_waits,
    until_first_token,
    until_last_token,
)
from tailburn.collector.stitch.places import (
    EDGE_BETWEEN,
    ENGINE,
    observe_clocks,
    place_hops,
    read_times,
    shift_clocks,
)
from tailburn.collector.stitch.tree import (
    CALL,
    EDGE,
    PARENT_MISSING,
    PART,
    SERVER,
    mix,
)
from tailburn.collector.stitch.tries import CANCELLED, ERROR, failed, find_tries
from tailburn.collector.stitch.vantage import (
    AT_CLIENT,
    AT_ENGINE,
    AT_GATEWAY,
    V_END,
    V_FIRST,
    V_LAST,
    V_SPAN,
    V_START,
    find_vantages,
    read_tokens,
    was_streamed,
)
from tailburn.engine.breakdown import sweep
from tailburn.engine.compiled import Int
from tailburn.engine.names import COMPLETENESS, OUTCOMES

UNKNOWN_OUTCOME, OK = OUTCOMES.index("unknown"), OUTCOMES.index("ok")
COMPLETE, PARTIAL, ROOTLESS, CONFLICT = range(len(COMPLETENESS))
STREAMED_FROM_TOKENS = 3
"""This many separate sends are a stream, where nobody says so."""

W = NDArray[np.int64]
N = NDArray[np.int32]
I8 = NDArray[np.int8]

# Columns of CODES that the engine's span decides before any other.
_ENGINES_OWN = (
    at.CODES.index("replica"),
    at.CODES.index("node"),
    at.CODES.index("gpu"),
    at.CODES.index("zone"),
)
_SERVICE_CODE, _CLIENT_CODE = at.CODES.index("service"), at.CODES.index("client")
_SOURCE = np.array([getattr(at, name.upper()) for name in at.CODES], np.int64)


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

    1. hops placed  2. clocks compared  3. tries told apart  4. vantages  5. two breakdowns
    6. tokens, outcome, completeness, dimensions  7. the hash of all that is the row's content
    """
    if not _is_request(narrow, member, count, anchor):
        return False
    hop, shift, start, end, first, last = by_row
    for i in range(count):
        lost[member[i]] = 0
    place_hops(wide, narrow, parent, member, count, EDGE_BETWEEN, hop)
    observe_clocks(wide, narrow, parent, member, count, pool)
    clocks = np.empty((8, 3), np.int64)
    offset, width = shift_clocks(wide, narrow, parent, member, count, anchor, pool, clocks, shift)
    read_times(wide, narrow, member, count, hop, shift, start, end, first, last)
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
        wide, narrow, parent, member, count, served, lost, wait_begin, wait_end
    )
    vantage = np.empty((3, 5), np.int64)
    find_vantages(narrow, parent, member, count, hop, lost, start, end, first, last, vantage)
    streamed = was_streamed(narrow, member, count, hop, lost)
    if streamed < 0 and (sends >= STREAMED_FROM_TOKENS or vantage[AT_CLIENT, V_FIRST] > 0):
        streamed = 1
    if streamed == 0:
        vantage[AT_CLIENT, V_FIRST] = 0
        vantage[AT_GATEWAY, V_FIRST] = 0
    out[:] = -1
    _clocks(vantage, out)
    out[at.O_ITL] = gap if streamed != 0 else -1
    out[at.O_STREAMED] = streamed
    out[at.O_ATTEMPTS] = attempts
    out[at.O_HEDGED] = 1 if hedged else 0

    ttft_ns[:] = 0
    decode_ns[:] = 0
    v = _outermost_measured(vantage)
    out[at.O_FIRST] = 0
    if v >= 0:
        out[at.O_FIRST] = vantage[v, V_FIRST]
        n = until_first_token(
            wide, narrow, member, count, hop, lost, start, end, first, vantage, begin, stop, which
        )
        n = add_waits(wait_begin, wait_end, waits, begin, stop, which, n)
        sweep(begin, stop, which, n, vantage[v, V_START], vantage[v, V_FIRST], edges_ns, ttft_ns)
        n = until_last_token(
            wide, narrow, member, count, hop, lost, start, end, first, last, begin, stop, which
        )
        n = add_waits(wait_begin, wait_end, waits, begin, stop, which, n)
        sweep(begin, stop, which, n, vantage[v, V_FIRST], vantage[v, V_LAST], edges_ns, decode_ns)

    out[at.O_QUEUE] = _queue(wide, narrow, member, count, hop, lost, vantage)
    _tokens(narrow, member, count, hop, lost, out)
    out[at.O_OUTCOME] = _outcome(narrow, member, count, hop, lost, anchor, vantage)
    out[at.O_HTTP] = _http_status(narrow, member, count, hop, lost)
    _completeness(wide, narrow, parent, member, count, hop, lost, anchor, flags, conflict, out)
    _dimensions(narrow, member, count, hop, lost, vantage, out)
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
def _outermost_measured(vantage: W) -> Int:
    for v in range(3):
        if vantage[v, V_SPAN] >= 0 and vantage[v, V_FIRST] > 0:
            return v
    return -1


@inlined
def _queue(wide: W, narrow: N, member: W, count: Int, hop: W, lost: I8, vantage: W) -> Int:
    """First scheduled minus enqueued, where the engine tells; its own word or its spans'."""
    e = vantage[AT_ENGINE, V_SPAN]
    if e >= 0 and wide[e, at.QUEUE] >= 0:
        return wide[e, at.QUEUE]
    total = -1
    for i in range(count):
        k = member[i]
        if narrow[k, at.ROLE] == PART and hop[k] == QUEUE_HOP and not lost[k]:
            total = max(total, 0) + wide[k, at.END] - wide[k, at.START]
    return total


@inlined
def _tokens(narrow: N, member: W, count: Int, hop: W, lost: I8, out: W) -> None:
    """Token counts: the client's usage first, then the engine's sum, then the gateway's word.

    Choices of one prompt repeat it, prompts of one request differ: only those are summed. A
    gateway's word above the request's own limit is a guess and not taken.
    """
    guess = False
    for c in range(4):
        source = at.PROMPT + c
        client: Int = -1
        engine: Int = -1
        gateway: Int = -1
        for i in range(count):
            k = member[i]
            told = np.int64(narrow[k, source])
            if told < 0 or lost[k]:
                continue
            role = narrow[k, at.ROLE]
            if role == CALL:
                client = told if client < 0 else client
            elif role == SERVER and hop[k] == ENGINE:
                if source == at.OUTPUT or (source == at.PROMPT and told != engine):
                    engine = max(engine, 0) + told
                else:
                    engine = max(engine, told)
            else:
                gateway = max(gateway, told)
        value = client if client >= 0 else engine if engine >= 0 else gateway
        out[at.O_PROMPT + c] = value
        if source == at.OUTPUT:
            guess = client < 0 and engine < 0
    if guess and out[at.O_OUTPUT] > out[at.O_MAX_OUTPUT] > 0:
        out[at.O_OUTPUT] = -1


@inlined
def _outcome(narrow: N, member: W, count: Int, hop: W, lost: I8, anchor: Int, vantage: W) -> Int:
    """Status is one witness among several: the caller's word, then evidence of an end."""
    c, g, e = vantage[AT_CLIENT, V_SPAN], vantage[AT_GATEWAY, V_SPAN], vantage[AT_ENGINE, V_SPAN]
    engine_done = e >= 0 and not failed(narrow, e) and narrow[e, at.OUTPUT] >= 0
    if c >= 0:
        told = np.int64(narrow[c, at.OUTCOME])
        if told == ERROR or told == CANCELLED:
            return told
        if narrow[c, at.HTTP] >= 400:
            return ERROR
        if told == OK or narrow[c, at.OUTPUT] >= 0:
            return OK
        if g >= 0 and failed(narrow, g):
            return max(np.int64(narrow[g, at.OUTCOME]), ERROR)
        return UNKNOWN_OUTCOME
    if g >= 0 and failed(narrow, g):
        return CANCELLED if narrow[g, at.OUTCOME] == CANCELLED else ERROR
    if narrow[anchor, at.ROLE] == EDGE:
        return UNKNOWN_OUTCOME
    if (
        g >= 0
        and narrow[g, at.OUTCOME] == OK
        and (engine_done or not _calls_out(narrow, member, count))
    ):
        return OK
    if engine_done:
        return OK
    if e >= 0 and failed(narrow, e):
        return max(np.int64(narrow[e, at.OUTCOME]), ERROR)
    if e >= 0 and narrow[e, at.OUTCOME] == OK:
        return OK
    return UNKNOWN_OUTCOME


@inlined
def _calls_out(narrow: N, member: W, count: Int) -> bool:
    for i in range(count):
        if narrow[member[i], at.ROLE] == EDGE:
            return True
    return False


@inlined
def _http_status(narrow: N, member: W, count: Int, hop: W, lost: I8) -> Int:
    status: Int = -1
    depth: Int = 1000
    for i in range(count):
        k = member[i]
        if narrow[k, at.HTTP] > 0 and hop[k] >= 0 and hop[k] < depth and not lost[k]:
            status, depth = np.int64(narrow[k, at.HTTP]), hop[k]
    return status


@inlined
def _completeness(
    wide: W,
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    hop: W,
    lost: I8,
    anchor: Int,
    flags: Int,
    conflict: bool,
    out: W,
) -> None:
    """Whether the chain is closed: a call without its server, or a lost parent, is not."""
    missing = 0
    broken = False
    for i in range(count):
        k = member[i]
        if k != anchor and parent[k] == PARENT_MISSING and not flags & at.FLAG_JOINED:
            broken = True
        calls = narrow[k, at.ROLE] == EDGE or narrow[k, at.ROLE] == CALL
        if not calls or lost[k]:
            continue
        answered = False
        for j in range(count):
            m = member[j]
            if narrow[m, at.ROLE] == SERVER and hop[m] > hop[k] and not lost[m]:
                answered = True
                break
        if not answered:
            missing |= 1 << (AT_GATEWAY if narrow[k, at.ROLE] == CALL else AT_ENGINE)
    state = PARTIAL if broken or missing else COMPLETE
    if narrow[anchor, at.ROLE] != CALL and parent[anchor] == PARENT_MISSING:
        state = ROOTLESS
        missing |= 1 << AT_CLIENT
    if conflict:
        state = CONFLICT
    out[at.O_COMPLETENESS] = state
    out[at.O_MISSING] = missing


@inlined
def _dimensions(narrow: N, member: W, count: Int, hop: W, lost: I8, vantage: W, out: W) -> None:
    """Dimensions: the outermost hop's word, but the engine's own for where it ran."""
    e = vantage[AT_ENGINE, V_SPAN]
    depth = np.full(len(_SOURCE), 1000, np.int64)
    for d in range(len(_SOURCE)):
        out[at.O_CODES + d] = 0
    for i in range(count):
        k = member[i]
        if lost[k]:
            continue
        h = hop[k] if hop[k] >= 0 else 999
        for d in range(len(_SOURCE)):
            code = np.int64(narrow[k, _SOURCE[d]])
            if code != 0 and h < depth[d]:
                out[at.O_CODES + d] = code
                depth[d] = h
    if e >= 0:
        for d in _ENGINES_OWN:
            if narrow[e, _SOURCE[d]] != 0:
                out[at.O_CODES + d] = narrow[e, _SOURCE[d]]
    outermost_server = vantage[AT_GATEWAY, V_SPAN] if vantage[AT_GATEWAY, V_SPAN] >= 0 else e
    if outermost_server >= 0:
        out[at.O_CODES + _SERVICE_CODE] = narrow[outermost_server, at.SERVICE]
    c = vantage[AT_CLIENT, V_SPAN]
    if out[at.O_CODES + _CLIENT_CODE] == 0 and c >= 0:
        out[at.O_CODES + _CLIENT_CODE] = narrow[c, at.SERVICE]
    zone, crossed = 0, 0
    for i in range(count):
        k = member[i]
        z = narrow[k, at.ZONE]
        if z != 0 and zone != 0 and z != zone and not lost[k]:
            crossed = 1
        zone = z if z != 0 else zone
    out[at.O_CROSS_ZONE] = crossed


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
