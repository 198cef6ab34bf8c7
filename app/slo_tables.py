"""The budgets of SLOs as rows and as a table."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.table import Table

from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import plain
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import DEFINITIONS, Slo, objectives
from tailburn.engine.slo.quantities import write_percent, write_time


def budget_rows(slo: Slo) -> Iterator[dict[str, Any]]:
    """One row per budget, with the version of its definition."""
    for objective in objectives(slo):
        yield {
            "slo": slo.name,
            "objective": objective.name,
            "budget_ratio": objective.budget_ratio,
            "threshold_s": objective.threshold_s,
            "window": str(slo.window),
            "by": list(slo.by),
            "definition": definition_of(slo, objective),
            "file": slo.place.file,
            "line": slo.place.line,
        }


def budget_table(slos: Sequence[Slo]) -> Table:
    """Every budget of every SLO: what is promised, what may be bad, over which window."""
    drawn = table(
        ["slo", "objective", "at", "by", "window", "definition"], ["within", "may be bad"]
    )
    for slo in slos:
        for objective in objectives(slo):
            within = objective.threshold_s
            cells = [
                slo.name,
                objective.name,
                "" if objective.clock is None else slo.vantage,
                ", ".join(slo.by),
                str(slo.window),
                definition_of(slo, objective),
                "" if within is None else write_time(within),
                write_percent(objective.budget_ratio),
            ]
            drawn.add_row(*map(plain, cells))
    return drawn


def clock_lines(slos: Iterable[Slo]) -> list[str]:
    """Where each clock of these SLOs starts and stops."""
    used = {(clock, slo.vantage): None for slo in slos for clock in slo.clocks}
    return [f"{clock}: {DEFINITIONS[clock].format(vantage=vantage)}" for clock, vantage in used]
