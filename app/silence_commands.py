"""`tailburn silences`: what nobody is told of for a time."""

from typing import Annotated

import typer

from tailburn.app.incident_commands import RespondToken, Who
from tailburn.app.options import AsJson, Config, StoreFolder
from tailburn.app.standing_commands import ServiceUrl

silences_app = typer.Typer()

Matchers = Annotated[
    list[str],
    typer.Argument(
        metavar="MATCHER...",
        help="NAME=VALUE, NAME!=VALUE, NAME=~REGEX or NAME!~REGEX, of labels of alerts: slo, "
        "objective, severity, alertname, team, model and the like. All have to match.",
    ),
]


@silences_app.callback(invoke_without_command=True)
def standing(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Also those that have ended.")] = False,
    url: ServiceUrl = None,
    token: RespondToken = None,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """What nobody is told of, until when, and why: maintenance, and what is known.

    tailburn silences --store var/tailburn
    """
    if context.invoked_subcommand is not None:
        return
    from tailburn.app.standing.incidents import Asked
    from tailburn.app.standing.silences import show_silences

    show_silences(Asked(store, config, url, token), every, json)


@silences_app.command()
def add(
    matchers: Matchers,
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long, such as 2h.")
    ] = "2h",
    begins_in: Annotated[
        str | None, typer.Option("--in", metavar="TIME", help="When it begins. Default: now.")
    ] = None,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="For whoever wonders.")] = "",
    who: Who = None,
    url: ServiceUrl = None,
    token: RespondToken = None,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Have nobody told of what matches, for a time; what is still open then is told.

    tailburn silences add model=llama --for 2h --why "driver update" --store var/tailburn

    tailburn silences add 'slo=~chat.*' severity=ticket --in 8h --for 4h
    """
    from tailburn.app.standing.incidents import Asked
    from tailburn.app.standing.silences import add_silence

    add_silence(Asked(store, config, url, token), matchers, lasts, begins_in, who, why, json)


@silences_app.command()
def end(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="Of the silence.", min=1)],
    url: ServiceUrl = None,
    token: RespondToken = None,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """End a silence now; what it held back is told.

    tailburn silences end 3 --store var/tailburn
    """
    from tailburn.app.standing.incidents import Asked
    from tailburn.app.standing.silences import end_silence

    end_silence(Asked(store, config, url, token), number, json)
