"""The stitcher's rows as an Arrow table of `engine.schema.REQUESTS`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.collector.stitch import layout as at
from tailburn.collector.stitch.compiling import entry
from tailburn.engine.names import (
    COMPLETENESS,
    DECODE_HOP_COLUMNS,
    OUTCOMES,
    TTFT_HOP_COLUMNS,
    UNKNOWN,
    VANTAGES,
)
from tailburn.engine.schema import REQUESTS

I64 = NDArray[np.int64]

ALWAYS_TOLD = ("pool", "request_type", "priority")
"""Dimensions that read `unknown` where no rule set them."""


@dataclass
class Rows:
    """Finished rows: `out` and `hops` as in `layout`, ids and digests beside them."""

    out: I64  # (n, len(OUT))
    hops_ns: I64  # (n, 44): before the first token, then up to the last
    replaces: I64  # request ids; 0: none
    version: NDArray[np.int32]
    tombstone: NDArray[np.bool_]
    trace_words: I64  # (n, 2)
    digests: I64
    digest_offset: I64  # (n + 1)

    def __len__(self) -> int:
        return len(self.out)


def concat(parts: Sequence[Rows]) -> Rows:
    """Rows of several closings, one after the other."""
    shift = np.cumsum([0, *(len(p.digests) for p in parts)])
    offsets = [p.digest_offset[:-1] + s for p, s in zip(parts, shift, strict=False)]
    return Rows(
        out=np.concatenate([p.out for p in parts]),
        hops_ns=np.concatenate([p.hops_ns for p in parts]),
        replaces=np.concatenate([p.replaces for p in parts]),
        version=np.concatenate([p.version for p in parts]),
        tombstone=np.concatenate([p.tombstone for p in parts]),
        trace_words=np.concatenate([p.trace_words for p in parts]),
        digests=np.concatenate([p.digests for p in parts]),
        digest_offset=np.append(np.concatenate(offsets), shift[-1]),
    )


@entry
def _hex(words: NDArray[np.uint64], big_endian: bool) -> NDArray[np.uint8]:
    n, k = words.shape
    text = np.empty(n * k * 16, np.uint8)
    p = 0
    for i in range(n):
        for j in range(k):
            w = words[i, j]
            for b in range(8):
                shift = np.uint64(8 * (7 - b if big_endian else b))
                byte = (w >> shift) & np.uint64(255)
                for nibble in (byte >> np.uint64(4), byte & np.uint64(15)):
                    text[p] = nibble + (48 if nibble < 10 else 87)
                    p += 1
    return text


def hex_column(words: NDArray[np.uint64], *, big_endian: bool = False) -> pa.Array:
    """Words (n, k) as hex text: little-endian words are the wire bytes of an id."""
    n, k = words.shape
    offsets = np.arange(n + 1, dtype=np.int32) * (16 * k)
    text = _hex(np.ascontiguousarray(words), big_endian)
    return pa.Array.from_buffers(pa.string(), n, [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def text_column(
    codes: NDArray[np.integer], texts: Sequence[str], instead: str | None = None
) -> pa.DictionaryArray:
    """Dictionary codes as a column that bears only the texts in use; code 0 is `instead`."""
    codes = np.asarray(codes, np.int64)
    used = np.flatnonzero(np.bincount(codes, minlength=1))
    target = np.zeros(int(used[-1]) + 1 if len(used) else 1, np.int32)
    target[used] = np.arange(len(used), dtype=np.int32)
    values = [texts[c] if c else (instead or "") for c in used.tolist()]
    mask = codes == 0 if instead is None else None
    indices = pa.array(target[codes] if len(codes) else np.zeros(0, np.int32), mask=mask)
    return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()))


def _seconds(ns: I64, known: NDArray[np.bool_]) -> pa.Array:
    return pa.array(ns / 1e9, mask=~known)


def _from_list(indices: I64, values: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(indices.astype(np.int32)), pa.array(values, pa.string())
    )


def _bit_sets(bits: I64, names: Sequence[str]) -> pa.DictionaryArray:
    """Sets of names as comma separated text; the empty set is null."""
    values = [
        ",".join(n for i, n in enumerate(names) if b >> i & 1) for b in range(1 << len(names))
    ]
    indices = pa.array(bits.astype(np.int32), mask=bits == 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()))


class PromptClasses:
    """Buckets of uncached prompt tokens: `bounds` are their upper ends, but for the last."""

    def __init__(self, bounds: Sequence[int], names: Sequence[str]) -> None:
        self.bounds = np.array(bounds, np.int64)
        self.names = list(names)

    def column(self, prompt: I64, cached: I64) -> pa.DictionaryArray:
        """One class per request; null where the prompt's length is unknown."""
        uncached = prompt - np.maximum(cached, 0)
        index = np.searchsorted(self.bounds, uncached, side="left").astype(np.int32)
        indices = pa.array(index, mask=prompt < 0)
        return pa.DictionaryArray.from_arrays(indices, pa.array(self.names, pa.string()))


