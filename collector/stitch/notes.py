"""Noting in the table which rows were given, so that the next version knows its last."""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch import intake as t
from tailburn.collector.stitch import layout as at
from tailburn.collector.stitch.compiling import entry
from tailburn.collector.stitch.reserve import grown
from tailburn.collector.stitch.rows import Rows
from tailburn.collector.stitch.table import Table

I64 = NDArray[np.int64]


def note(
    table: Table, out: I64, hops_ns: I64, given: I64, digests: I64, digest_offset: I64
) -> tuple[Rows, Rows]:
    """Note stitched rows and number their versions.

    `given[r]` is the emitted row that `out[r]` replaces or takes back, -1 for a new id. A new id
    whose request was given before under another one goes on with the versions of that one.
    Returns (the rows to store, the older versions they take the place of).
    """
    n = len(out)
    old = given >= 0
    at_old = given[old]
    version = np.ones(n, np.int32)
    version[old] = table.emitted[at_old, 2] + 1
    tombstone = old & (out[:, at.O_HASH] == 0)
    was_live = table.emitted[at_old, 3] != 0
    gone = np.flatnonzero(tombstone)
    replaces = np.zeros(n, np.int64)
    if len(gone) and not old.all():
        fresh = np.flatnonzero(~old)
        taker = _takers(table, out, fresh, table.emitted_out[given[gone]])
        heir, first = np.unique(taker[taker >= 0], return_index=True)
        before = given[gone[taker >= 0][first]]
        replaces[heir] = table.emitted[before, 1]
        version[heir] = table.emitted[before, 2] + 1
    taken_back = _rows_of(
        table,
        table.emitted_out[at_old][was_live].copy(),
        table.emitted_hops[at_old][was_live].copy(),
    )
    taken_back.version = (version[old] - 1)[was_live]
    closed_ns = out[tombstone, at.O_CLOSED]
    out[tombstone] = table.emitted_out[given[tombstone]]
    out[tombstone, at.O_CLOSED] = closed_ns
    content = np.where(tombstone, 0, out[:, at.O_HASH])
    table.emitted[at_old, 2] = version[old]
    table.emitted[at_old, 3] = content[old]
    table.emitted[at_old, 5] = np.where(tombstone, 0, out[:, at.O_SENDS])[old]
    table.emitted_out[at_old] = out[old]
    table.emitted_hops[at_old] = hops_ns[old]
    first_new = table.emitted_count
    _append(table, out[~old], hops_ns[~old])
    table.emitted[first_new : table.emitted_count, 2] = version[~old]
    rows = _rows_of(table, out, hops_ns)
    rows.replaces = replaces
    rows.version = version
    rows.tombstone = tombstone
    rows.digests = digests
    rows.digest_offset = digest_offset
    return rows, taken_back


def _takers(table: Table, out: I64, fresh: I64, gone: I64) -> I64:
    """Which of the rows `fresh` of `out` took the place of each row that is gone; -1 for none.

    A request found to lie in an outer one is known by the outer one's id from then on: by that
    of the last to start before it in its unit, or of the first where none did.
    """
    begin_ns = out[fresh, at.O_START]
    unit = _roots(table, out[fresh, at.O_TRACE])
    order = np.lexsort((begin_ns, unit))
    begin_ns, unit = begin_ns[order], unit[order]
    of_unit = _roots(table, gone[:, at.O_TRACE])
    low, high = np.searchsorted(unit, of_unit), np.searchsorted(unit, of_unit, "right")
    taker = np.full(len(gone), -1, np.int64)
    for i in np.flatnonzero(low < high).tolist():
        before = np.searchsorted(begin_ns[low[i] : high[i]], gone[i, at.O_START], "right")
        taker[i] = fresh[order[low[i] + max(int(before) - 1, 0)]]
    return taker


def _roots(table: Table, traces: I64) -> I64:
    """The root trace of each trace's unit."""
    root: I64 = table.traces[traces, t.T_ROOT]
    while True:
        above: I64 = table.traces[root, t.T_ROOT]
        if (above == root).all():
            return root
        root = above


def bring_back(
    table: Table, out: I64, hops_ns: I64, version: NDArray[np.int32], live: NDArray[np.bool_]
) -> None:
    """Note rows that were given long ago, read back from the store."""
    first = table.emitted_count
    _append(table, out, hops_ns)
    noted = table.emitted[first : table.emitted_count]
    noted[:, 2] = version
    noted[~live, 3] = 0


def _rows_of(table: Table, out: I64, hops_ns: I64) -> Rows:
    words = table.traces[out[:, at.O_TRACE]][:, [t.T_LOW, t.T_HIGH]]
    return Rows(
        out=out,
        hops_ns=hops_ns,
        replaces=np.zeros(len(out), np.int64),
        version=np.ones(len(out), np.int32),
        tombstone=np.zeros(len(out), np.bool_),
        trace_words=words,
        digests=np.zeros(0, np.int64),
        digest_offset=np.zeros(len(out) + 1, np.int64),
    )


def _append(table: Table, out: I64, hops_ns: I64) -> None:
    e = table.emitted_count
    table.emitted = grown(table.emitted, e + len(out))
    table.emitted_out = grown(table.emitted_out, e + len(out))
    table.emitted_hops = grown(table.emitted_hops, e + len(out))
    table.emitted_out[e : e + len(out)] = out
    table.emitted_hops[e : e + len(out)] = hops_ns
    _link(table.traces, table.emitted, out, e)
    table.emitted_count += len(out)


@entry
def _link(traces: I64, emitted: I64, out: I64, first: int) -> None:
    for r in range(len(out)):
        trace = out[r, at.O_TRACE]
        root = t.root_of(traces, trace)
        emitted[first + r, 0] = traces[root, t.T_EMITTED]
        emitted[first + r, 1] = out[r, at.O_REQUEST]
        emitted[first + r, 2] = 1
        emitted[first + r, 3] = out[r, at.O_HASH]
        emitted[first + r, 4] = trace
        emitted[first + r, 5] = out[r, at.O_SENDS]
        traces[root, t.T_EMITTED] = first + r
        traces[root, t.T_EMITTED_COUNT] += 1
