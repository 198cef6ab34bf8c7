"""Where a series is too thin it is pooled with its like: the parents of a series, in order.

First all replicas (and with them GPUs and nodes) of a request type and model, then all request
types of a model, then all models. Tenant, service, pool, route, priority and prompt class are
never pooled: what is served there is not alike.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.engine.grouping import I64, distinct, text
from tailburn.engine.names import UNKNOWN

Series = tuple[list[tuple[str, ...]], I64]
"""Combinations of the values of some dimensions, and which of them each row has."""

STEPS: Final = (("replica", "gpu", "node"), ("request_type",), ("model",))


def levels(by: Sequence[str]) -> list[tuple[str, ...]]:
    """The dimensions kept at each level; the first is `by`, each next one has fewer."""
    found = [tuple(by)]
    for step in STEPS:
        kept = tuple(name for name in found[-1] if name not in step)
        if kept != found[-1]:
            found.append(kept)
    return found


def keys_of(table: pa.Table, by: Sequence[str]) -> tuple[pa.Table, I64]:
    """Distinct values of `by`, as text, and which of them each row has."""
    if not by:  # one group without a name
        return pa.table({"all": ["all"][: len(table)]}), np.zeros(len(table), np.int64)
    if len(table) == 0:
        return pa.table({name: pa.array([], pa.string()) for name in by}), np.zeros(0, np.int64)
    keys, group = distinct([text(table.column(name), UNKNOWN) for name in by])
    return pa.table([key.cast(pa.string()) for key in keys], names=list(by)), group


def series_of(table: pa.Table, by: Sequence[str]) -> Series:
    """The same, each combination of values as a tuple; one that is empty without `by`."""
    keys, group = keys_of(table, by)
    if not by:
        return [()], group
    return list(zip(*(column.to_pylist() for column in keys.columns), strict=True)), group


def parents(series: pa.Table, by: Sequence[str]) -> list[tuple[tuple[str, ...], I64, int]]:
    """Per level: dimensions kept, the group of each series, how many groups there are."""
    found = [(tuple(by), np.arange(len(series)), len(series))]
    for kept in levels(by)[1:]:
        keys, group = keys_of(series, kept)
        found.append((kept, group, len(keys)))
    return found
