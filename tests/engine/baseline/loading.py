"""The load of each request, from a table of loads by minute."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tailburn.engine.baseline.load import MINUTE_NS, UNTOLD_HITS, Matched, hit_bin
from tailburn.engine.grouping import distinct, numbers, stacked_text
from tailburn.engine.names import UNKNOWN


def matched(requests: pa.Table, load: pa.Table, by: Sequence[str]) -> Matched:
    """`load` has minute_ns, `by`, rate_per_s and perhaps prefix_hit_ratio."""
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
    return Matched(rate[mine], hit_bin(ratio[mine]))
