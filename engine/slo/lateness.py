"""Requests against deadlines of their own, for the SLOs that promise a first token.

Late in either clock is late: a slow decode leaves the first token where it was.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from tailburn.engine.grouping import F64
from tailburn.engine.slo.model import Clock, Slo
from tailburn.engine.slo.verdicts import Codes, Requests, clock_column, counted, judged, verdicts

DEADLINE: Final = "deadline"
"""What stands for an objective where deadlines are counted beside budgets.

Its requests are those with a deadline, and its bad ones missed it.
"""


def has_deadlines(slo: Slo) -> bool:
    """Whether the service sets deadlines for the SLO: it promises a first token."""
    return slo.source is None and Clock.TTFT in slo.clocks


def lateness(requests: Requests, slo: Slo, deadline_s: Mapping[str, F64]) -> Codes:
    """A verdict for each request, as one column; without any deadline it is unmeasured.

    `deadline_s` has for each column of a clock the deadline of each request in s; nan: none.
    """
    nothing = np.full(len(requests), np.nan)
    bad, good = np.zeros(len(requests), np.bool_), np.zeros(len(requests), np.bool_)
    missing = np.zeros(len(requests), np.bool_)
    for clock in (Clock.TTFT, Clock.TPOT):
        if clock not in slo.clocks:
            continue
        limit_s = deadline_s.get(clock_column(clock, slo.vantage), nothing)
        one = judged(requests, slo, clock, limit_s)
        has_clock = ~np.isnan(limit_s) | (clock is Clock.TTFT)
        bad |= one.over
        good |= one.within
        missing |= one.missing & has_clock
    codes = verdicts(bad=bad, none=~bad & ~good & ~missing, missing=missing & ~good)
    codes[~counted(requests, slo)] = 0
    return codes[:, None]
