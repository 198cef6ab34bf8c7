"""Tables whose rows add up: what matters is the sum of the counts for each value of the keys."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tailburn.engine.schema import COUNTED, TABLES


def counts_of(table: str) -> list[str]:
    """The columns of a table of COUNTED that add up."""
    return [name for name in TABLES[table].names if name not in COUNTED[table]]


def add_up(table: str, rows: pa.Table) -> pa.Table:
    """One row per combination of the keys of a table of COUNTED, in no set order."""
    keys, counts = list(COUNTED[table]), counts_of(table)
    whole = rows.select([*keys, *counts]).unify_dictionaries()
    added = whole.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in counts])
    return _fitted(table, added.columns)


def rows_of(table: str, sums: Mapping[tuple[Any, ...], Sequence[int]]) -> pa.Table:
    """Rows of a table of COUNTED: the counts for each combination of its keys, in its order."""
    if not sums:
        return TABLES[table].empty_table()
    keys, counts = zip(*sums, strict=True), zip(*sums.values(), strict=True)
    return _fitted(table, [pa.array(column) for column in (*keys, *counts)])


def _fitted(table: str, columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Table:
    schema = TABLES[table]
    return pa.table(list(columns), names=schema.names).cast(schema)