def requests_table(rows: Rows, texts: Sequence[str], classes: PromptClasses) -> pa.Table:
    """`rows` in the schema REQUESTS. `texts` are the shared dictionary's."""
    out = rows.out
    live = ~rows.tombstone
    column: dict[str, pa.Array] = {
        "request_id": hex_column(out[:, [at.O_REQUEST]].view(np.uint64), big_endian=True),
        "trace_id": hex_column(rows.trace_words.view(np.uint64)),
        "anchor_span_id": hex_column(out[:, [at.O_ANCHOR]].view(np.uint64)),
        "replaces": _replaced(rows.replaces),
        "version": pa.array(rows.version),
        "tombstone": pa.array(rows.tombstone),
        "completeness": _from_list(np.maximum(out[:, at.O_COMPLETENESS], 0), COMPLETENESS),
        "missing": _bit_sets(np.maximum(out[:, at.O_MISSING], 0), VANTAGES),
        "prompt_class": classes.column(out[:, at.O_PROMPT], out[:, at.O_CACHED]),
        "streamed": pa.array(out[:, at.O_STREAMED] == 1, mask=out[:, at.O_STREAMED] < 0),
        "received_ns": pa.array(out[:, at.O_CLOSED]),
        "attempts": pa.array(np.maximum(out[:, at.O_ATTEMPTS], 0).astype(np.int32)),
        "hedged": pa.array(out[:, at.O_HEDGED] == 1),
        "outcome": _from_list(np.maximum(out[:, at.O_OUTCOME], 0), OUTCOMES),
        "clock_offset_s": pa.array(out[:, at.O_OFFSET] / 1e9),
        "clock_offset_half_width_s": _seconds(
            out[:, at.O_HALF_WIDTH], out[:, at.O_HALF_WIDTH] >= 0
        ),
        "weight": pa.array(np.ascontiguousarray(out[:, at.O_WEIGHT]).view(np.float64)),
        "repaired": _bit_sets(np.maximum(out[:, at.O_FLAGS], 0), at.FLAGS),
        "spans": pa.array(out[:, at.O_SPANS].astype(np.int32)),
        "token_sends": pa.array(out[:, at.O_SENDS].astype(np.int32)),
        "content_hash": pa.array(out[:, at.O_HASH].view(np.uint64)),
        "cross_zone": pa.array(out[:, at.O_CROSS_ZONE] == 1),
        "digests": pa.ListArray.from_arrays(
            pa.array(rows.digest_offset.astype(np.int32)),
            pa.array(rows.digests.view(np.uint64)),
        ),
    }
    for name, source in (
        ("start_ns", at.O_START), ("first_token_ns", at.O_FIRST), ("end_ns", at.O_END),
    ):  # fmt: skip
        column[name] = pa.array(out[:, source], mask=out[:, source] <= 0)
    for i, v in enumerate(VANTAGES):
        for name, source in (("ttft", at.O_TTFT), ("e2e", at.O_E2E)):
            ns = out[:, source + i]
            column[f"{name}_{v}_s"] = _seconds(ns, live & (ns >= 0))
        column[f"tpot_{v}_s"] = _tpot(out[:, at.O_STREAM + i], out[:, at.O_OUTPUT], live)
    for name, source in (("itl_max_s", at.O_ITL), ("queue_s", at.O_QUEUE)):
        column[name] = _seconds(out[:, source], live & (out[:, source] >= 0))
    for name in ("prompt_tokens", "cached_tokens", "output_tokens", "max_output_tokens"):
        count = out[:, at.OUT.index(name)]
        column[name] = pa.array(count.astype(np.int32), mask=(count < 0) | ~live)
    column["http_status"] = pa.array(
        out[:, at.O_HTTP].astype(np.int32), mask=out[:, at.O_HTTP] <= 0
    )
    for i, name in enumerate(at.CODES):
        instead = UNKNOWN if name in ALWAYS_TOLD else None
        column[name] = text_column(out[:, at.O_CODES + i], texts, instead)
    measured = live & (out[:, at.O_FIRST] > 0)
    for i, name in enumerate((*TTFT_HOP_COLUMNS, *DECODE_HOP_COLUMNS)):
        ns = rows.hops_ns[:, i]
        column[name] = _seconds(ns, measured & (ns != 0))
    return pa.table([_as_declared(column, field, len(rows)) for field in REQUESTS], schema=REQUESTS)


def _replaced(ids: I64) -> pa.Array:
    text = hex_column(ids[:, None].view(np.uint64), big_endian=True)
    return pc.if_else(pa.array(ids != 0), text, None)


def _as_declared(column: dict[str, pa.Array], field: pa.Field, n: int) -> pa.Array:
    if field.name not in column:
        return pa.nulls(n, field.type)
    return column[field.name]


def _tpot(stream_ns: I64, output: I64, live: NDArray[np.bool_]) -> pa.Array:
    """(last - first token) / (output tokens - 1); null below two tokens."""
    known = live & (stream_ns >= 0) & (output >= 2)
    return pa.array(stream_ns / 1e9 / np.maximum(output - 1, 1), mask=~known)
