"""The spans of open and lately closed traces, and the rows already given for them.

A unit is one trace, or several that share a request id. A unit is stitched when its entry
span has come and nothing did for `idle_close_ns`; it stays for a while after, so that a late
span makes a new version of its row. All times are receive times: with equal deliveries and
equal calls of `due`, equal units close at equal times, however the calls are spaced.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.hops.columns import Role
from tailburn.collector.stitch import intake as t
from tailburn.collector.stitch import layout as at
from tailburn.collector.stitch.compiling import entry
from tailburn.collector.stitch.reserve import grown, reserved
from tailburn.collector.stitch.tree import mix

I64 = NDArray[np.int64]
S = 1_000_000_000
CALL, SERVER, EDGE = int(Role.CALL), int(Role.SERVER), int(Role.EDGE)

_T = TypeVar("_T", bound=np.generic)

GRID_NS = S // 4
"""Units are looked at on this grid of receive time, so that closing is reproducible."""


SET_BACK_NS = 10 * S
"""A time this much before the latest is a clock set back, not bodies out of order."""


@dataclass(frozen=True)
class Bounds:
    """When a unit closes (ns of receive time) and how much is kept (spans)."""

    idle_close_ns: int = 5 * S  # quiet after the entry span came
    rootless_close_ns: int = 30 * S  # quiet, but the entry span never came
    hold_ns: int = 60 * S  # look at a unit that never falls quiet at least this often
    hard_close_ns: int = 1800 * S  # above the longest stream
    keep_ns: int = 120 * S  # closed units stay this long for late spans
    keep_spans: int = 400_000  # and at most this many spans of them
    spans_per_trace: int = 32_768
    spans_per_tenant: int = 2_000_000
    spans_in_all: int = 4_000_000


class Table:
    """The open table. `counts` are (traces, spans, token times) in use."""

    def __init__(self, bounds: Bounds, seed: int) -> None:
        self.bounds = bounds
        self.seed = seed
        self.counts = np.zeros(3, np.int64)
        self.emitted_count = 0
        self.tenant_spans = np.zeros(65_536, np.int64)
        spans = bounds.spans_in_all
        self.traces = reserved(spans, t.TRACE_COLUMNS, np.int64)
        self.wide = reserved(spans, len(at.WIDE), np.int64)
        self.narrow = reserved(spans, len(at.NARROW), np.int32)
        self.tokens = reserved(spans, 4, np.int64)  # next, parent span, time ns, trace
        # next, request id, version, hash, trace, token sends
        self.emitted = reserved(spans, 6, np.int64)
        self.emitted_out = reserved(spans, len(at.OUT), np.int64)
        self.emitted_hops = reserved(spans, 44, np.int64)  # first token, then last token
        self.next_due_ns = np.iinfo(np.int64).max
        self.grid_ns = 0
        self.slots = np.full(8192, -1, np.int32)
        self.digests = np.zeros(32_768, np.int64)
        self.ids = np.zeros((32_768, 2), np.int64)
        self.ids_at_most = 0  # in use

    def _index(self, more: int = 0, more_ids: int = 0) -> None:
        """Build the hash tables anew from what is in the matrices, with room for more spans."""
        traces, spans, tokens = (int(c) for c in self.counts)
        self.ids_at_most = _ids_in(self.wide[:spans])
        self.slots = _cleared(self.slots, 4 * (traces + more), -1)
        self.digests = _cleared(self.digests, 4 * (spans + tokens + more), 0)
        self.ids = _cleared(self.ids, 4 * (self.ids_at_most + more_ids), 0)
        _rebuild(
            self.slots, self.traces[:traces], self.wide[:spans], self.narrow[:spans],
            self.tokens[:tokens], self.digests, self.ids, self.seed,
        )  # fmt: skip
        self.tenant_spans[:] = np.bincount(
            self.narrow[:spans, at.TENANT], minlength=len(self.tenant_spans)
        )

    def rows_for(self, more: int) -> tuple[I64, NDArray[np.int32]]:
        """Rows of `wide` and `narrow` behind those in use, to be filled before `take`."""
        traces, spans, tokens = (int(c) for c in self.counts)
        self.traces = grown(self.traces, traces + more)
        self.wide = grown(self.wide, spans + more)
        self.narrow = grown(self.narrow, spans + more)
        self.tokens = grown(self.tokens, tokens + more)
        return self.wide[spans : spans + more], self.narrow[spans : spans + more]

    def _room_in_index(self, more: int, more_ids: int) -> None:
        traces, spans, tokens = (int(c) for c in self.counts)
        full = 2 * (traces + more) > len(self.slots)
        full = full or 2 * (spans + tokens + more) > len(self.digests)
        if full or 2 * (self.ids_at_most + more_ids) > len(self.ids):
            self._index(more, more_ids)
        self.ids_at_most += more_ids

    def take(
        self, trace: NDArray[np.uint64], skip: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int8], I64]:
        """Take in what was put into `rows_for(len(trace))`.

        Returns (fate per span, see `intake`; indices of new traces).
        """
        n = len(trace)
        fate = np.zeros(n, np.int8)
        if n == 0:
            return fate, np.zeros(0, np.int64)
        behind = int(self.counts[1])
        wide, narrow = self.wide[behind : behind + n], self.narrow[behind : behind + n]
        self._room_in_index(n, _ids_in(wide))
        fresh = np.zeros(n, np.int64)
        words = trace.view(np.int64)
        new = t.take_spans(
            wide, narrow, words[:, 0].copy(), words[:, 1].copy(), skip, self.slots, self.traces,
            self.counts, self.wide, self.narrow, self.tokens, self.emitted, self.digests, self.ids,
            self.tenant_spans, self.bounds.spans_per_trace, self.bounds.spans_per_tenant,
            self.bounds.spans_in_all, self.seed, fate, fresh,
        )  # fmt: skip
        b = self.bounds
        soonest = int(wide[:, at.RECEIVED].min()) + min(b.idle_close_ns, b.rootless_close_ns)
        self.next_due_ns = min(self.next_due_ns, soonest)
        return fate, fresh[:new]

    def is_due(self, now_ns: int) -> bool:
        """Whether `due(now_ns)` could find anything."""
        grid_ns = now_ns - now_ns % GRID_NS
        return grid_ns > self.grid_ns and grid_ns >= self.next_due_ns

    def was_set_back(self, now_ns: int) -> bool:
        """Whether the clock that gave earlier times has since been set back."""
        return now_ns < self.grid_ns - SET_BACK_NS

    def begin_anew(self) -> None:
        """Forget how late it was: nothing may be open."""
        self.grid_ns = 0
        self.next_due_ns = np.iinfo(np.int64).max

    def due(self, now_ns: int) -> tuple[I64, I64]:
        """Root traces of the units that are due by `now_ns`, and when each was."""
        grid_ns = now_ns - now_ns % GRID_NS
        if not self.is_due(now_ns):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.grid_ns = grid_ns
        b = self.bounds
        units, due_ns, self.next_due_ns = _find_due(
            self.traces[: self.counts[0]], grid_ns,
            b.idle_close_ns, b.rootless_close_ns, b.hold_ns, b.hard_close_ns,
        )  # fmt: skip
        return units, due_ns

    @property
    def has_open(self) -> bool:
        """Whether any unit may still get spans."""
        return bool((self.traces[: self.counts[0], t.T_OPEN] == 1).any())

    def oldest_open(self, spans: int) -> I64:
        """Root traces of the open units that came first, together at least `spans` large."""
        traces = self.traces[: self.counts[0]]
        roots = np.flatnonzero(traces[:, t.T_OPEN] == 1)
        roots = roots[np.argsort(traces[roots, t.T_LAST_NS], kind="stable")]
        enough = np.searchsorted(np.cumsum(traces[roots, t.T_SIZE]), spans) + 1
        return roots[:enough].astype(np.int64)

    def evict(self, now_ns: int, *, all_closed: bool = False) -> NDArray[np.uint64]:
        """Let go of closed units that are old or too many. Returns their traces' ids: (n, 2).

        Nothing is moved until a quarter of what is held can go, or all that is closed must.
        """
        traces = self.traces[: self.counts[0]]
        if not len(traces):
            return np.zeros((0, 2), np.uint64)
        root = _roots(traces)
        closed = traces[root, t.T_OPEN] == 0
        held = traces[:, t.T_COUNT] + traces[:, t.T_TOKEN_COUNT]
        last_ns = traces[root, t.T_LAST_NS]
        go = closed & (all_closed | (last_ns + self.bounds.keep_ns < now_ns))
        over = int(held[closed & ~go].sum()) - self.bounds.keep_spans
        if over > 0:
            rest = np.flatnonzero(closed & ~go)
            rest = rest[np.argsort(last_ns[rest], kind="stable")]
            cut_ns = last_ns[rest[np.searchsorted(np.cumsum(held[rest]), over)]]
            go |= closed & (last_ns <= cut_ns)
        few = 4 * int(held[go].sum()) < int(held.sum()) and not all_closed
        if few or not go.any():
            return np.zeros((0, 2), np.uint64)
        ids = traces[go][:, [t.T_LOW, t.T_HIGH]].view(np.uint64)
        self._keep(~go)
        return ids

    def _keep(self, keep: NDArray[np.bool_]) -> None:
        """Move what belongs to the traces of the mask `keep` together and forget the rest."""
        traces, spans, tokens = (int(c) for c in self.counts)
        of_span = keep[self.wide[:spans, at.TRACE]]
        of_token = keep[self.tokens[:tokens, 3]]
        of_emitted = keep[self.emitted[: self.emitted_count, 4]]
        to_trace, to_span = _targets(keep), _targets(of_span)
        to_token, to_emitted = _targets(of_token), _targets(of_emitted)
        self.counts[:] = (
            _squeeze(self.traces, keep), _squeeze(self.wide, of_span),
            _squeeze(self.tokens, of_token),
        )  # fmt: skip
        _squeeze(self.narrow, of_span)
        self.emitted_count = _squeeze(self.emitted, of_emitted)
        _squeeze(self.emitted_out, of_emitted)
        _squeeze(self.emitted_hops, of_emitted)
        kept_traces, kept_spans, kept_tokens = (int(c) for c in self.counts)
        for matrix, count, column, target in (
            (self.traces, kept_traces, t.T_ROOT, to_trace),
            (self.traces, kept_traces, t.T_NEXT, to_trace),
            (self.traces, kept_traces, t.T_TAIL, to_trace),
            (self.traces, kept_traces, t.T_HEAD, to_span),
            (self.traces, kept_traces, t.T_TOKENS, to_token),
            (self.traces, kept_traces, t.T_EMITTED, to_emitted),
            (self.wide, kept_spans, at.NEXT, to_span),
            (self.wide, kept_spans, at.TRACE, to_trace),
            (self.tokens, kept_tokens, 0, to_token),
            (self.tokens, kept_tokens, 3, to_trace),
            (self.emitted, self.emitted_count, 0, to_emitted),
            (self.emitted, self.emitted_count, 4, to_trace),
        ):
            matrix[:count, column] = target[matrix[:count, column]]
        used = self.emitted_count
        self.emitted_out[:used, at.O_TRACE] = self.emitted[:used, 4]
        self._index()

    def state(self) -> dict[str, NDArray[np.generic]]:
        """What a snapshot needs."""
        traces, spans, tokens = (int(c) for c in self.counts)
        e = self.emitted_count
        return {
            "traces": self.traces[:traces],
            "wide": self.wide[:spans],
            "narrow": self.narrow[:spans],
            "tokens": self.tokens[:tokens],
            "emitted": self.emitted[:e],
            "emitted_out": self.emitted_out[:e],
            "emitted_hops": self.emitted_hops[:e],
            "times": np.array([self.next_due_ns, self.grid_ns], np.int64),
        }

    def restore(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Go on from what `state` gave."""
        for name in (
            "traces", "wide", "narrow", "tokens", "emitted", "emitted_out", "emitted_hops",
        ):  # fmt: skip
            matrix = grown(getattr(self, name), len(state[name]))
            matrix[: len(state[name])] = state[name]
            setattr(self, name, matrix)
        self.counts[:] = len(state["traces"]), len(state["wide"]), len(state["tokens"])
        self.emitted_count = len(state["emitted"])
        self.next_due_ns, self.grid_ns = (int(v) for v in state["times"])
        self._index()


