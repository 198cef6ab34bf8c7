"""Where clocks start and stop: client, gateway and engine of one request."""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch.compiling import inlined
from tailburn.collector.stitch.halves import prefills
from tailburn.collector.stitch.layout import (
    END_IS,
    FIRST_WITH_HEADERS,
    ROLE,
    SERVICE,
    SPAN,
    STREAMED,
    TRACE,
)
from tailburn.collector.stitch.places import CLIENT, ENGINE, GATEWAY, ROUTER
from tailburn.collector.stitch.tree import CALL, CONTAINMENT_SLACK_NS, EDGE, HEADERS, SERVER
from tailburn.engine.compiled import Int

# Rows of the vantage matrix are VANTAGES; these are its columns. Times ns, 0 unknown.
V_SPAN, V_START, V_FIRST, V_LAST, V_END = range(5)
AT_CLIENT, AT_GATEWAY, AT_ENGINE = range(3)

W = NDArray[np.int64]
N = NDArray[np.int32]


@inlined
def read_tokens(
    wide: W,
    narrow: N,
    member: W,
    count: Int,
    shift_ns: W,
    tokens: W,
    first: W,
    last: W,
) -> tuple[Int, Int, Int]:
    """Fold token times into the first and last token of the servers that sent them.

    `tokens` are rows (trace, parent span, time ns) sorted by all three. Returns (largest gap
    in ns, or -1 without two tokens; most tokens one server sent; tokens of all servers).
    """
    gap, seen, total = -1, 0, 0
    if len(tokens) == 0:
        return gap, seen, total
    for i in range(count):
        k = member[i]
        if narrow[k, ROLE] != SERVER:
            continue
        n, before = 0, 0
        for t in range(len(tokens)):
            if tokens[t, 0] != wide[k, TRACE] or tokens[t, 1] != wide[k, SPAN]:
                continue
            at = tokens[t, 2] - shift_ns[k]
            if n == 0 and first[k] == 0:
                first[k] = at
            if n > 0:
                gap = max(gap, at - before)
            before = at
            n += 1
        if n > 0 and last[k] == 0:
            last[k] = before
        seen = max(seen, n)
        total += n
    return gap, seen, total


@inlined
def was_streamed(narrow: N, member: W, count: Int, hop: W, lost: NDArray[np.int8]) -> Int:
    """1, 0, or -1 where nobody tells: the outermost hop's word counts."""
    told: Int = -1
    depth: Int = 1000
    for i in range(count):
        k = member[i]
        if lost[k] or narrow[k, STREAMED] < 0:
            continue
        h = hop[k] if hop[k] >= 0 else 999
        if h < depth:
            told, depth = np.int64(narrow[k, STREAMED]), h
    return told


@inlined
def _clear(vantage: W) -> None:
    for v in range(3):
        vantage[v, V_SPAN] = -1
        for c in range(1, 5):
            vantage[v, c] = 0


@inlined
def find_vantages(
    narrow: N,
    parent: W,
    member: W,
    count: Int,
    hop: W,
    lost: NDArray[np.int8],
    start: W,
    end: W,
    first: W,
    last: W,
    halves: bool,
    vantage: W,
) -> None:
    """Fill `vantage` (3, 5): the span, start, first token, last token and end per vantage."""
    _clear(vantage)
    for i in range(count):
        k = member[i]
        if lost[k]:
            continue
        h = hop[k]
        if narrow[k, ROLE] == CALL and vantage[AT_CLIENT, V_SPAN] < 0 and h == CLIENT:
            _take(vantage, AT_CLIENT, k, start, end, first, last)
        elif narrow[k, ROLE] == SERVER and h == ENGINE:
            half = halves and prefills(narrow, hop, k)
            _widen_engine(vantage, k, start, end, first, last, half)
        elif narrow[k, ROLE] == SERVER and (h == GATEWAY or h == ROUTER):
            g = vantage[AT_GATEWAY, V_SPAN]
            if g < 0 or h < hop[g]:
                _take(vantage, AT_GATEWAY, k, start, end, first, last)
            elif h == hop[g]:
                _confirm(vantage, AT_GATEWAY, k, first, last)
    e = vantage[AT_ENGINE, V_SPAN]
    if halves and e >= 0 and prefills(narrow, hop, e):  # the decode's span never came
        vantage[AT_ENGINE, V_SPAN] = -1
    _first_with_headers(narrow, member, count, hop, lost, end, vantage)
    for v in range(3):
        if 0 < vantage[v, V_FIRST] < vantage[v, V_START]:
            vantage[v, V_FIRST] = 0
        if vantage[v, V_SPAN] >= 0 and vantage[v, V_LAST] == 0:
            vantage[v, V_LAST] = vantage[v, V_END]


