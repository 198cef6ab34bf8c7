"""One unit from the table to rows: gather its spans, find its requests, build each."""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch import intake as t
from tailburn.collector.stitch import layout as at
from tailburn.collector.stitch.build import build
from tailburn.collector.stitch.compiling import entry, inlined
from tailburn.collector.stitch.intervals import INTERVALS_PER_SPAN
from tailburn.collector.stitch.joining import requests_of
from tailburn.collector.stitch.tree import find_parents, mix
from tailburn.engine.compiled import Int
from tailburn.engine.names import HOPS

NOTHING = -1
HOP_ENTRIES = len(HOPS) + 1

W = NDArray[np.int64]
N = NDArray[np.int32]


@entry
def unit_sizes(units: W, traces: W) -> tuple[Int, Int, Int, Int]:
    """(largest unit's spans, its tokens, spans of all, rows given before for all)."""
    most, most_tokens, total, given = 0, 0, 0, 0
    for u in range(len(units)):
        n, sends = 0, 0
        m = units[u]
        given += traces[m, t.T_EMITTED_COUNT]
        while m != NOTHING:
            n += traces[m, t.T_COUNT]
            sends += traces[m, t.T_TOKEN_COUNT]
            m = traces[m, t.T_NEXT]
        most, most_tokens = max(most, n), max(most_tokens, sends)
        total += n
    return most, most_tokens, total, given


@inlined
def _before(wide: W, i: Int, j: Int) -> bool:
    for c in (at.START, at.END, at.SPAN, at.DIGEST):
        if wide[i, c] != wide[j, c]:
            return wide[i, c] < wide[j, c]
    return False


@inlined
def _canonical(wide: W, index: W, n: Int) -> None:
    """Sort `index[:n]` so that the order of arrival leaves no trace."""
    if n <= 32:
        for i in range(1, n):
            k = index[i]
            j = i - 1
            while j >= 0 and _before(wide, k, index[j]):
                index[j + 1] = index[j]
                j -= 1
            index[j + 1] = k
        return
    for c in (at.DIGEST, at.SPAN, at.END, at.START):
        keys = np.empty(n, np.int64)
        for i in range(n):
            keys[i] = wide[index[i], c]
        order = np.argsort(keys, kind="mergesort")
        sorted_index = np.empty(n, np.int64)
        for i in range(n):
            sorted_index[i] = index[order[i]]
        index[:n] = sorted_index


@inlined
def _gather(unit: Int, traces: W, wide: W, narrow: N, index: W, uw: W, un: N) -> Int:
    n = 0
    m = unit
    while m != NOTHING:
        i = traces[m, t.T_HEAD]
        while i != NOTHING:
            index[n] = i
            n += 1
            i = wide[i, at.NEXT]
        m = traces[m, t.T_NEXT]
    _canonical(wide, index, n)
    for k in range(n):
        for c in range(uw.shape[1]):
            uw[k, c] = wide[index[k], c]
        for c in range(un.shape[1]):
            un[k, c] = narrow[index[k], c]
    return n


@inlined
def _gather_tokens(unit: Int, traces: W, tokens: W, ut: W) -> Int:
    """Token times of the unit as rows (trace, parent span, ns), sorted by time."""
    n = 0
    m = unit
    while m != NOTHING:
        i = traces[m, t.T_TOKENS]
        while i != NOTHING:
            ut[n, 0] = m
            ut[n, 1] = tokens[i, 1]
            ut[n, 2] = tokens[i, 2]
            n += 1
            i = tokens[i, 0]
        m = traces[m, t.T_NEXT]
    if n > 1:
        order = np.argsort(ut[:n, 2], kind="mergesort")
        ut[:n] = ut[:n][order]
    return n


@inlined
def _members(request: W, n: Int, anchor: Int, member: W) -> Int:
    count = 0
    for k in range(n):
        if request[k] == anchor:
            member[count] = k
            count += 1
    return count


@inlined
def request_id(tenant_hash: Int, low: Int, high: Int, anchor: Int) -> Int:
    """hash(tenant, trace id, anchor span id): the same in every process."""
    return mix(mix(mix(low, 101) ^ high, 102) ^ anchor, 103 ^ tenant_hash)


@inlined
def _given_before(emitted: W, first: Int, wanted: Int) -> Int:
    e = first
    while e != NOTHING:
        if emitted[e, 1] == wanted:
            return e
        e = emitted[e, 0]
    return NOTHING


