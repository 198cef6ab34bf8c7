"""Scores of kept runs, as JSON and as a table."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from bench.truth.grid import SEVERITIES
from tailburn.lab.faults.catalogue import SCENARIOS
from tailburn.lab.score import Estimate, Judged, Scores, Spent, outcome_of, score, truth_of
from tailburn.lab.score.scorer import ABSTAINED, ANOTHER

CAUSES: Final = tuple(s.id for s in SCENARIOS.values() if s.pages)
NEAREST: Final = {
    s.id: tuple(c.scenario for c in s.confusable if c.scenario in SCENARIOS)
    for s in SCENARIOS.values()
}
Run = dict[str, Any]


def judged_of(run: Run) -> dict[str, Judged]:
    """A kept run, by system."""
    truth = truth_of(run["truth"], run["cell"])
    told = run["spent"]
    spent = Spent(
        told["start_ns"],
        np.asarray(told["requests"], np.int64),
        np.asarray(told["bad"], np.int64),
        told["budget"],
        told["window_requests"],
    )
    return {
        one["system"]: Judged(truth, outcome_of(one, run["cell"]), run["seed"], spent, run["warm"])
        for one in run["outcomes"]
    }


Group = tuple[str, Callable[[Run], bool]]


def groups_of(runs: Sequence[Run]) -> list[Group]:
    """All, each rate and each severity where there is more than one, and each scenario."""
    groups: list[Group] = [("all", lambda run: True)]
    if any(_is_quiet(run) for run in runs):
        groups.append(("quiet and controls", _is_quiet))
    rates = sorted({run["per_s"] for run in runs})
    for per_s in rates if len(rates) > 1 else ():
        groups.append(_at(f"{per_s:g} req/s", per_s, None))
    for per_s in rates:
        there = {run["severity"] for run in runs if run["per_s"] == per_s}
        severities = [s for s in SEVERITIES if s in there]
        for severity in severities if len(severities) > 1 else ():
            groups.append(_at(f"{per_s:g} req/s, {severity}", per_s, severity))
    for what in sorted({run["what"] for run in runs}, key=_by_number):
        groups.append((f"scenario {what}", lambda run, what=what: run["what"] == what))  # type: ignore[misc]
    return groups


def _is_quiet(run: Run) -> bool:
    """Whether nothing of it is to page."""
    return not any(truth["pages"] for truth in run["truth"]["truths"])


def _at(name: str, per_s: float, severity: str | None) -> Group:
    return name, lambda run: run["per_s"] == per_s and severity in (None, run["severity"])


def _by_number(what: str) -> tuple[str, int]:
    number = what[1:]
    return (what[0], int(number)) if number.isdigit() else ("~" + what, 0)


def scores_of(runs: Sequence[Run]) -> dict[str, dict[str, Scores]]:
    """System -> group -> scores; pages and tickets together as a group of their own."""
    judged = [(run, judged_of(run)) for run in runs]
    systems = list(dict.fromkeys(name for _, of in judged for name in of))
    found: dict[str, dict[str, Scores]] = {}
    for system in systems:
        mine = [(run, of[system]) for run, of in judged if system in of]
        found[system] = {
            name: score([j for run, j in mine if belongs(run)], CAUSES, NEAREST)
            for name, belongs in groups_of(runs)
        }
        found[system]["all, tickets too"] = score(
            [j for _, j in mine], CAUSES, NEAREST, severities=("page", "ticket")
        )
    return found


def show(scores: dict[str, dict[str, Scores]], console: Console) -> None:
    """Detection, then causes, then what was taken for what."""
    _detection(scores, console)
    _causes(scores, console)
    _by_scenario(scores, console)
    _confusion(scores, console)


def _kept_groups(of: Iterable[str]) -> list[str]:
    return [name for name in of if not name.startswith("scenario ")]


def _pages(of: dict[str, Scores]) -> bool:
    return any(s.false_pages_per_day.count or (s.recall.value or 0) > 0 for s in of.values())


def _detection(scores: dict[str, dict[str, Scores]], console: Console) -> None:
    table = Table(title="Detection", title_justify="left", box=box.SIMPLE)
    for name in ("system", "runs of", "faults", "recall", "by chance", "delay min, median", "p90",
                 "false pages/day", "reset min", "budget gone %"):  # fmt: skip
        table.add_column(name, justify="left" if name in ("system", "runs of") else "right")
    for system, of in scores.items():
        if not _pages(of):
            continue
        for name in _kept_groups(of):
            s = of[name]
            table.add_row(
                system, name, str(s.faults), shown(s.recall), _share(s.chance_recall),
                shown(s.delay_median_s, 1 / 60), shown(s.delay_p90_s, 1 / 60),
                shown(s.false_pages_per_day), shown(s.reset_median_s, 1 / 60),
                shown(s.burned_median, 100),
            )  # fmt: skip
    console.print(table)


def _causes(scores: dict[str, dict[str, Scores]], console: Console) -> None:
    table = Table(title="Causes", title_justify="left", box=box.SIMPLE)
    for name in ("system", "runs of", "top-1", "by chance", "top-3", "by chance", "grounded",
                 "abstained", "right on controls"):  # fmt: skip
        table.add_column(name, justify="left" if name in ("system", "runs of") else "right")
    for system, of in scores.items():
        for name in _kept_groups(of):
            s = of[name]
            if s.top_1.value is not None:
                table.add_row(
                    system, name, shown(s.top_1), _share(s.chance_top_1), shown(s.top_3),
                    _share(s.chance_top_3), shown(s.grounded), shown(s.abstained),
                    shown(s.controls_abstained),
                )  # fmt: skip
    console.print(table)


def _by_scenario(scores: dict[str, dict[str, Scores]], console: Console) -> None:
    """Found of how many (controls: paged in, of how many); causes right at once."""
    title = "Found, by scenario (controls: paged in); causes named first"
    table = Table(title=title, title_justify="left", box=box.SIMPLE)
    table.add_column("")
    for system in scores:
        table.add_column(system, justify="right")
    names = [n for n in next(iter(scores.values()), {}) if n.startswith("scenario ")]
    for name in names:
        table.add_row(name.removeprefix("scenario "), *(_told(of[name]) for of in scores.values()))
    console.print(table)


def _told(s: Scores) -> str:
    shown_as = s.recall if s.faults else s.controls_paged
    if s.top_1.value is not None or s.controls_abstained.value is not None:
        shown_as = s.top_1 if s.faults else s.controls_abstained
    if shown_as.value is None:
        return "-"
    return f"{round(shown_as.value * shown_as.count)} of {shown_as.count}"


def _confusion(scores: dict[str, dict[str, Scores]], console: Console) -> None:
    for system, of in scores.items():
        if not of["all"].confusion:
            continue
        table = Table(title=f"What {system} answered first", title_justify="left", box=box.SIMPLE)
        for name in ("fault", "itself", "its nearest", "another", "abstained"):
            table.add_column(name)
        for what, row in sorted(of["all"].confusion.items(), key=lambda kv: _by_number(kv[0])):
            near = [f"{k} {v}" for k, v in row.items() if k not in (what, ANOTHER, ABSTAINED)]
            table.add_row(what, str(row[what]), ", ".join(near), str(row[ANOTHER]),
                          str(row[ABSTAINED]))  # fmt: skip
        console.print(table)


def shown(estimate: Estimate, factor: float = 1.0) -> str:
    """A figure with its interval: `0.64 (0.41-0.83)`."""
    if estimate.value is None:
        return "-"
    value, low, high = (_number(v, factor) for v in (estimate.value, estimate.low, estimate.high))
    return value if estimate.low is None else f"{value} ({low}-{high})"


def _number(value: float | None, factor: float) -> str:
    if value is None:
        return "?"
    return "never" if math.isinf(value) else f"{value * factor:.3g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"
