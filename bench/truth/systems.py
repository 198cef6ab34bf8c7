"""What is judged: anything that hears a fleet minute by minute and says what it makes of it.

A system hears the warm-up once, is forked for each run, hears that, and is asked at its end.
It may use the minutes (`heard`), as the naive ones do; or make spans and scrapes of the same
slice (`tailburn.lab.run.Telling`) for a real service, or feed an engine's functions. It gets
no truth.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final, Protocol, Self

import numpy as np

from tailburn.lab.records import Attempts
from tailburn.lab.run import Slice
from tailburn.lab.score.heard import Heard, Series
from tailburn.lab.score.minutes import (
    BUCKETS,
    MIDDLES_S,
    MINUTE_NS,
    U32,
    rolling_quantile,
)
from tailburn.lab.score.naive import DAY, WORKBOOK, FixedSlo, RawRule, ThreeSigma, pages_of
from tailburn.lab.score.naive_cause import LargestZ
from tailburn.lab.score.outcome import Diagnosis, Outcome, Page

KEPT: Final = max(DAY + 120, *(windows.long for windows in WORKBOOK))
"""Minutes that the naive ones look back at most, but for the week's p99."""
CLOCKS: Final = ("ttft", "tpot")


@dataclass(frozen=True)
class Told:
    """A stretch of whole minutes: what the fleet told in it."""

    slice: Slice
    arrived: Attempts
    """Of the slice's tries those whose spans were not lost."""
    heard: Heard


class System(Protocol):
    """One that is judged."""

    @property
    def name(self) -> str: ...

    def hear(self, told: Told) -> None:
        """The next stretch."""

    def fork(self) -> "System":
        """One that goes on from here by itself."""

    def outcome(self, asked: Sequence[tuple[int, int]]) -> Outcome:
        """Pages since the beginning; and a diagnosis of each window (ns) asked about.

        One that diagnoses its own pages need not look at what is asked.
        """


class _Hearing:
    """Keeps what it is asked about, all that comes after the fork, and what that looks back at."""

    name = ""

    def __init__(self) -> None:
        self._parts: tuple[Heard, ...] = ()
        self._forked = False

    def hear(self, told: Told) -> None:
        """Keep it; of what comes before the fork let go of what is too old."""
        self._parts = (*self._parts, told.heard)
        if self._forked:
            return
        while self._parts[0].end_ns < told.heard.start_ns - KEPT * MINUTE_NS:
            self._parts = self._parts[1:]

    def fork(self) -> Self:
        """Both share what was heard: nobody changes it."""
        forked = copy(self)
        forked._forked = True
        return forked

    def _all(self) -> Heard:
        return Heard.join(self._parts)


class RawSystem(_Hearing):
    """The raw 24-hour rule on each model's TTFT and TPOT."""

    name = "raw 24 h rule"
    rule = RawRule()

    def outcome(self, asked: Sequence[tuple[int, int]]) -> Outcome:
        """Pages alone."""
        heard = self._all()
        pages: list[Page] = []
        for (clock, model), counts in heard.clocks.items():
            if clock in CLOCKS:
                dims = {"model": model, "clock": clock}
                pages += pages_of(self.rule(counts), heard.start_ns, "page", self.name, dims)
        return Outcome(self.name, tuple(pages))


class FixedSloSystem(_Hearing):
    """Multi-window burn rates of a fixed deadline: the p99 of what was heard before the fork."""

    name = "fixed SLO, multi-window"

    def __init__(self) -> None:
        super().__init__()
        self._whole: dict[tuple[str, str], U32] = {}

    def hear(self, told: Told) -> None:
        """As the others; all that is heard before the fork makes the deadlines."""
        super().hear(told)
        if not self._forked:
            for key, counts in told.heard.clocks.items():
                whole = self._whole.get(key, np.zeros((1, BUCKETS), np.uint32))
                self._whole[key] = whole + counts.sum(axis=0, dtype=np.uint32)[None]

    def rule(self, clock: str, model: str) -> FixedSlo:
        """Its deadline is the p99 of the time before the fork; the longest where nothing was."""
        whole = self._whole.get((clock, model), np.zeros((1, BUCKETS), np.uint32))
        found = float(rolling_quantile(whole, 1, 0.99, MIDDLES_S)[-1])
        return FixedSlo(found if np.isfinite(found) else float(MIDDLES_S[-1]))

    def outcome(self, asked: Sequence[tuple[int, int]]) -> Outcome:
        """Pages and tickets."""
        heard = self._all()
        pages: list[Page] = []
        for (clock, model), counts in heard.clocks.items():
            if clock not in CLOCKS:
                continue
            slo = self.rule(clock, model)
            for windows in WORKBOOK:
                dims = {"model": model, "clock": clock}
                alert = f"{windows.factor:g}x at {windows.long} min"
                fires = slo(counts, windows)
                pages += pages_of(fires, heard.start_ns, windows.severity, alert, dims)
        return Outcome(self.name, tuple(pages))


class ThreeSigmaSystem(_Hearing):
    """Any series three standard deviations from its last day's mean; one page for all of them."""

    name = "3 sigma, per metric"
    rule = ThreeSigma()

    def outcome(self, asked: Sequence[tuple[int, int]]) -> Outcome:
        """Pages alone: a minute in which metrics begin to fire is one, named after the first."""
        heard = self._all()
        ends: dict[int, tuple[int | None, Series]] = {}
        for first in range(0, len(heard.series), 256):
            fires = self.rule(heard.values[:, first : first + 256].astype(np.float64))
            for i in np.flatnonzero(fires.any(axis=0)):
                one = heard.series[first + int(i)]
                for page in pages_of(fires[:, i], heard.start_ns, "page", one.name, {}):
                    end, named = ends.get(page.start_ns, (page.end_ns, one))
                    last = None if end is None or page.end_ns is None else max(end, page.end_ns)
                    ends[page.start_ns] = (last, named)
        return Outcome(
            self.name,
            tuple(
                Page(start, end, "page", one.name, {**one.dims, "signal": one.signal})
                for start, (end, one) in sorted(ends.items())
            ),
        )


class LargestZSystem(_Hearing):
    """The naive cause finder; asked about a window, it always has an answer."""

    name = "largest z-score"
    finder = LargestZ()

    def outcome(self, asked: Sequence[tuple[int, int]]) -> Outcome:
        """Diagnoses alone."""
        heard = self._all()
        found: list[Diagnosis] = [self.finder.diagnose(heard, *window) for window in asked]
        return Outcome(self.name, (), tuple(found))


def naive() -> list[System]:
    """The three detectors and the cause finder."""
    return [RawSystem(), FixedSloSystem(), ThreeSigmaSystem(), LargestZSystem()]
