"""Spans on their way into the store: the columns of a batch as rows of `engine.schema.SPANS`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.collector.spans import SpanBatch, joined
from tailburn.collector.stitch.rows import text_column
from tailburn.engine.schema import SPANS

MOST_TEXT_BYTES = 1 << 30
"""An Arrow string column bears up to 2 GiB; a body is at most 64 MiB."""


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
    batch = joined([p.batch for p in parts], wanted=False)  # recognised, and no more asked for
    rest = {
        name: np.concatenate([getattr(p, name) for p in parts])
        for name in ("stored", "hop", "rule", "quarantined", "repaired")
    }
    return KeptSpans(batch=batch, **rest)


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
