"""What is usual: the tail of this hour on the days before, and of requests like these in a week."""

from tailburn.engine.baseline.incidents import Incident
from tailburn.engine.baseline.same_hour import Baseline, Baselines, Day, hours, same_hour

__all__ = ["Baseline", "Baselines", "Day", "Incident", "hours", "same_hour"]
