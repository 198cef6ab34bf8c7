"""A run of the lab: a fleet under traffic, its faults, what it tells and what is true."""

from tailburn.lab.run.errors import RunError
from tailburn.lab.run.motion import FORK_MINUTES, Motion, MotionSnapshot, Plan, Slice
from tailburn.lab.run.traffic import Traffic

__all__ = [
    "FORK_MINUTES",
    "Motion",
    "MotionSnapshot",
    "Plan",
    "RunError",
    "Slice",
    "Traffic",
]
