"""How long requests took at which load, folded small enough to keep a week of it.

A cell is an hour, series, clock, basis (what is matched on), half octave of arrival rate, half
octave of tokens and tenth of the prefix-hit ratio, with a histogram and the sum of its tokens; what
is left out for being late is apart. Requests are folded one by one, with the load that
they met, so any pieces merged in any order give the same cells. The number of cells is bounded
by the hours, series and bins, whatever the traffic.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine import histogram
from tailburn.engine.baseline.load import (
    BASES,
    HOUR_NS,
    UNTOLD_HITS,
    Basis,
    Matched,
    basis_of,
    counted,
    rate_bin,
    token_bin,
)
from tailburn.engine.grouping import distinct, numbers, single_chunk, text, weights
from tailburn.engine.names import UNKNOWN
from tailburn.engine.schema import USUAL, USUAL_DIMENSIONS


def schema(by: Sequence[str]) -> pa.Schema:
    """USUAL, of other dimensions."""
    names = [name for name in USUAL.names if name not in USUAL_DIMENSIONS]
    texts = [pa.field(name, USUAL.field("clock").type) for name in by]
    first, *rest = [USUAL.field(name) for name in names]
    return pa.schema([first, *texts, *rest])


def fold(
    requests: pa.Table,
    seen: Matched,
    by: Sequence[str],
    clocks: Sequence[str],
    hour_ns: int | None = None,
) -> pa.Table:
    """Cells of `requests`; those whose load or clock is not known are in none.

    `hour_ns` is the hour that they count to; None: each to that in which it was received.
    """
    weight = weights(requests)
    hour = requests.column("received_ns").to_numpy() // HOUR_NS * HOUR_NS
    hour = hour if hour_ns is None else np.full(len(requests), hour_ns)
    met = ~np.isnan(seen.rate_per_s) & (numbers(requests.column("tombstone"), 0) == 0)
    cells = [schema(by).empty_table()]
    for clock in clocks:
        value = numbers(requests.column(clock), np.nan)
        at = np.flatnonzero((value >= 0) & (value < np.inf) & met & counted(requests, clock))
        if len(at) == 0:
            continue
        basis, tokens = (found[at] for found in basis_of(requests, clock))
        one = np.arange(len(at) + 1, dtype=np.int32)
        is_prompt = basis == BASES.index(Basis.PROMPT)
        columns = {
            "hour_ns": hour[at],
            **{n: text(requests.column(n), UNKNOWN).cast(pa.string()).take(at) for n in by},
            "clock": _same(clock, len(at)),
            "basis": pa.DictionaryArray.from_arrays(
                pa.array(basis.astype(np.int32)), [str(b) for b in BASES]
            ),
            "rate_bin": rate_bin(seen.rate_per_s[at]),
            "token_bin": token_bin(tokens),
            "hit_bin": np.where(is_prompt, seen.hit_bin[at], UNTOLD_HITS),
            "left_out": np.zeros(len(at), np.bool_),
            "count": weight[at],
            "tokens": weight[at] * tokens,
            "min_s": value[at],
            "max_s": value[at],
            "buckets": pa.ListArray.from_arrays(one, pa.array(histogram.bucket_of(value[at]))),
            "counts": pa.ListArray.from_arrays(one, pa.array(weight[at])),
        }
        cells.append(pa.table(columns).cast(schema(by)))
    return merge(pa.concat_tables(cells), by)


def merge(cells: pa.Table, by: Sequence[str]) -> pa.Table:
    """Cells of the same key added up, in order of their keys."""
    if len(cells) == 0:
        return cells
    bins = ["rate_bin", "token_bin", "hit_bin", "left_out"]
    named = ["hour_ns", *by, "clock", "basis", *bins]
    keys, group = distinct(
        [
            text(c, UNKNOWN) if pa.types.is_dictionary(c.type) else c
            for c in map(cells.column, named)
        ]
    )
    groups = len(keys[0])
    lists = single_chunk(cells.column("buckets"))
    where = np.repeat(group, pc.list_value_length(lists).to_numpy()) * histogram.BUCKETS
    cell, position = np.unique(where + lists.flatten().to_numpy(), return_inverse=True)
    amount = np.zeros(len(cell), np.int64)
    amounts = single_chunk(cells.column("counts")).flatten().to_numpy()
    np.add.at(amount, position.reshape(-1), amounts)
    ends = np.concatenate(
        [[0], np.cumsum(np.bincount(cell // histogram.BUCKETS, minlength=groups))]
    )
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, group, numbers(cells.column("min_s"), np.inf))
    np.maximum.at(high, group, numbers(cells.column("max_s"), -np.inf))
    sums = {}
    for name in ("count", "tokens"):
        sums[name] = np.zeros(groups, np.int64)
        np.add.at(sums[name], group, cells.column(name).to_numpy())
    offsets = pa.array(ends.astype(np.int32))
    columns = {
        **dict(zip(named, keys, strict=True)),
        **sums,
        "min_s": pa.array(low, mask=~np.isfinite(low)),
        "max_s": pa.array(high, mask=~np.isfinite(high)),
        "buckets": pa.ListArray.from_arrays(
            offsets, pa.array((cell % histogram.BUCKETS).astype(np.int16))
        ),
        "counts": pa.ListArray.from_arrays(offsets, pa.array(amount)),
    }
    merged = pa.table(columns).cast(schema(by))
    order = [(name, "ascending") for name in named]
    texts = {n: merged.column(n).cast(pa.string()) for n in (*by, "clock", "basis")}
    plain = pa.table({n: texts.get(n, merged.column(n)) for n in named})
    return merged.take(pc.sort_indices(plain, sort_keys=order))


def _same(value: str, size: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int32)), [value])
