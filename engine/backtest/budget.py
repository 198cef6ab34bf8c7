"""A budget over time, as a table that analysts read on: one row an hour and budget."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from tailburn.engine.backtest.minutes import Counts
from tailburn.engine.grouping import F64, I64
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.slo.budget import window_of

HOUR_MINUTES = 60
COLUMNS = ("time", "slo", "objective", "by", "requests", "bad", "burn", "left")


def budgets(counts: Iterable[Counts]) -> pd.DataFrame:
    """`requests` and `bad` of the hour before each time, `burn` of them, `left` of the window.

    `time` is UTC; `burn` and `left` are NaN without requests; `left` is below 0 when overdrawn.
    A window reaches back no further than the first minute that is known.
    """
    parts = [_of(each) for each in counts]
    if not parts:
        return pd.DataFrame({name: [] for name in COLUMNS})
    return pd.concat(parts, ignore_index=True)


def _of(counts: Counts) -> pd.DataFrame:
    ends = np.unique(np.append(np.arange(HOUR_MINUTES, len(counts), HOUR_MINUTES), len(counts)))
    end_ns = counts.since_ns + ends * MINUTE_NS
    begins = np.array([window_of(counts.slo.window, int(at) - 1)[0] for at in end_ns], np.int64)
    first = np.clip((begins - counts.since_ns) // MINUTE_NS, 0, ends)
    totals, bads = (np.concatenate([[0], np.cumsum(x)]) for x in (counts.requests, counts.bad))
    hour = np.maximum(ends - HOUR_MINUTES, 0)
    budget = counts.objective.budget_ratio
    return pd.DataFrame(
        {
            "time": pd.to_datetime(end_ns, utc=True),
            "slo": counts.slo.name,
            "objective": counts.objective.name,
            "by": ",".join(f"{name}={value}" for name, value in counts.by),
            "requests": totals[ends] - totals[hour],
            "bad": bads[ends] - bads[hour],
            "burn": _share(bads, totals, hour, ends) / budget,
            "left": 1 - _share(bads, totals, first, ends) / budget,
        }
    )


def _share(bad: I64, total: I64, begin: I64, end: I64) -> F64:
    requests = total[end] - total[begin]
    found = np.full(len(end), np.nan)
    np.divide(bad[end] - bad[begin], requests, out=found, where=requests > 0)
    return found
