"""`tailburn hops check` and `tailburn hops explain`: the rules by which spans become hops."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from tailburn.app.options import AsJson, Config, StoreFolder

hops_app = typer.Typer()


@hops_app.command()
def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Rules of yours, read in this order.")
    ],
    json: AsJson = False,
) -> None:
    """Say all that is wrong with files of rules, with file and line; ends with 1 if anything is.

    tailburn hops check our-hops.yaml
    """
    from tailburn.app.terminal.output import json_lines
    from tailburn.app.terminal.text import harmless
    from tailburn.collector.hops.check import check_files

    checked = check_files(files)
    if json:
        json_lines(map(asdict, checked.problems))
    else:
        for problem in checked.problems:
            typer.echo(harmless(str(problem)))
    if checked.problems:
        raise typer.Exit(1)
    if not json:
        also = f", {checked.steps} steps of dimensions" if checked.steps else ""
        typer.echo(f"ok, {checked.rules} rules{also}")


@hops_app.command()
def explain(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TRACE_OR_FILE",
            help="A trace id in the store; a folder of recorded bodies; or a file of OTLP: "
            "JSON, JSON lines or protobuf, compressed or not.",
        ),
    ],
    rules: Annotated[
        list[Path] | None,
        typer.Option(
            "--rules", metavar="FILE", help="Rules of yours, besides the configured; repeatable."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--every", help="Each span, not one of each kind.")
    ] = False,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Show for each span which rule matched and why, and what no rule knows.

    tailburn hops explain recorded/ --rules our-hops.yaml
    """
    from tailburn.app.explaining import (
        TRACE_ID,
        as_rows,
        explain_bodies,
        recorded_bodies,
        stored_body,
        told,
    )
    from tailburn.app.opening import store_of
    from tailburn.app.parts import rules_of
    from tailburn.app.settings_sources import load_settings
    from tailburn.app.terminal.output import json_lines

    settings = load_settings({"store": store}, config)
    files = (*(rules or ()), *settings.hops_files)
    known = rules_of(replace(settings, hops_files=files))
    if TRACE_ID.fullmatch(what) and not Path(what).exists():
        bodies = iter([(what, stored_body(store_of(settings), what))])
    else:
        bodies = recorded_bodies([Path(what)])
    spans = explain_bodies(known, bodies)
    if json:
        json_lines(as_rows(spans))
    else:
        for line in told(spans, every):
            typer.echo(line)
