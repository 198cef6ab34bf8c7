"""Who asks for what and when: arrivals, lengths, shared prefixes, tenants, sessions."""

from tailburn.lab.workload.changes import KNOBS, Change, ramp
from tailburn.lab.workload.errors import WorkloadError
from tailburn.lab.workload.figures import FIGURES
from tailburn.lab.workload.files import load, measured
from tailburn.lab.workload.profiles import Profile, named
from tailburn.lab.workload.stream import Workload

__all__ = [
    "FIGURES",
    "KNOBS",
    "Change",
    "Profile",
    "Workload",
    "WorkloadError",
    "load",
    "measured",
    "named",
    "ramp",
]
