"""What is usual: the tail of this hour on the days before, and of requests like these in a week.

`same_hour` is the first, from rollups; `Usual` learns the second from requests as they close,
and `Learnt` says from it when a request is late.
"""

from tailburn.engine.baseline.cells import fold, merge
from tailburn.engine.baseline.deadline import Deadlines, Learnt, Outside
from tailburn.engine.baseline.incidents import Incident
from tailburn.engine.baseline.load import Basis
from tailburn.engine.baseline.same_hour import Baseline, Baselines, Day, hours, same_hour
from tailburn.engine.baseline.usual import Usual

__all__ = [
    "Baseline",
    "Baselines",
    "Basis",
    "Day",
    "Deadlines",
    "Incident",
    "Learnt",
    "Outside",
    "Usual",
    "fold",
    "hours",
    "merge",
    "same_hour",
]
