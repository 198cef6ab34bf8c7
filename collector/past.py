"""Traces that have left memory, and how they come back when more of their spans arrive."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.otlp.dictionary import Dictionary
from tailburn.collector.spans import SpanBatch
from tailburn.engine.store.api import TraceIds

U64 = NDArray[np.uint64]
_ODD = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9))

HOUR_NS = 3_600_000_000_000
REMEMBERED_HOURS = 24
"""How long a repeated span is recognised after its trace closed."""


class Past(Protocol):
    """The part of the store that is asked for what was given before."""

    def spans_of(self, traces: TraceIds) -> pa.Table: ...
    def requests_of(self, traces: TraceIds) -> pa.Table: ...


def trace_ids(words: U64) -> TraceIds:
    """Ids as the store has them, of ids as pairs of words: (n, 2)."""
    return np.ascontiguousarray(words).view("S16").reshape(-1)


def of_traces(tables: Sequence[pa.Table], traces: TraceIds) -> pa.Table:
    """The rows of these traces among tables of one schema, SPANS or REQUESTS; at least one."""
    ids = [one.ljust(16, b"\0") for one in traces.tolist()]
    in_hex = pa.types.is_string(tables[0].schema.field("trace_id").type)
    wanted = pa.array([i.hex() for i in ids]) if in_hex else pa.array(ids, pa.binary(16))
    found = [table.filter(pc.is_in(table["trace_id"], wanted)) for table in tables]
    return pa.concat_tables(found).unify_dictionaries()


class ClosedTraces:
    """Which traces left memory, by receive hour: a hash of each id, which are (n, 2) words.

    Of both words: ids of 64 bits begin with zeros, and a sender may choose one half at will.
    Two ids of one hash cost a look into the store, which compares whole ids.
    """

    def __init__(self) -> None:
        self._hours: dict[int, list[U64]] = {}

    def add(self, ids: U64, now_ns: int) -> None:
        """Note traces let go of at `now_ns`, and forget those of a day ago."""
        hour = now_ns // HOUR_NS
        chunks = self._hours.setdefault(hour, [])
        chunks.append(np.sort(_hash(ids)))
        if len(chunks) > 16:
            self._hours[hour] = [np.sort(np.concatenate(chunks))]
        for old in [h for h in self._hours if h <= hour - REMEMBERED_HOURS]:
            del self._hours[old]

    def contains(self, ids: U64) -> NDArray[np.bool_]:
        """Which of `ids` are among them."""
        words = _hash(ids)
        found = np.zeros(len(words), np.bool_)
        for chunks in self._hours.values():
            for chunk in chunks:
                at = np.minimum(np.searchsorted(chunk, words), len(chunk) - 1)
                found |= chunk[at] == words
        return found

    def state(self) -> dict[str, NDArray[Any]]:
        """What a snapshot needs."""
        hours = sorted(self._hours)
        words = [np.concatenate(self._hours[h]) for h in hours]
        counts = np.array([len(w) for w in words], np.int64)
        return {
            "closed_hours": np.array(hours, np.int64),
            "closed_counts": counts,
            "closed_words": np.concatenate(words) if words else np.zeros(0, np.uint64),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        ends = np.cumsum(state["closed_counts"])
        pieces = np.split(state["closed_words"], ends[:-1]) if len(ends) else []
        hours = state["closed_hours"].tolist()
        self._hours = {h: [np.sort(w)] for h, w in zip(hours, pieces, strict=True)}


def _hash(ids: U64) -> U64:
    with np.errstate(over="ignore"):
        low, high = ids[:, 0] * _ODD[0], ids[:, 1] * _ODD[1]
        hashed: U64 = (low ^ (low >> np.uint64(29))) + (high ^ (high >> np.uint64(32)))
        return hashed


def spans_again(
    rows: pa.Table, decoder: Decoder, dictionary: Dictionary
) -> tuple[SpanBatch, NDArray[np.bool_]]:
    """Rows of SPANS as the batch they once were, and which had their times mended.

    Times, digests and tenants are as stored; the order is by resource and scope.
    """
    listed = sorted(rows.to_pylist(), key=lambda row: (row["resource"] or "", row["scope"] or ""))
    body = ExportTraceServiceRequest()
    place: tuple[str, str] | None = None
    for row in listed:
        if place != (row["resource"], row["scope"]):
            place = row["resource"], row["scope"]
            resource_spans = body.resource_spans.add()
            for key, value in json.loads(row["resource"] or "{}").items():
                _set(resource_spans.resource.attributes.add(), key, value)
            scope_spans = resource_spans.scope_spans.add()
            scope_spans.scope.name = row["scope"] or ""
        _fill(scope_spans.spans.add(), row)
    decoder.add(bytearray(body.SerializeToString()), received_ns=0, tenant="")
    batch = decoder.take()
    batch.received_ns = np.array([row["received_ns"] for row in listed], np.int64)
    batch.digest = np.array([row["digest"] for row in listed], np.uint64)
    batch.weight = np.array([row["weight"] for row in listed], np.float64)
    batch.tenant = np.array([dictionary.code(row["tenant"] or "") for row in listed], np.int32)
    return batch, np.array([row["repaired"] for row in listed], np.bool_)


def _fill(span: Span, row: Mapping[str, Any]) -> None:
    span.trace_id = row["trace_id"]
    span.span_id = row["span_id"]
    if any(row["parent_span_id"]):
        span.parent_span_id = row["parent_span_id"]
    span.name = row["name"] or ""
    span.kind = row["kind"]
    span.status.code = row["status"]
    span.flags = row["flags"]
    span.start_time_unix_nano = row["start_ns"]
    span.end_time_unix_nano = row["end_ns"]
    for key, value in (*row["attributes_num"], *row["attributes_str"]):
        _set(span.attributes.add(), key, value)
    for event in row["events"]:
        span.events.add(name=event["name"] or "", time_unix_nano=event["time_ns"])


def _set(attribute: KeyValue, key: str, value: object) -> None:
    attribute.key = key
    if isinstance(value, bool):
        attribute.value.bool_value = value
    elif isinstance(value, int):
        attribute.value.int_value = value
    elif isinstance(value, float):
        attribute.value.double_value = value
    else:
        attribute.value.string_value = str(value)
