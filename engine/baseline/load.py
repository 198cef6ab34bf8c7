"""How long requests took at which load, folded small enough to keep seven days of it.

A cell is an hour, series, clock, half octave of arrival rate and half octave of prompt tokens,
with a histogram and the sum of its tokens. Requests are folded one by one, with the load of their
minute from `loads`, so any pieces merged in any order give the same cells. The number of cells is
bounded by the hours, series and bins, whatever the traffic.

A newer version of a request takes the older one back by `sign=-1`, as in `engine.rollup`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine import histogram, rollup
from tailburn.engine.grouping import F64, I64, distinct, numbers, single_chunk, stacked_text, text
from tailburn.engine.names import UNKNOWN

MINUTE_NS: Final = rollup.MINUTE_NS
HOUR_NS: Final = 60 * MINUTE_NS
DAY_NS: Final = 24 * HOUR_NS
KEPT_NS: Final = 7 * DAY_NS
RATE_MINUTES: Final = 5
_PER_OCTAVE: Final = 2
_RATE_BINS: Final = 40  # both ways of one request a second
UNTOLD_HITS: Final = -1


class Basis(StrEnum):
    """What requests are matched on, beside the arrival rate."""

    UNCACHED = "uncached"  # prompt tokens less cached ones
    PROMPT = "prompt"  # prompt tokens and the prefix-hit ratio: cached ones are not told
    RATE = "rate"  # nothing: TPOT, or the prompt's length is not told


def schema(by: Sequence[str]) -> pa.Schema:
    """Of a table of cells."""
    names = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            ("hour_ns", pa.int64()),  # start of the receive hour
            *((name, names) for name in by),
            ("clock", names),
            ("basis", names),
            ("rate_bin", pa.int64()),  # floor(2 log2 of requests a second)
            ("token_bin", pa.int64()),  # floor(2 log2 tokens); 0 for `rate`
            ("hit_bin", pa.int64()),  # tenths of the prefix-hit ratio; -1: untold, or not matched
            ("count", pa.int64()),
            ("tokens", pa.int64()),  # sum
            ("min_s", pa.float64()),
            ("max_s", pa.float64()),
            ("buckets", pa.list_(pa.int16())),
            ("counts", pa.list_(pa.int64())),
        ]
    )


def loads(rollups: pa.Table, by: Sequence[str]) -> pa.Table:
    """Requests a second of each minute and series, over the 5 min that end with it.

    Columns: minute_ns, `by`, rate_per_s. Add a column `prefix_hit_ratio` (0 to 1, null where
    untold) from signals for engines that don't tell cached tokens. A minute is whole only once
    the rollups of it and the four before are.
    """
    clock = rollups.column("clock").cast(pa.string())
    rows = rollups.filter(pc.equal(clock, rollup.REQUESTS))
    if len(rows) == 0:
        empty = {name: pa.array([], pa.string()) for name in by}
        none = pa.array([], pa.float64())
        return pa.table({"minute_ns": pa.array([], pa.int64()), **empty, "rate_per_s": none})
    minute = rows.column("minute_ns").to_numpy()
    later = np.concatenate([minute + k * MINUTE_NS for k in range(RATE_MINUTES)])
    many = pa.concat_tables([rows.select(list(by))] * RATE_MINUTES) if by else None
    names = [text(many.column(n), UNKNOWN) for n in by] if many is not None else []
    keys, group = distinct([pa.chunked_array([later]), *names])
    count = np.tile(numbers(rows.column("count"), 0), RATE_MINUTES)
    total = np.maximum(np.bincount(group, count, len(keys[0])), 0)
    here = np.zeros(len(keys[0]), np.bool_)
    here[group[: len(rows)]] = True
    here &= total > 0
    texts = {name: key.cast(pa.string()) for name, key in zip(by, keys[1:], strict=True)}
    rate = pa.array(total / (RATE_MINUTES * 60))
    return pa.table({"minute_ns": keys[0], **texts, "rate_per_s": rate}).filter(pa.array(here))


def fold(
    requests: pa.Table, load: pa.Table, by: Sequence[str], clocks: Sequence[str], sign: int = 1
) -> pa.Table:
    """Cells of `requests`; those whose load or clock is not known are in none."""
    kept = requests.filter(pc.invert(pc.fill_null(requests.column("tombstone"), False)))
    seen = matched(kept, load, by)
    weight = np.maximum(np.rint(numbers(kept.column("weight"), 1.0)), 1).astype(np.int64)
    hour = kept.column("received_ns").to_numpy() // HOUR_NS * HOUR_NS
    cells = [schema(by).empty_table()]
    for clock in clocks:
        value = numbers(kept.column(clock), np.nan)
        basis, tokens = basis_of(kept, clock)
        known = (value >= 0) & (value < np.inf) & ~np.isnan(seen.rate_per_s) & counted(kept, clock)
        at = np.flatnonzero(known)
        if len(at) == 0:
            continue
        one = np.arange(len(at) + 1, dtype=np.int32)
        columns = {
            "hour_ns": hour[at],
            **{n: text(kept.column(n), UNKNOWN).cast(pa.string()).take(at) for n in by},
            "clock": [clock] * len(at),
            "basis": basis[at],
            "rate_bin": rate_bin(seen.rate_per_s[at]),
            "token_bin": token_bin(tokens[at]),
            "hit_bin": np.where(basis[at] == Basis.PROMPT, seen.hit_bin[at], UNTOLD_HITS),
            "count": sign * weight[at],
            "tokens": sign * weight[at] * tokens[at],
            "min_s": pa.array(value[at], mask=np.full(len(at), sign < 0)),
            "max_s": pa.array(value[at], mask=np.full(len(at), sign < 0)),
            "buckets": pa.ListArray.from_arrays(one, pa.array(histogram.bucket_of(value[at]))),
            "counts": pa.ListArray.from_arrays(one, pa.array(sign * weight[at])),
        }
        cells.append(pa.table(columns).cast(schema(by)))
    return merge(pa.concat_tables(cells), by)


def merge(cells: pa.Table, by: Sequence[str]) -> pa.Table:
    """Cells of the same key added up, in order of their keys; those left empty vanish.

    A cell that more was taken back from than it has so far is kept: what it takes back may come.
    """
    if len(cells) == 0:
        return cells
    named = ["hour_ns", *by, "clock", "basis", "rate_bin", "token_bin", "hit_bin"]
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
    cell, amount = cell[amount != 0], amount[amount != 0]
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
    left = (sums["count"] != 0) | (np.diff(ends) > 0)
    merged = pa.table(columns).cast(schema(by)).filter(pa.array(left))
    order = [(name, "ascending") for name in named]
    texts = {n: merged.column(n).cast(pa.string()) for n in (*by, "clock", "basis")}
    plain = pa.table({n: texts.get(n, merged.column(n)) for n in named})
    return merged.take(pc.sort_indices(plain, sort_keys=order))


def kept(cells: pa.Table, now_ns: int) -> pa.Table:
    """Cells without those of hours that began more than seven days ago."""
    return cells.filter(pc.greater_equal(cells.column("hour_ns"), pa.scalar(now_ns - KEPT_NS)))


@dataclass(frozen=True)
class Matched:
    """The load of each request's minute and series; nan and -1 where not known."""

    rate_per_s: F64
    hit_bin: I64


