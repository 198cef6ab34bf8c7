"""Taking spans into the table: which trace, seen before, within bounds."""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.hops.columns import Role
from tailburn.collector.stitch import layout as at
from tailburn.collector.stitch.compiling import entry, inlined, inner
from tailburn.collector.stitch.tree import CALL, EDGE, SERVER, mix
from tailburn.engine.compiled import Int

TOKEN = int(Role.TOKEN)
NOTHING = -1

# What became of a span, as codes in the order of `TAKEN`.
KEPT, FOLDED, DUPLICATE, TRACE_FULL, TENANT_FULL, TABLE_FULL = range(6)

# Columns of the trace table.
(
    T_LOW,  # first eight bytes of the trace id
    T_HIGH,
    T_TENANT,
    T_HEAD,  # newest span
    T_TOKENS,  # newest token time
    T_COUNT,
    T_TOKEN_COUNT,
    T_FIRST_NS,  # first received
    T_LAST_NS,  # last received
    T_ROOT,  # trace that stands for the unit
    T_NEXT,  # next trace of the unit
    T_TAIL,  # last trace of the unit, at its root
    T_OPEN,  # 1: something came since the unit was last stitched
    T_ENTRY,  # 1: a span without parent came
    T_EMITTED,  # newest row given, at the root
    T_EMITTED_COUNT,
    T_SIZE,  # spans of the whole unit, at its root
    T_CHECKED_NS,  # receive time of the oldest span not yet stitched
) = range(18)
TRACE_COLUMNS = 18
TRACES_PER_UNIT = 64

W = NDArray[np.int64]
N = NDArray[np.int32]


@inlined
def trace_slot(slots: N, traces: W, low: Int, high: Int, tenant: Int, seed: Int) -> Int:
    mask = len(slots) - 1
    j = mix(mix(low, seed) ^ high ^ tenant, seed) & mask
    while slots[j] >= 0:
        t = slots[j]
        if traces[t, T_LOW] == low and traces[t, T_HIGH] == high and traces[t, T_TENANT] == tenant:
            return j
        j = (j + 1) & mask
    return j


@inlined
def add_hash(table: W, value: Int) -> bool:
    """Whether `value` was new to the set."""
    value = value if value != 0 else 1
    mask = len(table) - 1
    j = value & mask
    while table[j] != 0:
        if table[j] == value:
            return False
        j = (j + 1) & mask
    table[j] = value
    return True


@inlined
def owner_of_id(table: W, value: Int, trace: Int) -> Int:
    """The trace that first bore this id; `trace` itself where it is the first."""
    mask = len(table) - 1
    j = value & mask
    while table[j, 0] != 0:
        if table[j, 0] == value:
            return table[j, 1]
        j = (j + 1) & mask
    table[j, 0] = value
    table[j, 1] = trace
    return trace


@inlined
def root_of(traces: W, t: Int) -> Int:
    """The trace that stands for the unit of trace `t`."""
    while traces[t, T_ROOT] != t:
        t = traces[t, T_ROOT]
    return t


@inner
def unite(traces: W, emitted: W, a: Int, b: Int) -> bool:
    """Make one unit of those of traces `a` and `b`, unless it would grow past its bound."""
    a, b = root_of(traces, a), root_of(traces, b)
    if a == b:
        return True
    if a > b:
        a, b = b, a
    if traces[a, T_SIZE] + traces[b, T_SIZE] > 32768 or _members(traces, a) >= TRACES_PER_UNIT:
        return False
    traces[b, T_ROOT] = a
    traces[traces[a, T_TAIL], T_NEXT] = b
    traces[a, T_TAIL] = traces[b, T_TAIL]
    for c in (T_SIZE, T_EMITTED_COUNT):
        traces[a, c] += traces[b, c]
    traces[a, T_FIRST_NS] = min(traces[a, T_FIRST_NS], traces[b, T_FIRST_NS])
    traces[a, T_LAST_NS] = max(traces[a, T_LAST_NS], traces[b, T_LAST_NS])
    traces[a, T_ENTRY] = max(traces[a, T_ENTRY], traces[b, T_ENTRY])
    if traces[b, T_OPEN]:
        if traces[a, T_OPEN]:
            traces[a, T_CHECKED_NS] = min(traces[a, T_CHECKED_NS], traces[b, T_CHECKED_NS])
        else:
            traces[a, T_CHECKED_NS] = traces[b, T_CHECKED_NS]
            traces[a, T_OPEN] = 1
        traces[b, T_OPEN] = 0
    if traces[b, T_EMITTED] != NOTHING:
        e = traces[b, T_EMITTED]
        while emitted[e, 0] != NOTHING:
            e = emitted[e, 0]
        emitted[e, 0] = traces[a, T_EMITTED]
        traces[a, T_EMITTED] = traces[b, T_EMITTED]
        traces[b, T_EMITTED] = NOTHING
    return True


@inlined
def _members(traces: W, a: Int) -> Int:
    n = 0
    while a != NOTHING and n <= TRACES_PER_UNIT:
        n += 1
        a = traces[a, T_NEXT]
    return n


