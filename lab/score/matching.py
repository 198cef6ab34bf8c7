"""Pages beside the truth of one run: what was found, how soon, and what rang for nothing."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.score.minutes import MINUTE_NS
from tailburn.lab.score.outcome import Outcome, Page
from tailburn.lab.score.truths import RunTruth, Truth

S: Final = 10**9


@dataclass(frozen=True)
class Limits:
    """How pages are counted; all in ns.

    Pages of a run that lie at most `merge_ns` apart are one. A page counts as late for a
    fault up to `late_ns` after its end. Up to `aftermath_ns` after it nothing rings for
    nothing, for queues still drain.
    """

    merge_ns: int = 15 * MINUTE_NS
    late_ns: int = 5 * MINUTE_NS
    aftermath_ns: int = 15 * MINUTE_NS


LIMITS: Final = Limits()


@dataclass(frozen=True)
class Spent:
    """Requests and those that missed the objective, minute by minute from `start_ns` on.

    `budget`: share that may be bad; `window_requests`: so many the budget's window holds.
    """

    start_ns: int
    requests: NDArray[np.int64]
    bad: NDArray[np.int64]
    budget: float
    window_requests: float

    def between(self, start_ns: int, end_ns: int) -> float:
        """Share of the window's budget that bad requests of some minutes took."""
        first = (start_ns - self.start_ns) // MINUTE_NS
        last = math.ceil((end_ns - self.start_ns) / MINUTE_NS)
        bad = float(self.bad[max(first, 0) : max(last, 0)].sum())
        return bad / (self.budget * self.window_requests)


@dataclass(frozen=True)
class Ring:
    """Pages merged: from the first's start until the last's end; None: still open."""

    start_ns: int
    end_ns: int | None


@dataclass(frozen=True)
class Found:
    """One fault that should page, and what became of it."""

    truth: Truth
    page_ns: int | None
    """The first page that began in it; None: none did."""
    reset_ns: int | None = None
    """From its end until the pages about it were over; at least so long where they never were."""
    open: bool = False
    """Pages were still open when the run ended."""
    burned: float | None = None
    """Share of the budget gone from its start to the page, or to its end without one."""

    @property
    def delay_s(self) -> float:
        """From its start to the page; infinite without one."""
        if self.page_ns is None:
            return math.inf
        return (self.page_ns - self.truth.start_ns) / S


@dataclass(frozen=True)
class Matched:
    """One run and system: faults that should page, and rings outside of all of them."""

    found: tuple[Found, ...]
    false: tuple[Ring, ...]
    quiet: tuple[tuple[int, int], ...]
    """Stretches of the run in which no page was due, from and until, ns."""
    truth: RunTruth
    rings: int

    @property
    def quiet_s(self) -> float:
        return sum(high - low for low, high in self.quiet) / S


def match(
    truth: RunTruth,
    outcome: Outcome,
    spent: Spent | None = None,
    severities: Sequence[str] = ("page",),
    limits: Limits = LIMITS,
) -> Matched:
    """Put one run's pages beside what was true.

    A fault is found by a page that begins in it: one that was open before rang for
    something else, and nobody is paged twice. A ring is false that begins while no fault
    that pages is on, or just over. Pages that began before the scored time don't count.
    """
    pages = sorted(
        (p for p in outcome.pages if p.severity in severities and _counts(p, truth)),
        key=lambda p: p.start_ns,
    )
    rings = merged(pages, limits.merge_ns)
    due = [t for t in truth.truths if t.pages]
    reach = union((t.start_ns, t.end_ns + limits.aftermath_ns) for t in due)
    false = tuple(r for r in rings if not any(low <= r.start_ns < high for low, high in reach))
    return Matched(
        tuple(_found(t, pages, rings, truth, spent, limits) for t in due),
        false,
        tuple(_between(reach, truth.start_ns, truth.end_ns)),
        truth,
        len(rings),
    )


def merged(pages: Iterable[Page], apart_ns: int) -> tuple[Ring, ...]:
    """Pages in order of start, those at most `apart_ns` apart as one."""
    rings: list[Ring] = []
    for page in pages:
        last = rings[-1] if rings else None
        if last is not None and (last.end_ns is None or page.start_ns <= last.end_ns + apart_ns):
            open_still = last.end_ns is None or page.end_ns is None
            end = None if open_still else max(last.end_ns or 0, page.end_ns or 0)
            rings[-1] = Ring(last.start_ns, end)
        else:
            rings.append(Ring(page.start_ns, page.end_ns))
    return tuple(rings)


def _counts(page: Page, truth: RunTruth) -> bool:
    return truth.start_ns <= page.start_ns < truth.end_ns


def union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches, those that touch as one, in order."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def _between(
    spans: Iterable[tuple[int, int]], start_ns: int, end_ns: int
) -> Iterator[tuple[int, int]]:
    """What stretches in order leave of a time."""
    at_ns = start_ns
    for low, high in (*spans, (end_ns, end_ns)):
        if at_ns < min(low, end_ns):
            yield at_ns, min(low, end_ns)
        at_ns = max(at_ns, high)


def _found(
    truth: Truth,
    pages: Sequence[Page],
    rings: Sequence[Ring],
    run: RunTruth,
    spent: Spent | None,
    limits: Limits,
) -> Found:
    until = truth.end_ns + limits.late_ns
    page = next((p.start_ns for p in pages if truth.start_ns <= p.start_ns < until), None)
    to_page = min(truth.end_ns if page is None else page, truth.end_ns)
    burned = None if spent is None else spent.between(truth.start_ns, to_page)
    if page is None:
        return Found(truth, None, burned=burned)
    ring = next(r for r in reversed(rings) if r.start_ns <= page)
    end = run.end_ns if ring.end_ns is None else ring.end_ns
    return Found(truth, page, max(end - truth.end_ns, 0), ring.end_ns is None, burned)
