"""Scores of a system over many runs: found, how soon, for nothing, and why.

    judged = [Judged(truth, outcome, seed=1, spent=spent), ...]
    scores = score(judged, causes=SCENARIO_IDS, nearest={"S1": ("S7", "S8")})
    scores.recall, scores.delay_median_s, scores.top_1, ...

Formulas and their sources: docs/lab-truth.md.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tailburn.lab.score.grounds import GROUNDS, grounded
from tailburn.lab.score.intervals import (
    NOTHING,
    RESAMPLES,
    Estimate,
    bootstrap,
    median,
    p90,
    poisson,
    wilson,
)
from tailburn.lab.score.matching import LIMITS, Found, Limits, Matched, Spent, match, union
from tailburn.lab.score.outcome import Diagnosis, Outcome
from tailburn.lab.score.truths import RunTruth, Truth

DAY_S: Final = 86_400.0
ANOTHER: Final = "another"
ABSTAINED: Final = "abstained"
UNASKED: Final = "no answer"


@dataclass(frozen=True)
class Judged:
    """One run and what one system said of it."""

    truth: RunTruth
    outcome: Outcome
    seed: int = 0
    spent: Spent | None = None
    warm: str = ""
    """Runs of one are one fleet and one traffic from one warm-up on, each with its own fault."""


@dataclass(frozen=True)
class Scores:
    """What a system is worth over some runs, each figure with its interval."""

    runs: int
    faults: int
    controls: int
    recall: Estimate
    chance_recall: float | None
    """What as many rings a day, at any time, would find."""
    delay_median_s: Estimate
    delay_p90_s: Estimate
    false_pages_per_day: Estimate
    controls_paged: Estimate
    """Share of the no-fault controls in which it paged."""
    reset_median_s: Estimate
    reset_p90_s: Estimate
    resets_open: int
    burned_median: Estimate
    burned_p90: Estimate
    top_1: Estimate
    top_3: Estimate
    chance_top_1: float | None
    chance_top_3: float | None
    grounded: Estimate
    abstained: Estimate
    controls_abstained: Estimate
    confusion: Mapping[str, Mapping[str, int]]
    """Scenario -> what was answered first: itself, one of its nearest, another, none."""

    def to_json(self) -> dict[str, Any]:
        """Numbers and objects alone."""
        return {
            name: value.to_json() if isinstance(value, Estimate) else value
            for name, value in vars(self).items()
        }


def score(
    judged: Sequence[Judged],
    causes: Sequence[str],
    nearest: Mapping[str, Sequence[str]],
    severities: Sequence[str] = ("page",),
    limits: Limits = LIMITS,
    resamples: int = RESAMPLES,
) -> Scores:
    """Score what a system said of some runs.

    `causes`: all that it could have answered; it is asked about no other. `nearest`: which
    causes each is most easily taken for. `severities`: what counts as paged.
    """
    matches = [
        (one, match(one.truth, one.outcome, one.spent, severities, limits)) for one in judged
    ]
    found = [(one.seed, f) for one, m in matches for f in m.found]
    controls = [(one, t) for one in judged for t in one.truth.truths if not t.pages]
    answers = [
        _Answer(t, _about(t, one.outcome, limits)) for one in judged for t in one.truth.truths
    ]
    asked = [a for a in answers if a.truth.pages and a.truth.scenario in causes]
    quiet_answers = [a for a in answers if not a.truth.pages]
    hits = sum(f.page_ns is not None for _, f in found)
    resets = _by_seed((s, f.reset_ns / 1e9) for s, f in found if f.reset_ns is not None)
    delays = _by_seed((s, f.delay_s) for s, f in found)
    burned = _by_seed((s, f.burned) for s, f in found if f.burned is not None)
    return Scores(
        runs=len(judged),
        faults=len(found),
        controls=len(controls),
        recall=wilson(hits, len(found)),
        chance_recall=_chance_recall([m for _, m in matches], [f for _, f in found], limits),
        delay_median_s=bootstrap(delays, median, resamples),
        delay_p90_s=bootstrap(delays, p90, resamples),
        false_pages_per_day=_false_pages(matches, limits),
        controls_paged=wilson(
            sum(_paged(t, one.outcome, severities, limits) for one, t in controls), len(controls)
        ),
        reset_median_s=bootstrap(resets, median, resamples),
        reset_p90_s=bootstrap(resets, p90, resamples),
        resets_open=sum(f.open for _, f in found),
        burned_median=bootstrap(burned, median, resamples),
        burned_p90=bootstrap(burned, p90, resamples),
        top_1=_share(asked, lambda a: a.right_within(1)),
        top_3=_share(asked, lambda a: a.right_within(3)),
        chance_top_1=1 / len(causes) if causes else None,
        chance_top_3=min(3 / len(causes), 1.0) if causes else None,
        grounded=_share(asked, lambda a: a.grounded),
        abstained=_share(asked, lambda a: a.abstained),
        controls_abstained=_share(quiet_answers, lambda a: a.abstained or a.right_within(1)),
        confusion=_confusion(asked, nearest),
    )


def _false_pages(matches: Sequence[tuple[Judged, Matched]], limits: Limits) -> Estimate:
    """What rang for nothing, by the time in which nothing was due; the same minutes once.

    Runs of one warm-up differ in their faults alone: a wave of their traffic comes in each.
    """
    by_warm: dict[str, list[Matched]] = {}
    for number, (one, matched) in enumerate(matches):
        by_warm.setdefault(one.warm or f"alone {number}", []).append(matched)
    rings, quiet_ns = 0, 0
    for some in by_warm.values():
        starts = [(r.start_ns, r.start_ns + limits.merge_ns) for m in some for r in m.false]
        rings += len(union(starts))
        quiet_ns += sum(high - low for low, high in union(span for m in some for span in m.quiet))
    return poisson(rings, quiet_ns / 1e9 / DAY_S)


@dataclass(frozen=True)
class _Answer:
    """A truth and the diagnosis about it; None: it gave none."""

    truth: Truth
    diagnosis: Diagnosis | None

    @property
    def first(self) -> str:
        if self.diagnosis is None:
            return UNASKED
        return ABSTAINED if self.diagnosis.abstained else self.diagnosis.causes[0].cause

    def right_within(self, ranks: int) -> bool:
        """Whether the true cause is among the first different ones it names."""
        if self.diagnosis is None:
            return False
        ranked = list(dict.fromkeys(c.cause for c in self.diagnosis.causes))
        return self.truth.scenario in ranked[:ranks]

    @property
    def grounded(self) -> bool:
        if self.diagnosis is None or not self.right_within(1):
            return False
        if self.truth.scenario not in GROUNDS:
            return False
        evidence = self.diagnosis.causes[0].evidence
        return grounded(self.truth.scenario, evidence, self.truth.affected)

    @property
    def abstained(self) -> bool:
        return self.diagnosis is not None and self.diagnosis.abstained


def _about(truth: Truth, outcome: Outcome, limits: Limits) -> Diagnosis | None:
    """The first diagnosis that begins in a truth's time, else one that holds its start."""
    until = truth.end_ns + limits.late_ns
    inside = [d for d in outcome.diagnoses if truth.start_ns <= d.start_ns < until]
    around = [d for d in outcome.diagnoses if d.start_ns < truth.start_ns < d.end_ns]
    return min(inside, key=lambda d: d.start_ns) if inside else (around[-1] if around else None)


