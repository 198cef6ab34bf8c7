"""`tailburn slo suggest` and `tailburn backtest`: SLOs from what was, and tried on it."""

from pathlib import Path
from typing import Annotated

import typer

from tailburn.app.options import AsJson, Config, Model, Since, StoreFolder, Until, Where


def suggest(
    by: Annotated[
        str, typer.Option("--by", metavar="COLUMNS", help="A class for each of their values.")
    ] = "model,request_type",
    vantage: Annotated[
        str | None,
        typer.Option(
            help="Where the clocks start and stop: client, gateway or engine. Default: the "
            "outermost that most requests tell of."
        ),
    ] = None,
    headroom: Annotated[
        str, typer.Option(metavar="SHARE", help="So far above what was healthy.")
    ] = "10%",
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            "--except",
            metavar="FROM..TO",
            help="A time that was not healthy, such as 2026-12-01T09:00Z..2026-12-01T11:30Z; "
            "repeatable.",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|DIR|-",
            help="A file (*.yaml), a folder with a file for each SLO, or - for standard output.",
        ),
    ] = Path("-"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that are there already.")
    ] = False,
    store: StoreFolder = None,
    config: Config = None,
    since: Since = None,
    until: Until = None,
    model: Model = None,
    where: Where = None,
    json: AsJson = False,
) -> None:
    """Propose SLOs from a healthy time: thresholds a little above it, and what they would page.

    Ends with 1 where no class has enough requests and hours; says how many it takes.

    tailburn slo suggest --since 7d --by model,request_type -o slo/
    """
    from tailburn.app.planning.suggest_command import Asked, answer

    asked = Asked(store, config, since, until, model, where or (), leave_out or (), by, vantage)
    answer(asked, headroom, output, force=force, json=json)
