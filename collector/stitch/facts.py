"""What a request's spans say together: tokens, outcome, completeness, dimensions."""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch import layout as at
from tailburn.collector.stitch.compiling import inlined
from tailburn.collector.stitch.halves import prefills
from tailburn.collector.stitch.intervals import QUEUE_HOP
from tailburn.collector.stitch.places import ENGINE
from tailburn.collector.stitch.tree import CALL, CHILD, EDGE, PARENT_MISSING, PART, SERVER
from tailburn.collector.stitch.tries import CANCELLED, ERROR, failed
from tailburn.collector.stitch.vantage import AT_CLIENT, AT_ENGINE, AT_GATEWAY, V_SPAN
from tailburn.engine.compiled import Int
from tailburn.engine.names import COMPLETENESS, OUTCOMES

UNKNOWN_OUTCOME, OK = OUTCOMES.index("unknown"), OUTCOMES.index("ok")
COMPLETE, PARTIAL, ROOTLESS, CONFLICT = range(len(COMPLETENESS))

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


@inlined
def queue_of(
    wide: W,
    narrow: N,
    member: W,
    count: Int,
    hop: W,
    start: W,
    end: W,
    lost: I8,
    halves: bool,
    vantage: W,
) -> Int:
    """First scheduled minus enqueued, where the engine tells; its own word or its spans'."""
    e = vantage[AT_ENGINE, V_SPAN]
    if not halves and e >= 0 and wide[e, at.QUEUE] >= 0:
        return wide[e, at.QUEUE]
    total = -1
    for i in range(count):
        k = member[i]
        if halves and not lost[k] and prefills(narrow, hop, k):
            total = max(total, wide[k, at.QUEUE])
        if narrow[k, at.ROLE] == PART and hop[k] == QUEUE_HOP and not lost[k]:
            if narrow[k, at.END_IS] == CHILD and end[k] == start[k]:
                continue
            total = max(total, 0) + end[k] - start[k]
    return total


@inlined
def count_tokens(narrow: N, member: W, count: Int, hop: W, lost: I8, halves: bool, out: W) -> None:
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
            if told < 0 or lost[k] or (halves and source > at.PROMPT and prefills(narrow, hop, k)):
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
def outcome_of(narrow: N, member: W, count: Int, hop: W, lost: I8, anchor: Int, vantage: W) -> Int:
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
def http_status_of(narrow: N, member: W, count: Int, hop: W, lost: I8) -> Int:
    status: Int = -1
    depth: Int = 1000
    for i in range(count):
        k = member[i]
        if narrow[k, at.HTTP] > 0 and hop[k] >= 0 and hop[k] < depth and not lost[k]:
            status, depth = np.int64(narrow[k, at.HTTP]), hop[k]
    return status


@inlined
def judge_completeness(
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
def take_dimensions(narrow: N, member: W, count: Int, hop: W, lost: I8, vantage: W, out: W) -> None:
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