def _paged(truth: Truth, outcome: Outcome, severities: Sequence[str], limits: Limits) -> bool:
    until = truth.end_ns + limits.late_ns
    return any(
        p.severity in severities and truth.start_ns <= p.start_ns < until for p in outcome.pages
    )


def _share(answers: Sequence[_Answer], holds: Callable[[_Answer], bool]) -> Estimate:
    """Share of all truths; nothing where no diagnosis was given at all."""
    if all(a.diagnosis is None for a in answers):
        return NOTHING
    return wilson(sum(holds(a) for a in answers), len(answers))


def _by_seed(values: Iterable[tuple[int, float]]) -> dict[int, list[float]]:
    by: dict[int, list[float]] = {}
    for seed, value in values:
        by.setdefault(seed, []).append(value)
    return by


def _chance_recall(
    matches: Sequence[Matched], found: Sequence[Found], limits: Limits
) -> float | None:
    """Rings a second, spread evenly over the time: how many faults would hold one."""
    seconds = sum((m.truth.end_ns - m.truth.start_ns) / 1e9 for m in matches)
    if not found or not seconds:
        return None
    a_second = sum(m.rings for m in matches) / seconds
    spans = [(f.truth.end_ns + limits.late_ns - f.truth.start_ns) / 1e9 for f in found]
    return sum(1 - math.exp(-a_second * span) for span in spans) / len(spans)


def _confusion(
    asked: Sequence[_Answer], nearest: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, int]]:
    table: dict[str, Counter[str]] = {}
    for answer in asked:
        if answer.diagnosis is None:
            continue
        mine = answer.truth.scenario
        shown = (mine, *nearest.get(mine, ()), ABSTAINED)
        row = table.setdefault(mine, Counter(dict.fromkeys((*shown, ANOTHER), 0)))
        row[answer.first if answer.first in shown else ANOTHER] += 1
    return {scenario: dict(row) for scenario, row in table.items()}
