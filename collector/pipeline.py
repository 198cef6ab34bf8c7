"""Spans in log order become rows: plausibility, hops, stitching, rollups.

Everything here runs on receive time, handed in; equal spans and equal times give equal rows.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.collector import kept
from tailburn.collector.balance import Balance
from tailburn.collector.hops.classify import Classifier
from tailburn.collector.hops.columns import HopColumns, Role
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.otlp.dictionary import Dictionary
from tailburn.collector.otlp.plausible import REASONS, judge
from tailburn.collector.otlp.resources import Resources
from tailburn.collector.past import ClosedTraces, Past, of_traces, spans_again, trace_ids
from tailburn.collector.spans import SpanBatch
from tailburn.collector.stitch import intake as taken
from tailburn.collector.stitch import layout as at
from tailburn.collector.stitch.clocks import OffsetPool
from tailburn.collector.stitch.notes import bring_back, note
from tailburn.collector.stitch.readback import read_back
from tailburn.collector.stitch.rows import PromptClasses, Rows, concat, requests_table
from tailburn.collector.stitch.table import Bounds, Table
from tailburn.collector.stitch.unit import stitch_units, unit_sizes
from tailburn.engine.names import HOPS
from tailburn.engine.rollup import fold
from tailburn.engine.schema import REQUESTS, ROLLUPS, SIGNALS, SPANS
from tailburn.engine.store.api import TraceIds

SPANS_PER_CHUNK = 65_536
"""Units are stitched in chunks of about this many spans, so that scratch stays small."""

DROPPED = {
    taken.TRACE_FULL: "trace full",
    taken.TENANT_FULL: "tenant full",
    taken.TABLE_FULL: "table full",
}


class Counts(Protocol):
    """Counts requests as they are given, and is kept over restarts with the pipeline's state.

    The counts must not depend on how the same rows are split over calls.
    """

    def count(self, rows: pa.Table, replaced: pa.Table) -> None:
        """Rows of REQUESTS, and the older versions that some of them replace."""

    def hear(self, signals: pa.Table) -> None:
        """Rows of SIGNALS; of requests that closed before, some may not be counted yet."""

    def take_rows(self) -> Mapping[str, pa.Table]:
        """What was counted since the last call, as rows of other tables of the store.

        Published with the requests counted, they are as true after a kill as these are.
        """

    def state(self) -> Any:
        """The counts, as JSON can hold them, after `take_rows`."""

    def restore(self, state: Any) -> None:
        """Go on from what `state` gave."""


class Uncounted:
    """Counts nothing, and keeps the counts that a snapshot holds for who counts next."""

    def __init__(self) -> None:
        self._state: Any = []

    def count(self, rows: pa.Table, replaced: pa.Table) -> None:
        pass

    def hear(self, signals: pa.Table) -> None:
        pass

    def take_rows(self) -> Mapping[str, pa.Table]:
        return {}

    def state(self) -> Any:
        return self._state

    def restore(self, state: Any) -> None:
        self._state = state


class Pipeline:
    """Takes spans and the time; gives finished rows."""

    def __init__(
        self,
        classifier: Classifier,
        dictionary: Dictionary,
        resources: Resources,
        *,
        past: Past | None = None,
        bounds: Bounds = Bounds(),  # noqa: B008 (frozen)
        classes: PromptClasses,
        seed: int = 0,
        counts: Counts | None = None,
    ) -> None:
        self.classifier = classifier
        self.dictionary = dictionary
        self.resources = resources
        self.balance = Balance()
        self.time_ns = 0  # to which it has come; 0: to none yet
        self._table = Table(bounds, seed)
        self._past = past
        self._counts = counts or Uncounted()
        self._closed = ClosedTraces()
        self._again: Decoder | None = None
        self._pool = OffsetPool()
        self._classes = classes
        self._out = np.empty((0, len(at.OUT)), np.int64)
        self._hops_ns = np.empty((0, 0), np.int64)
        self._hashes = np.zeros(0, np.int64)
        self._kept: list[kept.KeptSpans] = []
        self._rows: list[Rows] = []
        self._taken_back: list[Rows] = []
        self._finished: dict[str, list[pa.Table]] = {}
        self._signals: list[pa.Table] = []
        self._pending_spans = 0
        self._first_with_headers = np.array(
            [c.first_token_with_headers for c in classifier.classes], np.int32
        )

    def add(self, batch: SpanBatch, rejected: Sequence[tuple[int, str, int]]) -> None:
        """Take spans in log order; `rejected` are (resource, reason, count) the door refused."""
        for resource, reason, count in rejected:
            self.balance.reject(resource, reason, count)
        if not len(batch):
            return
        self.balance.receive(batch.resource)
        self.time_ns = int(batch.received_ns[-1])
        judged = judge(batch)
        columns = self.classifier.classify(batch)
        quarantined = judged.quarantine != 0
        self._make_room(len(batch), int(batch.received_ns[-1]))
        self._fill_rows(batch, columns, judged.repaired)
        fate, fresh = self._table.take(batch.trace, quarantined)
        self._bring_back(batch, fate, fresh)
        self._settle(batch, fate, judged.quarantine)
        by_position = columns.hop < 0
        recognised = _IS_HOP[columns.role] & ~by_position
        self._kept.append(
            kept.KeptSpans(
                batch=batch,
                stored=(fate == taken.KEPT),
                hop=np.where(recognised, columns.hop.astype(np.int32) + 1, 0),
                rule=np.where(columns.role > 0, columns.class_id, 0),
                quarantined=judged.quarantine.astype(np.int32),
                repaired=judged.repaired,
            )
        )
        self._pending_spans += int((fate == taken.KEPT).sum())

    def signals(self, table: pa.Table) -> None:
        """Take measured values on, as they are, in the schema SIGNALS."""
        self._signals.append(table)
        self._counts.hear(table)

    @property
    def has_open(self) -> bool:
        """Whether a request may still get spans."""
        return self._table.has_open

    def due(self, now_ns: int) -> bool:
        """Whether `advance(now_ns)` could close anything."""
        return self._table.is_due(now_ns) or self._table.was_set_back(now_ns)

    def advance(self, now_ns: int) -> None:
        """Close what is due by `now_ns`; all that is open, where the clock was set back."""
        self.time_ns = now_ns
        if self._table.was_set_back(now_ns):
            self.close_all(self._table.grid_ns)
            self._table.begin_anew()
        units, due_ns = self._table.due(now_ns)
        if len(units):
            self._stitch(units, due_ns)
            self._evict(now_ns)

    def close_all(self, now_ns: int) -> None:
        """Close everything that is open, as at the end of a replay."""
        units = self._table.oldest_open(np.iinfo(np.int64).max)
        self._stitch(units, np.full(len(units), now_ns, np.int64))

    def pending_rows(self) -> int:
        """Rows that `take_rows` would give."""
        finished = sum(t.num_rows for tables in self._finished.values() for t in tables)
        signals = sum(t.num_rows for t in self._signals)
        return self._pending_spans + sum(len(r) for r in self._rows) + finished + signals

    def take_rows(self) -> dict[str, pa.Table]:
        """Finished rows per table since the last call; tables without rows are left out."""
        self._finish_rows()
        finished, self._finished = self._finished, {}
        if self._signals:
            finished["signals"] = [table.cast(SIGNALS) for table in self._signals]
            self._signals = []
        tables = {name: pa.concat_tables(parts) for name, parts in finished.items()}
        tables |= self._counts.take_rows()
        return {name: table for name, table in tables.items() if table.num_rows}

    def _finish_rows(self) -> None:
        """Make tables of what was stitched and kept since the last call."""
        tables: dict[str, pa.Table] = {}
        texts = self.dictionary.texts
        if self._rows:
            rows = concat(self._rows)
            tables["requests"] = requests_table(rows, texts, self._classes)
            live = tables["requests"].filter(pa.array(~rows.tombstone))
            folded, older = [fold(live)], REQUESTS.empty_table()
            if self._taken_back:
                older = requests_table(concat(self._taken_back), texts, self._classes)
                folded.append(fold(older, sign=-1))
            self._counts.count(tables["requests"], older)
            tables["rollups"] = pa.concat_tables(folded).cast(ROLLUPS)
            self._rows, self._taken_back = [], []
        if self._kept:
            tables["spans"] = self._spans_table(texts)
        for name, table in tables.items():
            self._finished.setdefault(name, []).append(table)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on, after `take_rows` was called and its rows published."""
        arrays = {**self._table.state(), **self._pool.state(), **self._closed.state()}
        meta = {
            "seed": self._table.seed,
            "time_ns": self.time_ns,
            "dictionary": self.dictionary.dump(),
            "resources": self.resources.dump(),
            "balance": self.balance.state(),
            "counts": self._counts.state(),
        }
        return arrays, meta

    def restore(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        """Go on from what `state` gave; the dictionary and resources are restored before."""
        self._table.seed = int(meta["seed"])
        self.time_ns = int(meta.get("time_ns", 0))
        self._table.restore(dict(arrays))
        self._pool.restore(dict(arrays))
        self._closed.restore(arrays)
        self.balance = Balance.restore(meta["balance"])
        self._counts.restore(meta.get("counts", []))

    def _fill_rows(
        self, batch: SpanBatch, columns: HopColumns, repaired: NDArray[np.bool_]
    ) -> None:
        """Put the batch behind the spans in the table, whose `take` comes next."""
        wide, narrow = self._table.rows_for(len(batch))
        own: dict[str, NDArray[Any]] = {
            "span": batch.span.view(np.int64),
            "parent": batch.parent.view(np.int64),
            "start_ns": batch.start_ns,
            "end_ns": batch.end_ns,
            "received_ns": batch.received_ns,
            "digest": batch.digest.view(np.int64),
            "weight": batch.weight.view(np.int64),
            "own_id": columns.own_id.view(np.int64),
            "peer_id": columns.peer_id.view(np.int64),
            "tenant": batch.tenant,
            "repaired": repaired,
            "first_with_headers": self._first_with_headers[columns.class_id],
        }
        for i, name in enumerate(at.WIDE):
            if name not in ("next", "trace"):
                wide[:, i] = own[name] if name in own else getattr(columns, name)
        for i, name in enumerate(at.NARROW):
            narrow[:, i] = own[name] if name in own else getattr(columns, name)

    def _settle(
        self, batch: SpanBatch, fate: NDArray[np.int8], quarantine: NDArray[np.int8]
    ) -> None:
        resource = batch.resource
        if (fate != taken.KEPT).any():
            self.balance.settle(resource[fate == taken.FOLDED], "folded")
            self.balance.settle(resource[fate == taken.DUPLICATE], "duplicate")
            for code, reason in DROPPED.items():
                self.balance.settle(resource[fate == code], "dropped", reason)
        for code in np.unique(quarantine[quarantine != 0]).tolist():
            self.balance.settle(resource[quarantine == code], "quarantined", REASONS[code])

    def _make_room(self, spans: int, now_ns: int) -> None:
        """Give early what came first, rather than refuse what comes."""
        missing = int(self._table.counts[1:].sum()) + spans - self._table.bounds.spans_in_all
        if missing <= 0:
            return
        units = self._table.oldest_open(max(missing, self._table.bounds.spans_in_all // 4))
        self._stitch(units, np.full(len(units), now_ns, np.int64))
        self._evict(now_ns, all_closed=True)

    def _evict(self, now_ns: int, *, all_closed: bool = False) -> None:
        ids = self._table.evict(now_ns, all_closed=all_closed)
        if len(ids):
            self._closed.add(ids, now_ns)

    def _bring_back(
        self, batch: SpanBatch, fate: NDArray[np.int8], fresh: NDArray[np.int64]
    ) -> None:
        """Fetch what was given before for traces that had left memory.

        Their spans come back into the table, so that what is repeated is recognised (in
        `fate`) and what is new makes a new version of its row.
        """
        if self._past is None or not len(fresh):
            return
        words = self._table.traces[fresh][:, [taken.T_LOW, taken.T_HIGH]].view(np.uint64)
        known = self._closed.contains(words)
        if not known.any():
            return
        ids = trace_ids(words[known])
        self._finish_rows()  # what was given since `take_rows` isn't in the store yet
        spans = self._given_before("spans", self._past.spans_of(ids), ids)
        spans = spans.filter(pc.is_null(spans["quarantined"]))
        if self._again is None:
            self._again = Decoder(
                self.classifier.wanted, dictionary=self.dictionary, resources=self.resources
            )
        before, repaired = spans_again(spans, self._again, self.dictionary)
        columns = self.classifier.classify(before)
        self._fill_rows(before, columns, repaired)
        self._table.take(before.trace, np.zeros(len(before), np.bool_))
        repeated = np.isin(_of_tenant(batch), _of_tenant(before)) & (fate == taken.KEPT)
        fate[repeated & np.isin(trace_ids(batch.trace), ids)] = taken.DUPLICATE
        self._bring_back_rows(ids, fresh[known])

    def _given_before(self, name: str, stored: pa.Table, ids: TraceIds) -> pa.Table:
        return of_traces([stored, *self._finished.get(name, [])], ids)

    def _bring_back_rows(self, ids: TraceIds, traces: NDArray[np.int64]) -> None:
        assert self._past is not None
        rows = self._given_before("requests", self._past.requests_of(ids), ids)
        rows = rows.sort_by([("version", "descending")])
        _, newest = np.unique(np.array(rows["request_id"].to_pylist()), return_index=True)
        rows = rows.take(pa.array(newest))
        out, hops_ns = read_back(rows, self.dictionary.code)
        tenants = self._table.traces[traces, taken.T_TENANT].tolist()
        place = dict(zip(zip(ids.tolist(), tenants, strict=True), traces.tolist(), strict=True))
        of_rows = np.array([bytes.fromhex(t) for t in rows["trace_id"].to_pylist()], "S16")
        keys = zip(of_rows.tolist(), out[:, at.OUT.index("tenant")].tolist(), strict=True)
        found = np.array([place.get(key, -1) for key in keys], np.int64)
        same = found >= 0
        out[:, at.O_TRACE] = found
        live = ~np.asarray(rows["tombstone"].combine_chunks())
        version = np.asarray(rows["version"].combine_chunks())
        bring_back(self._table, out[same], hops_ns[same], version[same], live[same])

    def _stitch(self, units: NDArray[np.int64], closed_ns: NDArray[np.int64]) -> None:
        traces = self._table.traces
        sizes = traces[units, taken.T_SIZE] + traces[units, taken.T_TOKEN_COUNT]
        chunk = np.cumsum(sizes) // SPANS_PER_CHUNK
        for part in np.split(np.arange(len(units)), np.flatnonzero(np.diff(chunk)) + 1):
            if len(part):
                self._stitch_chunk(units[part], closed_ns[part])

    def _stitch_chunk(self, units: NDArray[np.int64], closed_ns: NDArray[np.int64]) -> None:
        table = self._table
        traces = table.traces
        most, most_tokens, spans, given_before = unit_sizes(units, traces)
        most_rows = spans + given_before + 1
        if most_rows > len(self._out):
            self._out = np.empty((most_rows, len(at.OUT)), np.int64)
            self._hops_ns = np.empty((most_rows, 2 * (len(HOPS) + 1)), np.int64)
        out, hops_ns = self._out, self._hops_ns
        given = np.empty(most_rows, np.int64)
        digests = np.empty(spans + 1, np.int64)
        offset = np.zeros(most_rows + 1, np.int64)
        rows = stitch_units(
            units, closed_ns, traces, self._text_hashes(), table.wide, table.narrow,
            table.tokens, table.emitted[: table.emitted_count], self._pool.arrays(), table.seed,
            most, most_tokens, out, hops_ns, given, digests, offset,
        )  # fmt: skip
        traces[units, taken.T_OPEN] = 0
        if rows:
            fresh, taken_back = note(
                table, out[:rows].copy(), hops_ns[:rows].copy(), given[:rows],
                digests[: offset[rows]], offset[: rows + 1],
            )  # fmt: skip
            self._rows.append(fresh)
            if len(taken_back):
                self._taken_back.append(taken_back)

    def _text_hashes(self) -> NDArray[np.int64]:
        """A hash per dictionary code that is the same in every process."""
        new = self.dictionary.texts[len(self._hashes) :]
        if new:
            more = [hashlib.blake2b(text.encode(), digest_size=7).digest() for text in new]
            numbers = np.array([int.from_bytes(digest) for digest in more], np.int64)
            self._hashes = np.concatenate([self._hashes, numbers])
        return self._hashes

    def _spans_table(self, texts: Sequence[str]) -> pa.Table:
        parts, self._kept, self._pending_spans = self._kept, [], 0
        tables = [SPANS.empty_table()]
        for spans in kept.in_pieces(parts):
            sound = spans.stored & (spans.quarantined == 0)
            self.balance.settle(spans.batch.resource[sound], "stored")
            tables.append(
                kept.spans_table(
                    spans,
                    texts,
                    self.resources.service,
                    self.resources.json,
                    ["", *HOPS],
                    [c.rule for c in self.classifier.classes],
                    ["", *REASONS[1:]],
                )
            )
        return pa.concat_tables(tables)


def _of_tenant(batch: SpanBatch) -> NDArray[np.uint64]:
    """Digests that two tenants never share."""
    return batch.digest ^ (batch.tenant.astype(np.uint64) << np.uint64(40))


_IS_HOP = np.isin([*Role], [Role.CALL, Role.SERVER, Role.EDGE, Role.PART, Role.LOAD])
