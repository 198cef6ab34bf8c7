"""`tailburn slo`: files of SLOs begun, checked, taken from other tools and given to them."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailburn.app.options import AsJson

if TYPE_CHECKING:
    from tailburn.engine.problems import Problem
    from tailburn.engine.slo.model import Slo

slo_app = typer.Typer(
    help="Files of SLOs: begun, checked, explained, taken from other tools and given to them.",
    no_args_is_help=True,
)

SloPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="Files of SLOs, folders of them (*.yaml, *.yml), or - for standard input.",
    ),
]


@slo_app.command()
def check(paths: SloPaths, json: AsJson = False) -> None:
    """Say all that is wrong with files of SLOs, with file and line; ends with 2 if anything is."""
    from tailburn.app.errors import UserError
    from tailburn.app.slo_files import check_slos, told
    from tailburn.app.slo_tables import budget_rows, budget_table, clock_lines
    from tailburn.app.terminal.output import json_lines, stderr, stdout

    slos, problems = check_slos(paths)
    if problems and not json:
        raise UserError(*map(told, problems))
    if problems:
        json_lines(map(_problem, problems))
        raise typer.Exit(2)
    if json:
        json_lines(row for slo in slos for row in budget_rows(slo))
        return
    answer = stdout()
    answer.print(budget_table(slos))
    for line in clock_lines(slos):
        answer.print(line)
    stderr().print(f"ok, {_counted(slos)}")


@slo_app.command()
def schema() -> None:
    """Print the JSON Schema of a file of SLOs, for editors that complete and check as you type."""
    import json

    from tailburn.engine.slo.schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


def _counted(slos: "Iterable[Slo]") -> str:
    from tailburn.engine.slo.model import objectives

    found = list(slos)
    budgets = sum(len(objectives(slo)) for slo in found)
    return f"{len(found):,} SLOs with {budgets:,} budgets"


def _problem(problem: "Problem") -> dict[str, Any]:
    return {
        "file": problem.file,
        "line": problem.line,
        "field": problem.field,
        "given": problem.given,
        "wanted": problem.wanted,
    }
