"""Spans as columns: what the decoder hands to everything behind it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]


@dataclass
class SpanBatch:
    """`n` spans of one or more bodies, in order of arrival.

    `name`, `scope`, `*_key`, `event_name`, `wanted_code` and `tenant` hold codes of the
    shared `Dictionary` (0: it was full), `resource` codes of `Resources`. Ids are the wire
    bytes read as little-endian words, so `trace.tobytes()` is the wire form again.
    Offsets `*_offset[i] : *_offset[i + 1]` bound the entries of span `i`.
    """

    trace: U64  # (n, 2)
    span: U64
    parent: U64  # 0: none
    start_ns: I64
    end_ns: I64
    kind: I8
    status: I8
    flags: U32
    name: I32
    scope: I32
    resource: I32
    digest: U64  # of the content after blanking; the same in every process and encoding
    weight: F64  # 1 / sampling probability, from tracestate `ot=th:` or SampleRate; 1 unless told

    # Attributes the rules ask for (`wanted`): position in the list of wanted keys, and the
    # value as number (nan: none), as dictionary code (-1: none) or as hash of an id (0: none).
    wanted_offset: I32
    wanted_key: I32
    wanted_num: F64
    wanted_code: I32
    wanted_id: U64

    # Every attribute, wanted or not, for the trace view.
    num_offset: I32
    num_key: I32
    num_value: F64
    str_offset: I32
    str_key: I32
    str_bytes_offset: I64  # (entries + 1) into str_bytes
    str_bytes: NDArray[np.uint8]  # UTF-8; arrays and kvlists as JSON text

    event_offset: I32
    event_name: I32
    event_ns: I64

    received_ns: I64
    tenant: I32

    def __len__(self) -> int:
        return len(self.span)

    def part(self, start: int, stop: int) -> "SpanBatch":
        """Spans `start` to `stop` as a batch of their own; columns are views where they can be."""
        columns: dict[str, NDArray[Any]] = {}
        for offset, entries in _ENTRIES.items():
            bounds = getattr(self, offset)[start : stop + 1]
            first, last = int(bounds[0]), int(bounds[-1])
            columns[offset] = bounds - bounds[0]
            for name in entries:
                columns[name] = getattr(self, name)[first : last + (name == "str_bytes_offset")]
        # The offsets of str_bytes bound entries, not spans: what was cut out above starts late.
        bounds = columns["str_bytes_offset"]
        columns["str_bytes"] = self.str_bytes[int(bounds[0]) : int(bounds[-1])]
        columns["str_bytes_offset"] = bounds - bounds[0]
        for field in fields(self):
            if field.name not in columns:
                columns[field.name] = getattr(self, field.name)[start:stop]
        return SpanBatch(**columns)


_ENTRIES: Final = {
    "wanted_offset": ("wanted_key", "wanted_num", "wanted_code", "wanted_id"),
    "num_offset": ("num_key", "num_value"),
    "str_offset": ("str_key", "str_bytes_offset"),
    "event_offset": ("event_name", "event_ns"),
}
"""Per column of offsets by span, the columns whose entries they bound."""


def joined(batches: Sequence[SpanBatch], *, wanted: bool = True) -> SpanBatch:
    """At least one batch, one behind the other; without what rules ask for, if not `wanted`."""
    if len(batches) == 1:
        return batches[0]
    columns: dict[str, NDArray[Any]] = {}
    for field in fields(SpanBatch):
        pieces = [getattr(batch, field.name) for batch in batches]
        if not wanted and field.name.startswith("wanted_"):
            columns[field.name] = pieces[0][:0]
        elif field.name in _BOUNDS:
            columns[field.name] = _join_offsets(pieces)
        else:
            columns[field.name] = np.concatenate(pieces)
    return SpanBatch(**columns)


def _join_offsets(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    whole = np.empty(sum(len(p) - 1 for p in pieces) + 1, pieces[0].dtype)
    whole[0] = 0
    at, shift = 1, 0
    for piece in pieces:
        np.add(piece[1:], shift, out=whole[at : at + len(piece) - 1])
        at += len(piece) - 1
        shift += int(piece[-1])
    return whole


_BOUNDS: Final = {*_ENTRIES, "str_bytes_offset"}
"""Columns of offsets, each one longer than what it bounds."""
