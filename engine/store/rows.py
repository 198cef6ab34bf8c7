"""Rows fitted to a schema, and trace ids as words."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.engine.schema import TABLES
from tailburn.engine.store.api import U64, StoreError, UnknownColumn

_HEX_DIGITS = 32
_NIBBLE = np.full(256, 255, np.uint8)
_NIBBLE[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16, dtype=np.uint8)
_NIBBLE[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16, dtype=np.uint8)

TIME_COLUMN = {name: "received_ns" for name in TABLES} | {"rollups": "minute_ns"}


def schema_of(table: str) -> pa.Schema:
    """The schema of a table; raises `StoreError` for a name that is none."""
    try:
        return TABLES[table]
    except KeyError:
        raise StoreError(f"no table {table!r}; there are {', '.join(TABLES)}") from None


def fit(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """`rows` with the columns and types of `schema`; columns they lack become null."""
    if rows.schema.equals(schema):
        return rows
    have = set(rows.column_names)
    columns = [
        _as_type(rows.column(f.name), f.type) if f.name in have else pa.nulls(len(rows), f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)


def check_columns(table: str, names: Iterable[str]) -> None:
    """Raise `UnknownColumn` unless every name is a column of the table."""
    known = set(schema_of(table).names)
    for name in names:
        if name not in known:
            raise UnknownColumn(f"{table} has no column {name!r}")


def words_of_binary(ids: pa.ChunkedArray | pa.Array) -> U64:
    """First 8 bytes of each 16-byte id, read little-endian."""
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    if len(whole) == 0:
        return np.zeros(0, np.uint64)
    pairs = np.frombuffer(whole.buffers()[1], "<u8").reshape(-1, 2)
    return pairs[whole.offset : whole.offset + len(whole), 0].copy()


def words_of_hex(ids: pa.ChunkedArray | pa.Array) -> U64:
    """First 8 bytes of each id of 32 hex digits, read little-endian.

    Raises `ValueError` where an id is anything else.
    """
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    if len(whole) == 0:
        return np.zeros(0, np.uint64)
    lengths = pc.min_max(pc.binary_length(whole)).as_py()
    if whole.null_count or lengths != {"min": _HEX_DIGITS, "max": _HEX_DIGITS}:
        raise ValueError("trace ids must be 32 hex digits")
    fixed = whole.cast(pa.binary()).cast(pa.binary(_HEX_DIGITS))
    raw: NDArray[np.uint8] = np.frombuffer(fixed.buffers()[1], np.uint8)
    digits = _NIBBLE[raw.reshape(-1, _HEX_DIGITS)[fixed.offset : fixed.offset + len(fixed), :16]]
    if digits.max() > 15:
        raise ValueError("trace ids must be 32 hex digits")
    pairs = (digits[:, 0::2] << 4) | digits[:, 1::2]
    return np.ascontiguousarray(pairs).view("<u8").reshape(-1)


def member(values: U64, words: U64) -> NDArray[np.bool_]:
    """Which of `values` are among `words` (sorted)."""
    if len(words) == 0:
        return np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(words, values), len(words) - 1)
    return words[at] == values


def _as_type(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(wanted):
        return column
    if pa.types.is_dictionary(wanted) and not pa.types.is_dictionary(column.type):
        return pc.dictionary_encode(column.cast(wanted.value_type)).cast(wanted)
    return column.cast(wanted)
