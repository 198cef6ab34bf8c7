"""`tailburn slo explain` and `tailburn slo simulate`: what the alerts of an SLO would do."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailburn.app.options import AsJson, NeededSloPaths

if TYPE_CHECKING:
    from tailburn.engine.slo.course import Stretch
    from tailburn.engine.slo.model import Slo


def explain(
    paths: NeededSloPaths,
    at: Annotated[
        str,
        typer.Option("--at", metavar="SHARES", help="Shares of bad requests to tell times for."),
    ] = "1%,10%,100%",
    textbook: Annotated[
        bool,
        typer.Option("--textbook", help="The SRE workbook's own pairs, to set beside ours."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Say what each alert fires on, how soon, what is gone of the budget by then, how it ends.

    Times to fire and to end are given as `8.6m / 4.3m`, for a share of bad requests that sets in
    at once. Ends with 1 if no page can come within 10 minutes when all requests are bad.

    tailburn slo explain slo/chat.yaml --at 5%,50%
    """
    from tailburn.app.calculators import explain_text as text
    from tailburn.app.calculators.courses import shares_of
    from tailburn.app.calculators.explaining import burn_rows, explained, other_rows, refusals
    from tailburn.app.slo_files import load_slos
    from tailburn.app.terminal.output import json_lines, stderr, stdout
    from tailburn.app.terminal.text import harmless

    bad_ratios = shares_of("--at", at)
    refused: list[str] = []
    for slo in load_slos(paths):
        budgets = explained(slo, textbook)
        if json:
            json_lines(row for budget in budgets for row in burn_rows(budget, bad_ratios))
            json_lines(other_rows(slo, bad_ratios) if not textbook else ())
        else:
            for budget in budgets:
                _echo(text.heading(budget))
                stdout().print(text.burn_table(budget, bad_ratios))
                _echo([*text.sentences(budget), "", *text.plot(budget), ""])
            if not textbook:
                _tell_others(slo, bad_ratios)
        refused += [] if textbook else refusals(slo, budgets)
    for line in refused:
        stderr().print(harmless(line))
    if refused:
        raise typer.Exit(1)


def _tell_others(slo: "Slo", bad_ratios: Sequence[float]) -> None:
    """The alerts that rest on no budget's burn."""
    from tailburn.app.calculators.explain_text import others, others_table
    from tailburn.app.terminal.output import stdout

    told = list(others(slo))
    if not told:
        return
    typer.echo(f"{slo.name}, besides the burn of budgets")
    drawn = others_table(slo, bad_ratios)
    if drawn is not None:
        stdout().print(drawn)
    _echo([*told, ""])


def simulate(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="File or folder of SLOs, or - for standard input."),
    ],
    course: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SHARE:DURATION...]",
            help="Shares of bad requests, one after the other: 0.1%:1h 10%:20m. With requests "
            "per second where traffic changes: 10%:20m@50. Data that are missing: gap:5m.",
        ),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="The course as CSV instead: time,requests,bad."
        ),
    ] = None,
    slo: Annotated[
        str | None, typer.Option("--slo", metavar="NAME", help="Only the SLO of this name.")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option("--objective", metavar="NAME", help="Only this budget, such as ttft_p95."),
    ] = None,
    young: Annotated[
        bool,
        typer.Option("--young", help="A new service: nothing was counted before the course."),
    ] = False,
    series: Annotated[
        int,
        typer.Option(
            "--series",
            metavar="N",
            min=1,
            help="So many values of the SLO's `by` have requests: of each, more must be bad.",
        ),
    ] = 1,
    json: AsJson = False,
) -> None:
    """Run a course of bad requests against an SLO: which alerts fire when, what budget is left.

    Before the course all was well at the same traffic, and after it all is well again until the
    last alert has ended. A calendar window is taken as one that is full, at its end. Where so few
    requests are bad that it may be chance, an alert waits as its rule does, and that is said.

    tailburn slo simulate slo/chat.yaml 0.1%:1h 10%:20m
    """
    from tailburn.app.calculators import simulate_text as text
    from tailburn.app.calculators.simulating import chosen, rows_of, simulated
    from tailburn.app.slo_files import load_slos
    from tailburn.app.terminal.output import json_lines, stderr, stdout
    from tailburn.engine.slo.course import Course

    run = Course(_stretches(course or [], rows), is_young=young)
    for one in chosen(load_slos([path]), slo):
        for found in simulated(one, objective, run, series):
            if json:
                json_lines(rows_of(found))
                continue
            typer.echo(text.heading(found))
            if found.firings:
                stdout().print(text.firing_table(found))
            if len(found.firings) > text.SHOWN_FIRINGS:
                stderr().print(f"the first {text.SHOWN_FIRINGS}; all of them with --json")
            _echo([*text.budget_lines(found), "", *text.plot(found), ""])


def _stretches(course: Sequence[str], rows: Path | None) -> "list[Stretch]":
    from tailburn.app.calculators.course_files import course_of_file
    from tailburn.app.calculators.courses import stretches_of
    from tailburn.app.errors import UserError

    if bool(course) == (rows is not None):
        raise UserError("simulate takes a course such as 10%:20m, or --from FILE: one of them")
    return stretches_of(course) if rows is None else course_of_file(rows)


def _echo(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)
