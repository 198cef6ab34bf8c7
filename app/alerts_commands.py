"""`tailburn alerts`: how alerts stand; who is told of them, and how it reads."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tailburn.app.options import AsJson, Config, SloInput, SloPaths, StoreFolder
from tailburn.app.standing_commands import ReadToken, ServiceUrl

alerts_app = typer.Typer()

_WAYS = (
    "[TEAM=]WAY, where WAY is pagerduty, opsgenie, slack[:CHANNEL], email:ADDRESS, webhook:URL "
    "or receiver:NAME, one of --into; repeatable."
)


@alerts_app.callback(invoke_without_command=True)
def standing(
    context: typer.Context,
    every: Annotated[
        bool, typer.Option("--all", help="Also those that are not in trouble.")
    ] = False,
    url: ServiceUrl = None,
    token: ReadToken = None,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """The state of each alert, since when, and why; and what Alertmanager needs.

    tailburn alerts --store var/tailburn

    tailburn alerts --url http://localhost:9464 --all
    """
    if context.invoked_subcommand is not None:
        return
    from tailburn.app.standing.alerts import show_alerts

    show_alerts(store, config, url, token, every, json)


@alerts_app.command()
def routes(
    paths: SloPaths = None,
    inputs: SloInput = None,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="FILE|-", help="The configuration; templates go beside it."
        ),
    ] = "-",
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A configuration of yours, in which ours is put; the rest stays as it is.",
        ),
    ] = None,
    page: Annotated[
        list[str] | None,
        typer.Option(metavar="WAY", help=f"Where pages go: {_WAYS} Default: pagerduty."),
    ] = None,
    ticket: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WAY", help="Where tickets go, written as for --page. Default: slack."
        ),
    ] = None,
    secrets: Annotated[
        str,
        typer.Option(metavar="DIR", help="Folder from which Alertmanager reads keys and URLs."),
    ] = "/etc/alertmanager/secrets",
    smarthost: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The mail server, where --into names none.")
    ] = "",
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; end with 1 if FILE is out of date."),
    ] = False,
) -> None:
    """Write an Alertmanager configuration: routes, inhibition, receivers, all for the alerts
    of these SLOs alone. What amtool refuses is not written.

    tailburn alerts routes slo/ --out alertmanager.yml --page pagerduty --ticket slack:#llm
    """
    from tailburn.app import alerts_files
    from tailburn.app.errors import UserError
    from tailburn.app.slo_files import load_given

    if check and out == "-":
        raise UserError("--check compares with a file: name it with --out FILE")
    ways = alerts_files.deliveries(page or [], ticket or [])
    slos = load_given(paths, inputs)
    files = alerts_files.render(slos, ways, into, secrets, smarthost, out)
    if check:
        found = alerts_files.differing(files)
        for line in found:
            typer.echo(line)
        if found:
            raise typer.Exit(1)
    elif out == "-":
        sys.stdout.write(files[Path("-")])
    else:
        alerts_files.write(files)
        for file in alerts_files.secrets_wanted(ways, secrets):
            typer.echo(f"Alertmanager reads a key or URL of yours from {file}", err=True)


@alerts_app.command()
def check(
    config: Annotated[
        Path, typer.Argument(metavar="FILE", help="Configuration of an Alertmanager.")
    ],
    paths: SloPaths = None,
    inputs: SloInput = None,
) -> None:
    """Ask amtool where each alert of the SLOs goes; ends with 1 if one goes past its route.

    tailburn alerts check alertmanager.yml slo/
    """
    from tailburn.app import alerts_files
    from tailburn.app.slo_files import load_given

    slos = load_given(paths, inputs)
    strays = 0
    for arrival in alerts_files.arrivals(config, slos):
        typer.echo(str(arrival))
        strays += arrival.is_stray
    if strays:
        typer.echo(f"{strays} go past our routes: run tailburn alerts routes --into", err=True)
        raise typer.Exit(1)


@alerts_app.command()
def template() -> None:
    """Print the message templates, which belong beside the configuration as tailburn.tmpl.

    tailburn alerts template
    """
    from tailburn.alerts.alertmanager.template import template as text

    sys.stdout.write(text())