@entry
def take_spans(
    new_wide: W,
    new_narrow: N,
    low: W,
    high: W,
    skip: NDArray[np.bool_],
    slots: N,
    traces: W,
    counts: W,
    wide: W,
    narrow: N,
    tokens: W,
    emitted: W,
    digests: W,
    ids: W,
    tenant_spans: W,
    spans_per_trace: Int,
    spans_per_tenant: Int,
    spans_in_all: Int,
    seed: Int,
    fate: NDArray[np.int8],
    fresh: W,
) -> Int:
    """Take the spans of a batch into the table, in order; `fate` says what became of each.

    The caller has copied the batch behind the spans in use; what is kept is moved together.
    `counts` are (traces, spans, token times) in use and grow. The caller has made room for
    every span being a new trace. Returns how many traces are new; `fresh` lists them.
    """
    new_traces = 0
    first = counts[1]
    for i in range(len(new_wide)):
        if skip[i]:
            continue
        tenant = np.int64(new_narrow[i, at.TENANT])
        digest = mix(new_wide[i, at.DIGEST] ^ tenant, 31)
        j = trace_slot(slots, traces, low[i], high[i], tenant, seed)
        t = np.int64(slots[j])
        role = new_narrow[i, at.ROLE]
        if role == TOKEN:
            digest = mix(mix(low[i] ^ high[i], 32) ^ new_wide[i, at.PARENT], new_wide[i, at.END])
        received = new_wide[i, at.RECEIVED]
        hop_span = role == CALL or role == SERVER or role == EDGE
        full = _bound(
            traces, t, role, hop_span, counts, tenant_spans[tenant],
            spans_per_trace, spans_per_tenant, spans_in_all,
        )  # fmt: skip
        if full != KEPT:
            fate[i] = full
            continue
        if not add_hash(digests, digest):
            fate[i] = DUPLICATE
            continue
        if t < 0:
            t = counts[0]
            counts[0] += 1
            slots[j] = t
            _new_trace(traces, t, low[i], high[i], tenant, received)
            fresh[new_traces] = t
            new_traces += 1
        tenant_spans[tenant] += 1
        root = root_of(traces, t)
        _touch(traces, root, received)
        if role == TOKEN:
            k = counts[2]
            counts[2] += 1
            tokens[k, 0] = traces[t, T_TOKENS]
            tokens[k, 1] = new_wide[i, at.PARENT]
            tokens[k, 2] = new_wide[i, at.END]
            tokens[k, 3] = t
            traces[t, T_TOKENS] = k
            traces[t, T_TOKEN_COUNT] += 1
            fate[i] = FOLDED
            continue
        k = counts[1]
        counts[1] += 1
        if k != first + i:
            for c in range(wide.shape[1]):
                wide[k, c] = wide[first + i, c]
            for c in range(narrow.shape[1]):
                narrow[k, c] = narrow[first + i, c]
        wide[k, at.NEXT] = traces[t, T_HEAD]
        wide[k, at.TRACE] = t
        traces[t, T_HEAD] = k
        traces[t, T_COUNT] += 1
        traces[root, T_SIZE] += 1
        if new_wide[i, at.PARENT] == 0:
            traces[root, T_ENTRY] = 1
        fate[i] = KEPT
        if hop_span:
            for c in (at.OWN, at.PEER):
                if new_wide[i, c] != 0:
                    owner = owner_of_id(ids, max(mix(new_wide[i, c] ^ tenant, 33), 1), t)
                    if owner != t:
                        unite(traces, emitted, owner, t)
                        root = root_of(traces, t)
    return new_traces


@inlined
def _bound(
    traces: W,
    t: Int,
    role: Int,
    hop_span: bool,
    counts: W,
    tenants_spans: Int,
    spans_per_trace: Int,
    spans_per_tenant: Int,
    spans_in_all: Int,
) -> Int:
    """KEPT, or which bound is hit. Hops have twice the room: they are the last to be dropped."""
    room = 2 if hop_span else 1
    if t >= 0:
        held = traces[t, T_TOKEN_COUNT] if role == TOKEN else traces[t, T_COUNT]
        if held >= room * spans_per_trace:
            return TRACE_FULL
    if tenants_spans >= room * spans_per_tenant:
        return TENANT_FULL
    if counts[1] + counts[2] >= spans_in_all:
        return TABLE_FULL
    return KEPT


@inlined
def _new_trace(traces: W, t: Int, low: Int, high: Int, tenant: Int, received_ns: Int) -> None:
    traces[t] = 0
    traces[t, T_LOW] = low
    traces[t, T_HIGH] = high
    traces[t, T_TENANT] = tenant
    traces[t, T_HEAD] = NOTHING
    traces[t, T_TOKENS] = NOTHING
    traces[t, T_FIRST_NS] = received_ns
    traces[t, T_LAST_NS] = received_ns
    traces[t, T_ROOT] = t
    traces[t, T_NEXT] = NOTHING
    traces[t, T_TAIL] = t
    traces[t, T_EMITTED] = NOTHING


@inlined
def _touch(traces: W, root: Int, received_ns: Int) -> None:
    if not traces[root, T_OPEN]:
        traces[root, T_OPEN] = 1
        traces[root, T_CHECKED_NS] = received_ns
    traces[root, T_LAST_NS] = max(traces[root, T_LAST_NS], received_ns)
