"""`tailburn slo`: files of SLOs begun, checked, taken from other tools and given to them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailburn.app.options import AsJson, Force, NeededSloPaths, Output
from tailburn.app.slo_presets import Preset, preset_text

if TYPE_CHECKING:
    from tailburn.engine.problems import Problem
    from tailburn.engine.slo.model import Slo

slo_app = typer.Typer(
    help="Files of SLOs: begun, checked, explained, taken from other tools and given to them.",
    no_args_is_help=True,
)


@slo_app.command()
def init(
    preset: Annotated[
        Preset,
        typer.Option(
            help="chat: first token and pace. completion: first token and end, for answers of a "
            "few tokens. document: end and evenness. batch: done by a time."
        ),
    ] = Preset.CHAT,
    name: Annotated[
        str | None, typer.Option(help="What the SLO is called. Default: as the preset.")
    ] = None,
    output: Output = Path("-"),
    force: Force = False,
) -> None:
    """Write a first, commented file, with usual figures for one kind of serving.

    tailburn slo init --preset chat --output slo/chat.yaml
    """
    from tailburn.app.errors import UserError
    from tailburn.app.slo_files import told, write_documents
    from tailburn.engine.slo.parse import parse

    called = preset if name is None else name
    text = preset_text(preset, called)
    problems = parse([("--name", text)]).problems
    if problems:
        raise UserError(*(told(p).partition(": ")[2] for p in problems))
    _say_written(write_documents(output, [(called, text)], replace=force))


@slo_app.command()
def check(paths: NeededSloPaths, json: AsJson = False) -> None:
    """Say all that is wrong with files of SLOs, with file and line; ends with 2 if anything is.

    tailburn slo check slo/
    """
    from tailburn.app.errors import UserError
    from tailburn.app.slo_files import check_slos, told
    from tailburn.app.slo_tables import budget_rows, budget_table, clock_lines
    from tailburn.app.terminal.output import json_lines, stderr, stdout

    slos, problems = check_slos(paths)
    if problems and not json:
        raise UserError(*map(told, problems))
    if problems:
        json_lines(map(asdict, problems))
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
    """Print the JSON Schema of a file of SLOs, for editors that complete and check as you type.

    tailburn slo schema
    """
    from tailburn.app.slo_files import schema_text

    typer.echo(schema_text(), nl=False)


@slo_app.command(name="import")
def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Files of Sloth (prometheus/v1, sloth.slok.dev/v1) or OpenSLO (openslo/v1, "
            "v1alpha), folders of them, or - for standard input.",
        ),
    ],
    output: Output = Path("-"),
    window: Annotated[
        str, typer.Option(metavar="TIME", help="The budgets' window, where a file says none.")
    ] = "30d",
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 1 if anything could not be carried over.")
    ] = False,
    force: Force = False,
) -> None:
    """Make SLOs of Sloth or OpenSLO ours; what can't be carried over is listed on stderr.

    tailburn slo import sloth/ --output slo/
    """
    from tailburn.app.errors import UserError
    from tailburn.app.slo_files import read_texts, told, write_documents
    from tailburn.engine.slo.exchange.importing import import_slos
    from tailburn.engine.slo.quantities import read_time_s

    if read_time_s(window) is None:
        raise UserError(f"--window {window}: want a number and its unit, such as 30d")
    texts, unread = read_texts(paths)
    made = import_slos(texts, window)
    if problems := (*unread, *made.problems):
        raise UserError(*map(told, problems))
    _say_lost(made.lost)
    if not made.texts:
        raise UserError("no SLO could be carried over")
    _say_written(write_documents(output, made.texts, replace=force))
    if strict and made.lost:
        raise typer.Exit(1)


@slo_app.command()
def export(
    paths: NeededSloPaths,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE|-", help="Default: standard output.")
    ] = Path("-"),
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 1 if OpenSLO can't say something.")
    ] = False,
) -> None:
    """Write SLOs as OpenSLO v1, one for each budget; what it can't say is listed on stderr.

    tailburn slo export slo/ --output openslo.yaml
    """
    from tailburn.app.slo_files import load_slos, write_whole
    from tailburn.app.slo_queries import queries_of
    from tailburn.engine.slo.exchange.openslo_writing import export_openslo

    exported = export_openslo(load_slos(paths), queries_of)
    _say_lost(exported.lost)
    if str(output) == "-":
        typer.echo(exported.text, nl=False)
    else:
        write_whole(output, exported.text)
        _say_written((output,))
    if strict and exported.lost:
        raise typer.Exit(1)


def _say_written(files: Sequence[Path]) -> None:
    from tailburn.app.terminal.output import stderr

    for file in files:
        stderr().print(f"wrote {file}")


def _say_lost(lost: "Sequence[Problem]") -> None:
    from tailburn.app.slo_files import told
    from tailburn.app.terminal.output import stderr

    console = stderr()
    for problem in lost:
        console.print(told(problem))
    if lost:
        console.print(f"not carried over as they were: {len(lost):,} values")


def _counted(slos: "Iterable[Slo]") -> str:
    from tailburn.engine.slo.model import objectives

    found = list(slos)
    budgets = sum(len(objectives(slo)) for slo in found)
    return f"SLOs: {len(found):,}, budgets: {budgets:,}"