@entry
def stitch_units(
    units: W,
    closed_ns: W,
    traces: W,
    text_hash: W,
    wide: W,
    narrow: N,
    tokens: W,
    emitted: W,
    pool: tuple[W, W, W, W, W, W],
    seed: Int,
    most: Int,
    most_tokens: Int,
    out: W,
    hops_ns: W,
    given: W,
    digests: W,
    digest_offset: W,
) -> Int:
    """Build the rows of `units` (root traces) into `out` and `hops_ns`.

    Only rows that are new or whose content changed are kept, and no row is replaced by one
    that knows fewer token times: those are not kept with the spans. `emitted` rows are (next,
    request id, version, content hash, trace, token sends). `given[r]` is the emitted row that
    row `r` replaces (NOTHING: none), or, for a tombstone, that it takes back; then its `out`
    row is all zero but for the trace, request id and closing time. Returns the number of rows.
    """
    uw = np.empty((max(most, 1), wide.shape[1]), np.int64)
    un = np.empty((max(most, 1), narrow.shape[1]), np.int32)
    ut = np.empty((max(most_tokens, 1), 3), np.int64)
    index = np.empty(max(most, 1), np.int64)
    slots = np.empty(max(4 * most, 64), np.int32)
    tree = np.empty((7, max(most, 1)), np.int64)
    parent, stack, above, extent = tree[0], tree[1], tree[2], tree[3]
    merged, request, flags = tree[4], tree[5], tree[6]
    member = np.empty(max(most, 1), np.int64)
    by_row = np.empty((6, max(most, 1)), np.int64)
    entries = INTERVALS_PER_SPAN * most * 2 + 64
    intervals = np.empty((5, entries), np.int64)
    edges_ns = np.empty(2 * entries + 2, np.int64)
    lost = np.zeros(max(most, 1), np.int8)
    seen = np.zeros(len(emitted) + 1, np.bool_)
    rows = 0
    digest_offset[0] = 0
    for u in range(len(units)):
        unit = units[u]
        n = _gather(unit, traces, wide, narrow, index, uw, un)
        sends = _gather_tokens(unit, traces, tokens, ut)
        conflict = find_parents(uw, un, n, seed, slots, parent)
        requests_of(uw, un, parent, n, pool, stack, above, extent, merged, request, flags)
        for a in range(n):
            if request[a] != a:
                continue
            count = _members(request, n, a, member)
            made = build(
                uw, un, parent, member, count, a, flags[a], conflict, ut[:sends], pool,
                (by_row[0], by_row[1], by_row[2], by_row[3], by_row[4], by_row[5]),
                (intervals[0], intervals[1], intervals[2], intervals[3], intervals[4]),
                edges_ns, lost, text_hash, closed_ns[u], out[rows],
                hops_ns[rows, :HOP_ENTRIES], hops_ns[rows, HOP_ENTRIES:],
            )  # fmt: skip
            if not made:
                continue
            trace = out[rows, at.O_TRACE]
            this = request_id(
                text_hash[traces[trace, t.T_TENANT]],
                traces[trace, t.T_LOW],
                traces[trace, t.T_HIGH],
                out[rows, at.O_ANCHOR],
            )
            for k in range(a):
                if (
                    request[k] == k
                    and uw[k, at.SPAN] == uw[a, at.SPAN]
                    and uw[k, at.TRACE] == trace
                ):
                    this = mix(this ^ uw[a, at.START], 104)
                    break
            out[rows, at.O_REQUEST] = this
            e = _given_before(emitted, traces[unit, t.T_EMITTED], this)
            if e != NOTHING:
                seen[e] = True
                lost_sends = out[rows, at.O_SENDS] < emitted[e, 5] and emitted[e, 3] != 0
                if emitted[e, 3] == out[rows, at.O_HASH] or lost_sends:
                    continue
            given[rows] = e
            d = digest_offset[rows]
            for i in range(count):
                digests[d + i] = uw[member[i], at.DIGEST]
            digest_offset[rows + 1] = d + count
            rows += 1
        e = traces[unit, t.T_EMITTED]
        while e != NOTHING:
            if not seen[e] and emitted[e, 3] != 0:
                out[rows] = 0
                out[rows, at.O_TRACE] = unit
                out[rows, at.O_REQUEST] = emitted[e, 1]
                out[rows, at.O_CLOSED] = closed_ns[u]
                hops_ns[rows] = 0
                given[rows] = e
                digest_offset[rows + 1] = digest_offset[rows]
                rows += 1
            e = emitted[e, 0]
    return rows
