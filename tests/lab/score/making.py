"""Truths and answers made by hand, in minutes."""

from tailburn.lab.score import (
    Cause,
    Diagnosis,
    Evidence,
    Judged,
    Known,
    Outcome,
    Page,
    RunTruth,
    Spent,
)

MINUTE = 60 * 10**9


def fault(
    scenario: str, start: float, end: float, pages: bool = True, **affected: tuple[str, ...]
) -> Known:
    """A fault from one minute to another."""
    return Known(scenario, round(start * MINUTE), round(end * MINUTE), pages, affected=affected)


def truth(*faults: Known, minutes: int = 600) -> RunTruth:
    """A run of so many minutes."""
    return RunTruth(0, minutes * MINUTE, faults)


def page(start: float, end: float | None, severity: str = "page") -> Page:
    """A page from one minute to another; None: still open at the end."""
    return Page(round(start * MINUTE), None if end is None else round(end * MINUTE), severity)


def says(*pages: Page, diagnoses: tuple[Diagnosis, ...] = ()) -> Outcome:
    """What a system said."""
    return Outcome("by hand", pages, diagnoses)


def holds(start: float, end: float, *causes: Cause) -> Diagnosis:
    """A diagnosis of a window of minutes."""
    return Diagnosis(round(start * MINUTE), round(end * MINUTE), causes)


def because(cause: str, *signals: str, **dims: str) -> Cause:
    """A cause and the signals it rests on, all of one place."""
    return Cause(cause, tuple(Evidence(s, dims) for s in signals))


def judged(
    run: RunTruth, outcome: Outcome, seed: int = 1, spent: Spent | None = None, warm: str = ""
) -> Judged:
    """A run and its answer."""
    return Judged(run, outcome, seed, spent, warm)