def matched(requests: pa.Table, load: pa.Table, by: Sequence[str]) -> Matched:
    """Of each request; raises `KeyError` for an unknown dimension."""
    if len(requests) == 0 or len(load) == 0:
        return Matched(np.full(len(requests), np.nan), np.full(len(requests), UNTOLD_HITS))
    minute = requests.column("received_ns").to_numpy() // MINUTE_NS * MINUTE_NS
    both = np.concatenate([load.column("minute_ns").to_numpy(), minute])
    names = [stacked_text((load, requests), name, UNKNOWN) for name in by]
    keys, group = distinct([pa.chunked_array([both]), *names])
    rate = np.full(len(keys[0]), np.nan)
    rate[group[: len(load)]] = numbers(load.column("rate_per_s"), np.nan)
    ratio = np.full(len(keys[0]), np.nan)
    if "prefix_hit_ratio" in load.column_names:
        ratio[group[: len(load)]] = numbers(load.column("prefix_hit_ratio"), np.nan)
    mine = group[len(load) :]
    rate[~(rate > 0)] = np.nan
    tenths = np.where(np.isnan(ratio), UNTOLD_HITS, np.clip(np.floor(ratio * 10), 0, 9))
    return Matched(rate[mine], tenths[mine].astype(np.int64))


def basis_of(requests: pa.Table, clock: str) -> tuple[np.ndarray, I64]:
    """What each request is matched on, and of how many tokens it is there."""
    prompt = numbers(requests.column("prompt_tokens"), np.nan)
    cached = numbers(requests.column("cached_tokens"), np.nan)
    basis = np.full(len(prompt), str(Basis.RATE), object)
    tokens = np.zeros(len(prompt))
    if not clock.startswith("tpot_"):
        told = ~np.isnan(prompt)
        basis[told], tokens[told] = str(Basis.PROMPT), prompt[told]
        apart = told & ~np.isnan(cached)
        basis[apart], tokens[apart] = str(Basis.UNCACHED), (prompt - cached)[apart]
    return basis, np.maximum(tokens, 0).astype(np.int64)


def counted(requests: pa.Table, clock: str) -> np.ndarray:
    """Whether the clock says anything of a request: TPOT from 16 output tokens on."""
    if not clock.startswith("tpot_"):
        return np.ones(len(requests), np.bool_)
    return numbers(requests.column("output_tokens"), 0) >= rollup.TPOT_MIN_OUTPUT_TOKENS


def rate_bin(rate_per_s: F64) -> I64:
    """Half octaves of one request a second."""
    found = np.floor(_PER_OCTAVE * np.log2(rate_per_s))
    return np.clip(found, -_RATE_BINS, _RATE_BINS).astype(np.int64)


def token_bin(tokens: I64) -> I64:
    """Half octaves of tokens; none and one are alike."""
    return np.floor(_PER_OCTAVE * np.log2(np.maximum(tokens, 1))).astype(np.int64)