@inlined
def forget_late_first(vantage: W, slack_ns: Int) -> None:
    """A gateway that passes messages on had its first before its client did, or it was lost."""
    client, gateway = vantage[AT_CLIENT, V_FIRST], vantage[AT_GATEWAY, V_FIRST]
    if 0 < client + slack_ns + CONTAINMENT_SLACK_NS < gateway and client > 0:
        vantage[AT_GATEWAY, V_FIRST] = 0


@inlined
def _take(vantage: W, v: Int, k: Int, start: W, end: W, first: W, last: W) -> None:
    vantage[v, V_SPAN] = k
    vantage[v, V_START] = start[k]
    vantage[v, V_FIRST] = first[k]
    vantage[v, V_LAST] = last[k]
    vantage[v, V_END] = end[k]


@inlined
def _confirm(vantage: W, v: Int, k: Int, first: W, last: W) -> None:
    """A second server's span for the same hop fills in what the first doesn't tell."""
    if vantage[v, V_FIRST] == 0:
        vantage[v, V_FIRST] = first[k]
    if vantage[v, V_LAST] == 0:
        vantage[v, V_LAST] = last[k]


@inlined
def _widen_engine(vantage: W, k: Int, start: W, end: W, first: W, last: W, half: bool) -> None:
    """Several engines (prefill and decode, choices) are one vantage from first to last.

    `half`: it only prefills, and its token is not the user's.
    """
    e = vantage[AT_ENGINE, V_SPAN]
    if e < 0:
        _take(vantage, AT_ENGINE, k, start, end, first, last)
        if half:
            vantage[AT_ENGINE, V_FIRST] = vantage[AT_ENGINE, V_LAST] = 0
        return
    if half:
        vantage[AT_ENGINE, V_START] = min(vantage[AT_ENGINE, V_START], start[k])
        return
    had_first = vantage[AT_ENGINE, V_FIRST]
    if had_first == 0 and first[k] > 0:
        vantage[AT_ENGINE, V_SPAN] = k
    if first[k] > 0 and (had_first == 0 or first[k] < had_first):
        vantage[AT_ENGINE, V_FIRST] = first[k]
    vantage[AT_ENGINE, V_START] = min(vantage[AT_ENGINE, V_START], start[k])
    vantage[AT_ENGINE, V_LAST] = max(vantage[AT_ENGINE, V_LAST], last[k])
    vantage[AT_ENGINE, V_END] = max(vantage[AT_ENGINE, V_END], end[k])


@inlined
def _first_with_headers(
    narrow: N, member: W, count: Int, hop: W, lost: NDArray[np.int8], end: W, vantage: W
) -> None:
    """A gateway that sends headers with the first token makes the client's HTTP span its TTFT.

    Unless headers and end came together: that was no stream.
    """
    c, g = vantage[AT_CLIENT, V_SPAN], vantage[AT_GATEWAY, V_SPAN]
    if c < 0 or g < 0 or vantage[AT_CLIENT, V_FIRST] > 0:
        return
    told = False
    for i in range(count):
        k = member[i]
        if narrow[k, ROLE] == SERVER and narrow[k, FIRST_WITH_HEADERS] and hop[k] == hop[g]:
            told = True
    if not told:
        return
    for i in range(count):
        k = member[i]
        if (
            narrow[k, ROLE] == EDGE
            and narrow[k, END_IS] == HEADERS
            and narrow[k, SERVICE] == narrow[c, SERVICE]
            and not lost[k]
            and end[k] < vantage[AT_GATEWAY, V_END]
        ):
            vantage[AT_CLIENT, V_FIRST] = end[k]
