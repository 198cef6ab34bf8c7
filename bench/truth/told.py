"""What people are told of a run: its alerts as incidents, as the service would group them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from tailburn.alerts.incidents.grouping import Grouping
from tailburn.alerts.incidents.places import Place
from tailburn.engine.evaluation import AlertKey, Flip, Status
from tailburn.engine.incidents import Happened, Step
from tailburn.engine.slo.burn import Severity
from tailburn.lab.score.intervals import Estimate, poisson
from tailburn.lab.score.matching import LIMITS

Run = dict[str, Any]
SYSTEM: Final = "tailburn"
WEEK_NS: Final = 7 * 86_400 * 10**9
_TELLS: Final = (Happened.OPENED, Happened.ESCALATED, Happened.REOPENED)


@dataclass(frozen=True)
class Told:
    """Of faults that should page, at one severity; and of time in which nothing was to page."""

    severity: str
    faults: int
    incidents: float
    """Opened in one fault, in the median."""
    pages: float
    """Sent for one fault that was paged, in the median; nan where none was."""
    most_pages: int


def steps_of(run: Run) -> list[Step]:
    """What happens to the incidents of a run."""
    told = next((o for o in run["outcomes"] if o["system"] == SYSTEM), None)
    flips = [] if told is None else sorted(_flips(told["pages"]), key=lambda f: f.at_ns)
    numbers = count()
    group = Grouping((), _place_of, lambda: str(next(numbers)))
    return [*group.take(flips), *group.settle(run["truth"]["end_ns"])]


def told_of(runs: Sequence[Run]) -> list[Told]:
    """A row for each severity with faults that should page."""
    found: dict[str, list[tuple[int, int]]] = {}
    for run in runs:
        due = [truth for truth in run["truth"]["truths"] if truth["pages"]]
        steps = steps_of(run) if due else []
        for truth in due:
            low, high = truth["start_ns"], truth["end_ns"] + LIMITS.aftermath_ns
            inside = [step for step in steps if low <= step.event.at_ns < high]
            opened = sum(step.what is Happened.OPENED for step in inside)
            found.setdefault(run["severity"], []).append((opened, sum(map(_is_page, inside))))
    return [_row(severity, np.array(counts)) for severity, counts in found.items()]


def pages_a_week(runs: Iterable[Run]) -> Estimate:
    """Pages sent in runs in which nothing is to page; the traffic of one warm-up once.

    The longest run of a warm-up is it.
    """
    longest: dict[str, Run] = {}
    for run in runs:
        if not any(truth["pages"] for truth in run["truth"]["truths"]):
            longest[run["warm"]] = max(longest.get(run["warm"], run), run, key=_length_ns)
    pages = sum(_is_page(step) for run in longest.values() for step in steps_of(run))
    return poisson(pages, sum(map(_length_ns, longest.values())) / WEEK_NS)


def show(runs: Sequence[Run], console: Console) -> None:
    """Nothing where no run was judged by ours."""
    rows = told_of(runs)
    if not any(o["system"] == SYSTEM for run in runs for o in run["outcomes"]):
        return
    table = Table(title="Told", title_justify="left", box=box.SIMPLE)
    for name in ("severity", "faults", "incidents opened", "pages, of those paged", "at most"):
        table.add_column(name, justify="left" if name == "severity" else "right")
    for row in rows:
        pages = "-" if np.isnan(row.pages) else f"{row.pages:g}"
        table.add_row(
            row.severity, str(row.faults), f"{row.incidents:g}", pages, str(row.most_pages)
        )
    console.print(table)
    week = pages_a_week(runs)
    if week.value is not None:
        console.print(
            f"pages a week where none is due: {week.value:.2g} ({week.low:.2g}-{week.high:.2g})"
        )


def _row(severity: str, counts: "np.ndarray[Any, Any]") -> Told:
    opened, pages = counts.T
    paged = pages[pages > 0]
    median = float(np.median(paged)) if len(paged) else float("nan")
    return Told(severity, len(counts), float(np.median(opened)), median, int(pages.max()))


def _flips(pages: Iterable[dict[str, Any]]) -> Iterable[Flip]:
    for page in pages:
        dims = dict(page["dims"])
        slo = dims.pop("slo", "")
        key = AlertKey(page["alert"], slo, "", page["severity"], "", "", tuple(dims.items()))
        yield Flip(key, Status.INACTIVE, Status.FIRING, page["start_ns"], None, "")
        if page["end_ns"] is not None:
            yield Flip(key, Status.FIRING, Status.INACTIVE, page["end_ns"], None, "")


def _place_of(key: AlertKey) -> Place:
    return dict(key.by)


def _is_page(step: Step) -> bool:
    return step.what in _TELLS and step.incident.severity is Severity.PAGE


def _length_ns(run: Run) -> int:
    length: int = run["truth"]["end_ns"] - run["truth"]["start_ns"]
    return length