def _ids_in(wide: I64) -> int:
    return int(np.count_nonzero(wide[:, at.OWN]) + np.count_nonzero(wide[:, at.PEER]))


def _cleared(table: NDArray[_T], size: int, empty: int) -> NDArray[_T]:
    """`table` itself emptied, or a larger one: its length is a power of two."""
    if size > len(table):
        return np.full((1 << int(size - 1).bit_length(), *table.shape[1:]), empty, table.dtype)
    table[:] = empty
    return table


def _targets(keep: NDArray[np.bool_]) -> I64:
    """New index per old one; the last entry, reached by index -1, stays -1."""
    target = np.cumsum(keep, dtype=np.int64) - 1
    return np.append(target, -1)


@entry
def _squeeze(matrix: NDArray[_T], keep: NDArray[np.bool_]) -> int:
    """Move the rows of the mask to the front, in order. Returns how many there are."""
    n = 0
    for i in range(len(keep)):
        if keep[i]:
            if n != i:
                for c in range(matrix.shape[1]):
                    matrix[n, c] = matrix[i, c]
            n += 1
    return n


@entry
def _roots(traces: I64) -> I64:
    root = np.empty(len(traces), np.int64)
    for i in range(len(traces)):
        root[i] = t.root_of(traces, i)
    return root


