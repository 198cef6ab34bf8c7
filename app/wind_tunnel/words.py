"""`tailburn lab list` and `explain`: the scenarios in words, as rows and on a terminal."""

from typing import Any

from rich.table import Table

from tailburn.app.errors import UserError
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import plain
from tailburn.lab.faults.catalogue import SCENARIOS, scenario
from tailburn.lab.faults.scenario import FaultError, Scenario

_NOBODY = "nobody is paged"


def scenario_rows() -> list[dict[str, Any]]:
    """One row a scenario."""
    return [
        {
            "id": s.id, "name": s.name, "step": s.step, "hop": s.hop, "verdict": s.verdict,
            "cause": s.cause, "pages": s.pages, "title": s.title,
        }
        for s in SCENARIOS.values()
    ]  # fmt: skip


def scenarios_table() -> Table:
    """All scenarios, aligned."""
    drawn = table(["id", "name", "step", "hop", "what is broken"])
    for s in SCENARIOS.values():
        cells = [s.id, s.name, _or_dash(s.step), _or_dash(s.hop), s.title]
        drawn.add_row(*map(plain, cells))
    return drawn


def _or_dash(word: str) -> str:
    return "-" if word == "none" else word


def explanation_row(name: str) -> dict[str, Any]:
    """One scenario whole. Raises UserError with the nearest names."""
    s = _found(name)
    return {
        "id": s.id, "name": s.name, "title": s.title, "broken": s.broken, "expect": s.expect,
        "why": s.why, "step": s.step, "hop": s.hop, "verdict": s.verdict, "cause": s.cause,
        "pages": s.pages,
        "confusable": [{"scenario": c.scenario, "words": c.words} for c in s.confusable],
    }  # fmt: skip


def explained(name: str) -> Table:
    """One scenario in paragraphs. Raises UserError with the nearest names."""
    s = _found(name)
    drawn = Table.grid(padding=(0, 2), pad_edge=False)
    drawn.add_column(no_wrap=True)
    drawn.add_column(overflow="fold", max_width=88)
    drawn.add_row(plain(s.id, "bold"), plain(f"{s.name}: {s.title}", "bold"))
    for word, text in _paragraphs(s):
        drawn.add_row()
        drawn.add_row(plain(word), plain(text))
    return drawn


def _paragraphs(s: Scenario) -> list[tuple[str, str]]:
    told = [("broken", s.broken), ("to see", s.expect), ("why", s.why)]
    verdict = s.verdict if s.pages else f"{s.verdict}; {_NOBODY}"
    if s.hop != "none":
        verdict += f"; the hop is {s.hop}"
    told.append(("verdict", verdict))
    for near in s.confusable:
        other = SCENARIOS.get(near.scenario)
        name = near.scenario if other is None else f"{other.id} {other.name}"
        told.append(("not" if near is s.confusable[0] else "nor", f"{name}: {near.words}"))
    return [*told, ("try it", f"tailburn lab run {s.id} --out runs/{s.name}")]


def _found(name: str) -> Scenario:
    try:
        return scenario(name)
    except FaultError as error:
        raise UserError(str(error)) from None
