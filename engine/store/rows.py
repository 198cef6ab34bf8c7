"""Rows fitted to a schema, and trace ids as numpy has them."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.engine.problems import nearest
from tailburn.engine.schema import TABLES
from tailburn.engine.store.api import StoreError, TraceIds, UnknownColumn

_HEX_DIGITS = 32
_NIBBLE = np.full(256, 255, np.uint8)
_NIBBLE[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16, dtype=np.uint8)
_NIBBLE[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16, dtype=np.uint8)

TIME_COLUMN = {
    name: next(t for t in ("received_ns", "minute_ns", "hour_ns") if t in schema.names)
    for name, schema in TABLES.items()
}


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
    known = schema_of(table).names
    for name in names:
        if name not in known:
            raise UnknownColumn(f"{table} has no column {name!r}{nearest(name, known)}")


def ids_of_binary(ids: pa.ChunkedArray | pa.Array) -> TraceIds:
    """Ids of 16 bytes."""
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    if len(whole) == 0:
        return np.zeros(0, "S16")
    return np.frombuffer(whole.buffers()[1], "S16")[whole.offset : whole.offset + len(whole)]


def ids_of_hex(ids: pa.ChunkedArray | pa.Array) -> TraceIds:
    """Ids of 32 hex digits. Raises `ValueError` where one is anything else."""
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    if len(whole) == 0:
        return np.zeros(0, "S16")
    lengths = pc.min_max(pc.binary_length(whole)).as_py()
    if whole.null_count or lengths != {"min": _HEX_DIGITS, "max": _HEX_DIGITS}:
        raise ValueError("trace ids must be 32 hex digits")
    fixed = whole.cast(pa.binary()).cast(pa.binary(_HEX_DIGITS))
    raw: NDArray[np.uint8] = np.frombuffer(fixed.buffers()[1], np.uint8)
    digits = _NIBBLE[raw.reshape(-1, _HEX_DIGITS)[fixed.offset : fixed.offset + len(fixed)]]
    if digits.max() > 15:
        raise ValueError("trace ids must be 32 hex digits")
    pairs = (digits[:, 0::2] << 4) | digits[:, 1::2]
    return np.ascontiguousarray(pairs).view("S16").reshape(-1)


def member(values: TraceIds, ids: TraceIds) -> NDArray[np.bool_]:
    """Which of `values` are among `ids` (sorted)."""
    if len(ids) == 0:
        return np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(ids, values), len(ids) - 1)
    return ids[at] == values


def _as_type(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(wanted):
        return column
    if pa.types.is_dictionary(wanted) and not pa.types.is_dictionary(column.type):
        return pc.dictionary_encode(column.cast(wanted.value_type)).cast(wanted)
    return column.cast(wanted)
