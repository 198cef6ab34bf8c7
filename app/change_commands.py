"""`tailburn change`: what was done to the fleet, beside its tail."""

from typing import Annotated

import typer

from tailburn.app.incident_commands import RespondToken, Who
from tailburn.app.options import AsJson, Config, Since, StoreFolder, Until, Where
from tailburn.app.standing_commands import ServiceUrl

change_app = typer.Typer(no_args_is_help=True)


@change_app.callback()
def change() -> None:
    """Deploys, config, drivers, restarts: what was done to the fleet, beside its tail."""


@change_app.command()
def add(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="deploy, config, driver, firmware, restart, scale or other."
        ),
    ],
    what: Annotated[str, typer.Argument(metavar="WHAT", help="What changed, such as vllm.")],
    new: Annotated[str, typer.Option("--new", metavar="TEXT", help="What it is now.")] = "",
    old: Annotated[str, typer.Option("--old", metavar="TEXT", help="What it was.")] = "",
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="KEY=VALUE", help="What it touches; repeatable."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="When, written as --since. Default: now."),
    ] = None,
    link: Annotated[
        str, typer.Option("--link", metavar="URL", help="To the pipeline, or the pull request.")
    ] = "",
    who: Who = None,
    url: ServiceUrl = None,
    token: RespondToken = None,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Tell of a change: pages of what burns soon after name it. Told twice, it is one.

    tailburn change add deploy vllm --old 0.32.0 --new 0.33.0 --where model=llama

    tailburn change add config gateway --new "buffering on" --url http://localhost:9464
    """
    from tailburn.app.standing.changes import Telling, add_change
    from tailburn.app.standing.incidents import Asked

    told = Telling(kind, what, old, new, where or (), at, link, who or "")
    add_change(Asked(store, config, url, token), told, json)


@change_app.command("list")
def list_(
    since: Since = None,
    until: Until = None,
    where: Where = None,
    url: ServiceUrl = None,
    token: RespondToken = None,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """What was done to the fleet, and when.

    tailburn change list --since 7d --where model=llama --store var/tailburn
    """
    from tailburn.app.standing.changes import list_changes
    from tailburn.app.standing.incidents import Asked

    list_changes(Asked(store, config, url, token), since, until, where or (), json)
