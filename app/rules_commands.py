"""`tailburn rules generate` and `tailburn rules diff`: SLOs become Prometheus rules."""

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from tailburn.app.options import AsJson, SloInput, SloPaths

rules_app = typer.Typer(
    help="Rules: an SLO becomes recording and alerting rules for Prometheus.",
    no_args_is_help=True,
)


class Format(StrEnum):
    """Who reads the rules."""

    PROMETHEUS = "prometheus"
    OPERATOR = "operator"
    MIMIR = "mimir"


class CompatWith(StrEnum):
    """Whose series and labels are written too."""

    SLOTH = "sloth"


@rules_app.command()
def generate(
    paths: SloPaths = None,
    inputs: SloInput = None,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="DIR|-", help="Folder, a file for each SLO; - for one stream."
        ),
    ] = "-",
    form: Annotated[
        Format,
        typer.Option("--format", help="A file of rules, a PrometheusRule object, a namespace."),
    ] = Format.PROMETHEUS,
    compat: Annotated[
        CompatWith | None,
        typer.Option(
            "--compat", help="Write Sloth's series and labels too: its dashboards go on working."
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; end with 1 if the folder is out of date."),
    ] = False,
) -> None:
    """Write the rules of SLOs; the same SLOs give the same bytes.

    tailburn rules generate slo/ --out rules/
    """
    from tailburn.app import rules_files
    from tailburn.app.errors import UserError
    from tailburn.app.slo_files import load_given

    slos = load_given(paths, inputs)
    chosen: Literal["sloth"] | None = "sloth" if compat is CompatWith.SLOTH else None
    if out == "-":
        if check:
            raise UserError("--check compares with a folder: name it with --out DIR")
        sys.stdout.write(rules_files.rendered_as_one(slos, form, chosen))
        return
    folder, files = Path(out), rules_files.render(slos, form, chosen)
    if check:
        found = rules_files.differing(files, folder)
        for line in found:
            typer.echo(line)
        if found:
            raise typer.Exit(1)
        return
    rules_files.write(files, folder)
    for file in files:
        typer.echo(f"wrote {folder / file.name}", err=True)
    for path in rules_files.left_over(files, folder):
        typer.echo(f"{path}: its SLO is gone; delete it", err=True)


@rules_app.command()
def itself(
    job: Annotated[
        str, typer.Option("--job", help="The label `job` that its scrape has.")
    ] = "tailburn",
    form: Annotated[
        Format,
        typer.Option("--format", help="A file of rules, a PrometheusRule object, a namespace."),
    ] = Format.PROMETHEUS,
) -> None:
    """Write the rules by which a Prometheus looks at the service itself: down, stalled, silent.

    TailburnWatchdog fires always, for a receiver outside that pages where it ends.

    tailburn rules itself --job tailburn
    """
    from tailburn.rules.formats import FORMATS
    from tailburn.rules.watching import watching

    sys.stdout.write(FORMATS[form]("tailburn-itself", (watching(job),)))


@rules_app.command()
def diff(
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="Rules in use: a file, a folder, or -.")
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Rules to be, given in the same way.")],
    json: AsJson = False,
) -> None:
    """Compare two sets of rules by meaning, warn of lost history; ends with 1 if they differ.

    tailburn rules diff rules/ new-rules/
    """
    from tailburn.app.rules_files import read_rules
    from tailburn.app.terminal.output import json_lines
    from tailburn.app.terminal.text import harmless
    from tailburn.rules.comparing.difference import differences

    found = differences(read_rules(_source(old)), read_rules(_source(new)))
    if json:
        json_lines(asdict(difference) for difference in found)
    else:
        for difference in found:
            typer.echo(harmless(f"{difference.change}: {difference.rule}"))
            for sign, text in (("-", difference.old), ("+", difference.new)):
                for line in text.splitlines():
                    typer.echo(harmless(f"  {sign} {line}"))
            if difference.warning:
                typer.echo(harmless(f"  warning: {difference.warning}"))
    if found:
        raise typer.Exit(1)


def _source(given: str) -> Path | Literal["-"]:
    return "-" if given == "-" else Path(given)
