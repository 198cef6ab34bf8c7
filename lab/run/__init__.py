"""A run of the lab: a fleet under traffic, its faults, what it tells and what is true."""

from tailburn.lab.run.drive import Drive, Step, Summary
from tailburn.lab.run.errors import RunError
from tailburn.lab.run.motion import FORK_MINUTES, Motion, MotionSnapshot, Plan, Slice
from tailburn.lab.run.scraping import Scraping
from tailburn.lab.run.targets import Target, ToFolder, ToService
from tailburn.lab.run.telling import Merging, Telling
from tailburn.lab.run.traffic import Traffic
from tailburn.lab.run.truth import AttemptsFile, truth_of, write_truth

__all__ = [
    "FORK_MINUTES",
    "AttemptsFile",
    "Drive",
    "Merging",
    "Motion",
    "MotionSnapshot",
    "Plan",
    "RunError",
    "Scraping",
    "Slice",
    "Step",
    "Summary",
    "Target",
    "Telling",
    "ToFolder",
    "ToService",
    "Traffic",
    "truth_of",
    "write_truth",
]