@entry
def _find_due(
    traces: I64,
    now_ns: int,
    idle_ns: int,
    rootless_ns: int,
    hold_ns: int,
    hard_ns: int,
) -> tuple[I64, I64, int]:
    units = np.empty(len(traces), np.int64)
    due_ns = np.empty(len(traces), np.int64)
    n = 0
    soonest = np.iinfo(np.int64).max
    for i in range(len(traces)):
        if traces[i, t.T_ROOT] != i or not traces[i, t.T_OPEN]:
            continue
        checked = traces[i, t.T_CHECKED_NS]
        if traces[i, t.T_ENTRY]:
            due = min(traces[i, t.T_LAST_NS] + idle_ns, checked + hold_ns)
        else:
            due = min(traces[i, t.T_LAST_NS] + rootless_ns, checked + hard_ns)
        if due <= now_ns:
            units[n] = i
            due_ns[n] = due
            n += 1
        else:
            soonest = min(soonest, due)
    return units[:n], due_ns[:n], soonest


@entry
def _rebuild(
    slots: NDArray[np.int32],
    traces: I64,
    wide: I64,
    narrow: NDArray[np.int32],
    tokens: I64,
    digests: I64,
    ids: I64,
    seed: int,
) -> None:
    for i in range(len(traces)):
        low, high, tenant = traces[i, t.T_LOW], traces[i, t.T_HIGH], traces[i, t.T_TENANT]
        slots[t.trace_slot(slots, traces, low, high, tenant, seed)] = i
    for k in range(len(wide)):
        tenant = np.int64(narrow[k, at.TENANT])
        t.add_hash(digests, mix(wide[k, at.DIGEST] ^ tenant, 31))
        role = narrow[k, at.ROLE]
        if role == CALL or role == SERVER or role == EDGE:
            for c in (at.OWN, at.PEER):
                if wide[k, c] != 0:
                    t.owner_of_id(ids, max(mix(wide[k, c] ^ tenant, 33), 1), wide[k, at.TRACE])
    for k in range(len(tokens)):
        trace = tokens[k, 3]
        low, high = traces[trace, t.T_LOW], traces[trace, t.T_HIGH]
        t.add_hash(digests, mix(mix(low ^ high, 32) ^ tokens[k, 1], tokens[k, 2]))
