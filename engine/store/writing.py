"""One segment written: encoded cheaply, durable before it has its name.

Encodings follow measurements (`bench/store.py`): dictionary pages only for columns that are
dictionaries already, statistics only where a reader prunes by them, zstd at level 1.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tailburn.engine.schema import TABLES
from tailburn.engine.store.seal import seal
from tailburn.engine.store.segments import TEMPORARY_SUFFIX

_STATISTICS: Final = {
    "requests": ["received_ns", "version", "trace_id"],
    "spans": ["received_ns", "trace_id"],
    "rollups": ["minute_ns", "clock"],
    "signals": ["received_ns", "name"],
}
ROW_GROUP_ROWS: Final = 131_072


def write_segment(path: Path, table: str, rows: pa.Table) -> None:
    """Write `rows` (of the table's schema) to `path` so that it is whole or not there.

    Raises `OSError` where the disk can't take it.
    """
    with segment_writer(path, table) as writer:
        writer.write_table(compact_dictionaries(rows), row_group_size=ROW_GROUP_ROWS)


@contextmanager
def segment_writer(path: Path, table: str) -> Iterator[Any]:
    """A `ParquetWriter` whose file is synced and takes its name when the block ends well."""
    make_durable_folder(path.parent)
    temporary = path.with_name(f".{path.name}{TEMPORARY_SUFFIX}")
    try:
        with pq.ParquetWriter(temporary, TABLES[table], **_options(table)) as writer:
            yield writer
        seal(temporary)
        _sync(temporary)
        os.rename(temporary, path)
        _sync(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_durable_folder(folder: Path) -> None:
    """Make a folder and its parents, each entry synced."""
    if folder.is_dir():
        return
    make_durable_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


def remove(paths: list[Path]) -> int:
    """Unlink files, newest state durable after; the number that were there."""
    removed = 0
    for path in paths:
        if path.exists():
            path.unlink()
            removed += 1
    for folder in {p.parent for p in paths}:
        if folder.is_dir():
            _sync(folder)
    return removed


def compact_dictionaries(rows: pa.Table) -> pa.Table:
    """The same rows with each dictionary cut to the entries in use.

    A column cut from a shared dictionary would otherwise carry all of it into its file.
    """
    columns = [_compact_column(c) for c in rows.columns]
    return pa.table(columns, schema=rows.schema)


def _compact_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([_compact(chunk) for chunk in column.chunks], type=column.type)


def _compact(array: pa.Array) -> pa.Array:
    if pa.types.is_map(array.type):
        return _compact_map(array)
    if not pa.types.is_dictionary(array.type):
        return array
    indices = array.indices
    codes = indices.fill_null(0).to_numpy(zero_copy_only=False)
    used = np.bincount(codes, minlength=len(array.dictionary)) > 0
    if used.all():
        return array
    renumbered = (np.cumsum(used) - 1).astype(np.int32)
    kept = array.dictionary.filter(pa.array(used))
    valid = indices.is_valid().to_numpy(zero_copy_only=False)
    return pa.DictionaryArray.from_arrays(pa.array(renumbered[codes], mask=~valid), kept)


def _compact_map(array: pa.Array) -> pa.Array:
    if array.null_count:
        return array
    keys = _compact(array.keys)
    return pa.MapArray.from_arrays(array.offsets, keys, array.items, type=array.type)


def _options(table: str) -> dict[str, Any]:
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": _dictionary_paths(TABLES[table]),
        "write_statistics": _STATISTICS[table],
        "write_page_checksum": True,
    }


def _dictionary_paths(schema: pa.Schema) -> list[str]:
    paths: list[str] = []
    for field in schema:
        if pa.types.is_dictionary(field.type):
            paths.append(field.name)
        elif pa.types.is_map(field.type):
            paths.append(f"{field.name}.key_value.key")
        elif pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
            paths += [
                f"{field.name}.list.element.{inner.name}"
                for inner in field.type.value_type
                if pa.types.is_dictionary(inner.type)
            ]
    return paths


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
