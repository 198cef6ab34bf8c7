"""`tailburn slo suggest` and `tailburn backtest`: SLOs from what was, and tried on it."""

from pathlib import Path
from typing import Annotated

import typer

from tailburn.app.options import (
    AsJson,
    Config,
    Force,
    Model,
    Output,
    Since,
    SloInput,
    SloPaths,
    StoreFolder,
    Until,
    Where,
)


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
    output: Output = Path("-"),
    force: Force = False,
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


def backtest(
    paths: SloPaths = None,
    also: SloInput = None,
    incidents: Annotated[
        Path | None,
        typer.Option(
            "--incidents",
            metavar="FILE",
            help="What happened, as CSV (start,end,name) or YAML: pages are then true or false.",
        ),
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option("--time-zone", metavar="ZONE", help="Of times in FILE that say none."),
    ] = None,
    grace: Annotated[
        str,
        typer.Option(metavar="TIME", help="So long after an incident a page may still be of it."),
    ] = "15m",
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw it, too: .svg or .png.")
    ] = None,
    store: StoreFolder = None,
    prometheus: Annotated[
        str | None,
        typer.Option(
            "--prometheus",
            metavar="URL",
            help="Read the SLOs' counters of that time out of this one, not out of a store.",
        ),
    ] = None,
    config: Config = None,
    since: Since = None,
    until: Until = None,
    json: AsJson = False,
) -> None:
    """Run the alerts of SLOs over a time that is past: what would have fired, when, until when.

    With incidents marked: precision, recall, delay, and false pages a week with their interval.

    tailburn backtest slo/ --since 14d --incidents incidents.csv --plot backtest.svg
    tailburn backtest slo/ --since 14d --prometheus http://localhost:9090
    """
    from tailburn.app.planning.backtest_command import Asked, answer

    named = [*(paths or ()), *(also or ())]
    source = (store, prometheus, config)
    answer(Asked(named, *source, since, until, incidents, time_zone, grace, plot, json))
