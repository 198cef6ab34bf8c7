"""One segment written: encoded cheaply, durable before it has its name.

Encodings follow measurements (`bench/store.py`): dictionary pages only for columns that are
dictionaries already, statistics only where a reader prunes by them. A published segment lives
for an hour or two and is written for speed, a merged one for size.
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
    "verdicts": ["minute_ns", "slo"],
    "excess": ["minute_ns", "slo"],
    "usual": ["hour_ns", "clock"],
}
_PUBLISHED_LEVEL: Final = -3
_MERGED_LEVEL: Final = 3
_WORTH_COMPACTING: Final = 16  # rows per dictionary entry
_SMALL_DICTIONARY: Final = 64
_GROUPS: Final = 256  # of a merged segment
_GROUP_ROWS: Final = (4_096, 131_072)


def write_segment(path: Path, table: str, rows: pa.Table) -> None:
    """Write `rows` (of the table's schema) to `path` so that it is whole or not there.

    Raises `OSError` where the disk can't take it.
    """
    with segment_writer(path, table, merged=False) as writer:
        writer.write_table(compact_dictionaries(rows), _GROUP_ROWS[1])


@contextmanager
def segment_writer(path: Path, table: str, merged: bool) -> Iterator[Any]:
    """A `ParquetWriter` whose file is synced and takes its name when the block ends well."""
    make_durable_folder(path.parent)
    temporary = path.with_name(f".{path.name}{TEMPORARY_SUFFIX}")
    try:
        with pq.ParquetWriter(temporary, TABLES[table], **options(table, merged)) as writer:
            yield writer
        seal(temporary)
        _sync(temporary)
        os.rename(temporary, path)
        _sync(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def group_rows(rows: int) -> int:
    """Rows in a row group of a segment of so many rows.

    A reader decodes whole groups, and reads of each group where it lies: some hundreds of
    groups keep both small.
    """
    least, most = _GROUP_ROWS
    return min(max(rows // _GROUPS, least), most)


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
    """The same rows with each large dictionary cut to the entries in use.

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
    if len(array.dictionary) <= max(len(array) // _WORTH_COMPACTING, _SMALL_DICTIONARY):
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


def options(table: str, merged: bool) -> dict[str, Any]:
    """What `ParquetWriter` is told for a segment of the table."""
    schema = TABLES[table]
    return {
        "compression": "zstd",
        "compression_level": _MERGED_LEVEL if merged else _PUBLISHED_LEVEL,
        "use_dictionary": _dictionary_paths(schema, merged),
        "column_encoding": _encodings(schema, merged),
        "write_statistics": _STATISTICS[table],
        "write_page_checksum": True,
    }


def _encodings(schema: pa.Schema, merged: bool) -> dict[str, str]:
    """Doubles by byte planes: faster to compress, and smaller where they are noise."""
    encodings: dict[str, str] = {}
    for field in schema:
        if pa.types.is_float64(field.type):
            encodings[field.name] = "BYTE_STREAM_SPLIT"
        elif pa.types.is_map(field.type) and pa.types.is_float64(field.type.item_type):
            if not merged:
                encodings[f"{field.name}.key_value.value"] = "BYTE_STREAM_SPLIT"
        elif merged and field.type in (pa.int32(), pa.int64()):
            encodings[field.name] = "DELTA_BINARY_PACKED"
    return encodings


def _dictionary_paths(schema: pa.Schema, merged: bool) -> list[str]:
    """Columns that are dictionaries; in merged segments numbers of attributes too, few as
    their values are: token counts, statuses.
    """
    paths: list[str] = []
    for field in schema:
        if pa.types.is_dictionary(field.type):
            paths.append(field.name)
        elif pa.types.is_map(field.type):
            paths.append(f"{field.name}.key_value.key")
            if merged and pa.types.is_float64(field.type.item_type):
                paths.append(f"{field.name}.key_value.value")
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
