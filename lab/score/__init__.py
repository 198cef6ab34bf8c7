"""What systems said beside what was true: the judge of detectors and of cause finders."""

from tailburn.lab.score.errors import ScoreError
from tailburn.lab.score.intervals import Estimate
from tailburn.lab.score.matching import Limits, Spent, match
from tailburn.lab.score.outcome import (
    Cause,
    Diagnosis,
    Evidence,
    Outcome,
    Page,
    outcome_of,
    read_outcomes,
)
from tailburn.lab.score.scorer import Judged, Scores, score
from tailburn.lab.score.truths import Known, RunTruth, Truth, read_truth, truth_of

__all__ = [
    "Cause",
    "Diagnosis",
    "Estimate",
    "Evidence",
    "Judged",
    "Known",
    "Limits",
    "Outcome",
    "Page",
    "RunTruth",
    "ScoreError",
    "Scores",
    "Spent",
    "Truth",
    "match",
    "outcome_of",
    "read_outcomes",
    "read_truth",
    "score",
    "truth_of",
]
