"""Rows of the store back into the stitcher's form: `rows.requests_table` the other way."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.collector.stitch import layout as at
from tailburn.engine.names import (
    COMPLETENESS,
    DECODE_HOP_COLUMNS,
    OUTCOMES,
    TTFT_HOP_COLUMNS,
    VANTAGES,
)

I64 = NDArray[np.int64]


def read_back(table: pa.Table, code_of: Callable[[str], int]) -> tuple[I64, I64]:
    """REQUESTS rows as (`out`, hop times in ns), but for the trace's index, which is left 0."""
    n = len(table)
    out = np.zeros((n, len(at.OUT)), np.int64)
    out[:, at.O_REQUEST] = _hex_numbers(table["request_id"], "big")
    out[:, at.O_ANCHOR] = _hex_numbers(table["anchor_span_id"], "little")
    out[:, at.O_CLOSED] = _numbers(table["received_ns"], 0)
    out[:, at.O_START] = _numbers(table["start_ns"], -1)
    out[:, at.O_FIRST] = _numbers(table["first_token_ns"], 0)
    out[:, at.O_END] = _numbers(table["end_ns"], -1)
    for i, v in enumerate(VANTAGES):
        out[:, at.O_TTFT + i] = _ns(table[f"ttft_{v}_s"], -1)
        out[:, at.O_E2E + i] = _ns(table[f"e2e_{v}_s"], -1)
        tokens = np.maximum(_numbers(table["output_tokens"], 0) - 1, 1)
        per_token = table[f"tpot_{v}_s"].combine_chunks().fill_null(np.nan).to_numpy()
        told = ~np.isnan(per_token)
        out[told, at.O_STREAM + i] = np.round(per_token[told] * tokens[told] * 1e9).astype(np.int64)
        out[~told, at.O_STREAM + i] = -1
    out[:, at.O_ITL] = _ns(table["itl_max_s"], -1)
    out[:, at.O_QUEUE] = _ns(table["queue_s"], -1)
    for name in ("prompt_tokens", "cached_tokens", "output_tokens", "max_output_tokens"):
        out[:, at.OUT.index(name)] = _numbers(table[name], -1)
    out[:, at.O_HTTP] = _numbers(table["http_status"], -1)
    for column, name in (
        (at.O_STREAMED, "streamed"), (at.O_HEDGED, "hedged"), (at.O_CROSS_ZONE, "cross_zone"),
    ):  # fmt: skip
        out[:, column] = _numbers(table[name].cast(pa.int64()), -1)
    out[:, at.O_ATTEMPTS] = _numbers(table["attempts"], 1)
    out[:, at.O_SPANS] = _numbers(table["spans"], 0)
    out[:, at.O_SENDS] = _numbers(table["token_sends"], 0)
    out[:, at.O_COMPLETENESS] = _from_texts(table["completeness"], COMPLETENESS.index)
    out[:, at.O_OUTCOME] = _from_texts(table["outcome"], OUTCOMES.index)
    out[:, at.O_MISSING] = _from_texts(table["missing"], lambda t: _bits(t, VANTAGES))
    out[:, at.O_FLAGS] = _from_texts(table["repaired"], lambda t: _bits(t, at.FLAGS))
    out[:, at.O_OFFSET] = _ns(table["clock_offset_s"], 0)
    out[:, at.O_HALF_WIDTH] = _ns(table["clock_offset_half_width_s"], -1)
    weight = table["weight"].combine_chunks().fill_null(1.0).to_numpy()
    out[:, at.O_WEIGHT] = np.ascontiguousarray(weight).view(np.int64)
    content = table["content_hash"].combine_chunks().fill_null(0).to_numpy()
    out[:, at.O_HASH] = np.ascontiguousarray(content).view(np.int64)
    for i, name in enumerate(at.CODES):
        out[:, at.O_CODES + i] = _from_texts(table[name], code_of)
    hops = [_ns(table[name], 0) for name in (*TTFT_HOP_COLUMNS, *DECODE_HOP_COLUMNS)]
    return out, np.stack(hops, axis=1) if n else np.zeros((0, len(hops)), np.int64)


def _numbers(column: pa.ChunkedArray, instead: int) -> I64:
    return np.asarray(column.cast(pa.int64()).combine_chunks().fill_null(instead))


def _ns(column: pa.ChunkedArray, instead: int) -> I64:
    seconds = column.combine_chunks().fill_null(np.nan).to_numpy()
    known = ~np.isnan(seconds)
    ns = np.full(len(seconds), instead, np.int64)
    ns[known] = np.round(seconds[known] * 1e9).astype(np.int64)
    return ns


def _hex_numbers(column: pa.ChunkedArray, order: str) -> I64:
    raw = b"".join(bytes.fromhex(text) for text in column.to_pylist())
    return np.frombuffer(raw, ">i8" if order == "big" else "<i8").astype(np.int64)


def _from_texts(column: pa.ChunkedArray, number_of: Callable[[str], int]) -> I64:
    """One number per row by its text; null is 0."""
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    numbers = np.array([number_of(t) for t in encoded.dictionary.to_pylist()] or [0], np.int64)
    indices = np.asarray(pc.fill_null(encoded.indices, 0))
    return np.where(np.asarray(encoded.is_valid()), numbers[indices], 0)


def _bits(text: str, names: tuple[str, ...]) -> int:
    return sum(1 << names.index(name) for name in text.split(","))
