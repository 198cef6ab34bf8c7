"""Spans on their way into the store: the columns of a batch as rows of `engine.schema.SPANS`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.collector.spans import SpanBatch
from tailburn.collector.stitch.rows import text_column
from tailburn.engine.schema import SPANS

MOST_TEXT_BYTES = 1 << 30
"""An Arrow string column bears up to 2 GiB; a body is at most 64 MiB."""

# Columns of a batch that the store has no use for once a span is recognised.
_WANTED = {"wanted_key", "wanted_num", "wanted_code", "wanted_id"}
_OFFSETS = {
    "wanted_offset": "wanted_key",
    "num_offset": "num_key",
    "str_offset": "str_key",
    "str_bytes_offset": "str_bytes",
    "event_offset": "event_name",
}


@dataclass
class KeptSpans:
    """A batch and, per span, what was found out about it."""

    batch: SpanBatch
    stored: NDArray[np.bool_]  # whether this span is to be a row
    hop: NDArray[np.int32]  # 0: none, else index in HOPS + 1
    rule: NDArray[np.int32]  # 0: none, else class id + 1
    quarantined: NDArray[np.int32]  # 0: sound, else index in the reasons + 1
    repaired: NDArray[np.bool_]


def in_pieces(parts: Sequence[KeptSpans]) -> Iterator[KeptSpans]:
    """All batches, joined as far as their texts fit into one Arrow column."""
    piece: list[KeptSpans] = []
    size = 0
    for part in parts:
        more = len(part.batch.str_bytes)
        if piece and size + more > MOST_TEXT_BYTES:
            yield _joined(piece)
            piece, size = [], 0
        piece.append(part)
        size += more
    if piece:
        yield _joined(piece)


def _joined(parts: Sequence[KeptSpans]) -> KeptSpans:
    if len(parts) == 1:
        return parts[0]
    columns: dict[str, NDArray[np.generic]] = {}
    for field in fields(SpanBatch):
        pieces = [getattr(p.batch, field.name) for p in parts]
        if field.name in _WANTED or field.name == "wanted_offset":
            columns[field.name] = pieces[0][:0]
        elif field.name in _OFFSETS:
            columns[field.name] = _join_offsets(pieces)
        else:
            columns[field.name] = np.concatenate(pieces)
    rest = {
        name: np.concatenate([getattr(p, name) for p in parts])
        for name in ("stored", "hop", "rule", "quarantined", "repaired")
    }
    return KeptSpans(batch=SpanBatch(**columns), **rest)  # type: ignore[arg-type]


def _join_offsets(pieces: Sequence[NDArray[np.integer]]) -> NDArray[np.integer]:
    joined = np.empty(sum(len(p) - 1 for p in pieces) + 1, pieces[0].dtype)
    joined[0] = 0
    at, shift = 1, 0
    for piece in pieces:
        np.add(piece[1:], shift, out=joined[at : at + len(piece) - 1])
        at += len(piece) - 1
        shift += int(piece[-1])
    return joined


def spans_table(
    kept: KeptSpans,
    texts: Sequence[str],
    service_of: Callable[[int], str],
    resource_of: Callable[[int], str],
    hops: Sequence[str],
    rules: Sequence[str],
    reasons: Sequence[str],
) -> pa.Table:
    """The stored spans in the schema SPANS.

    `texts` are the shared dictionary's; `service_of` and `resource_of` (JSON) take a resource
    code; `hops`, `rules` and `reasons` have an unused first entry, for code 0.
    """
    b = kept.batch
    n = len(b)
    ids = np.ascontiguousarray(b.trace)
    table = pa.table(
        [
            pa.array(b.received_ns),
            text_column(b.tenant, texts, ""),
            pa.Array.from_buffers(pa.binary(16), n, [None, pa.py_buffer(ids)]),
            pa.Array.from_buffers(pa.binary(8), n, [None, pa.py_buffer(b.span)]),
            pa.Array.from_buffers(pa.binary(8), n, [None, pa.py_buffer(b.parent)]),
            text_column(b.name, texts, ""),
            text_column(b.scope, texts, ""),
            _by_resource(b.resource, service_of),
            _by_resource(b.resource, resource_of),
            pa.array(b.kind),
            pa.array(b.status),
            pa.array(b.flags),
            pa.array(b.start_ns),
            pa.array(b.end_ns),
            text_column(kept.hop, hops),
            text_column(kept.rule, rules),
            text_column(kept.quarantined, reasons),
            pa.array(kept.repaired),
            pa.array(b.digest),
            pa.array(b.weight.astype(np.float32)),
            _attributes_num(b, texts),
            _attributes_str(b, texts),
            _events(b, texts),
        ],
        schema=SPANS,
    )
    return table if kept.stored.all() else table.filter(pa.array(kept.stored))


def _by_resource(codes: NDArray[np.int32], value_of: Callable[[int], str]) -> pa.DictionaryArray:
    used = np.flatnonzero(np.bincount(codes))
    target = np.zeros(int(used[-1]) + 1 if len(used) else 1, np.int32)
    target[used] = np.arange(len(used), dtype=np.int32)
    values = [value_of(code) for code in used.tolist()]
    return pa.DictionaryArray.from_arrays(pa.array(target[codes]), pa.array(values, pa.string()))


def _attributes_num(b: SpanBatch, texts: Sequence[str]) -> pa.MapArray:
    return pa.MapArray.from_arrays(
        pa.array(b.num_offset), text_column(b.num_key, texts, ""), pa.array(b.num_value)
    )


def _attributes_str(b: SpanBatch, texts: Sequence[str]) -> pa.MapArray:
    offsets = b.str_bytes_offset.astype(np.int32)
    values = pa.Array.from_buffers(
        pa.string(), len(b.str_key), [None, pa.py_buffer(offsets), pa.py_buffer(b.str_bytes)]
    )
    return pa.MapArray.from_arrays(
        pa.array(b.str_offset), text_column(b.str_key, texts, ""), values
    )


def _events(b: SpanBatch, texts: Sequence[str]) -> pa.ListArray:
    events = pa.StructArray.from_arrays(
        [text_column(b.event_name, texts, ""), pa.array(b.event_ns)], ["name", "time_ns"]
    )
    return pa.ListArray.from_arrays(pa.array(b.event_offset), events)
