"""What is usual: the tail of this hour on the days before, and of requests like these in a week.

`same_hour` is the first, from rollups; `loads`, `fold`, `merge` and `kept` learn the second from
requests, and `deadlines` says from it when a request is late.
"""

from tailburn.engine.baseline.deadline import Deadlines, Outside, deadlines
from tailburn.engine.baseline.incidents import Incident
from tailburn.engine.baseline.load import Basis, fold, kept, loads, merge
from tailburn.engine.baseline.same_hour import Baseline, Baselines, Day, hours, same_hour

__all__ = [
    "Baseline",
    "Baselines",
    "Basis",
    "Day",
    "Deadlines",
    "Incident",
    "Outside",
    "deadlines",
    "fold",
    "hours",
    "kept",
    "loads",
    "merge",
    "same_hour",
]
