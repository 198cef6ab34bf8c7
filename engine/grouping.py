"""Arrow columns as numpy: numbers with a stand-in for null, and rows grouped by value."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def numbers(column: pa.ChunkedArray, missing: float) -> F64:
    """A column as float64, null as `missing`. Whole numbers above 2^53 lose digits."""
    return pc.fill_null(column.cast(pa.float64()), missing).to_numpy()


def weights(rows: pa.Table) -> I64:
    """How many requests each row stands for by its sampling weight: whole, at least one."""
    return np.maximum(np.rint(numbers(rows.column("weight"), 1.0)), 1).astype(np.int64)


def text(column: pa.ChunkedArray, missing: str) -> pa.ChunkedArray:
    """A column as dictionary of text, null as `missing`."""
    if pa.types.is_dictionary(column.type) and column.null_count == 0:
        return column
    return pc.fill_null(column.cast(pa.string()), missing).dictionary_encode()


def stacked_text(tables: Iterable[pa.Table], name: str, missing: str) -> pa.ChunkedArray:
    """A column of several tables, one below the other, as text, null as `missing`."""
    parts = [text(table.column(name), missing).cast(pa.string()) for table in tables]
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string())


def single_chunk(column: pa.ChunkedArray) -> pa.Array:
    """All chunks as one array, over one dictionary."""
    whole = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column
    combined = whole.combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined


def medians(values: F64) -> F64:
    """Of each row of at least one column, nan left out; nan where all are."""
    ordered = np.sort(values, axis=1)  # nan last
    known = (~np.isnan(ordered)).sum(axis=1)
    row = np.arange(len(ordered))
    low = ordered[row, np.maximum(known - 1, 0) // 2]
    high = ordered[row, np.minimum(known // 2, ordered.shape[1] - 1)]
    return np.where(known % 2 == 1, low, (low + high) / 2)


def distinct(columns: Sequence[pa.ChunkedArray]) -> tuple[list[pa.Array], I64]:
    """Distinct rows of at least one column without null, and which of them each row is.

    The first result has one array per column, all as long as there are distinct rows.
    """
    group = np.zeros(len(columns[0]), np.int64)
    values, codes = [], []
    for column in columns:
        plain = not pa.types.is_dictionary(column.type)
        encoded = single_chunk(column.dictionary_encode() if plain else column)
        code = encoded.indices.to_numpy().astype(np.int64)
        values.append((encoded.dictionary, plain))
        codes.append(code)
        if len(encoded.dictionary) > 1:
            group = group * len(encoded.dictionary) + code
            group = np.unique(group, return_inverse=True)[1].reshape(-1)
    first = np.unique(group, return_index=True)[1]
    keys = [
        dictionary.take(pa.array(code[first]))
        if plain
        else pa.DictionaryArray.from_arrays(pa.array(code[first].astype(np.int32)), dictionary)
        for (dictionary, plain), code in zip(values, codes, strict=True)
    ]
    return keys, group
