"""`tailburn incidents`: what belongs together, who is on it, and what became of it."""

from typing import Annotated, Final

import typer

from tailburn.app.options import AsJson, Config, Since, StoreFolder
from tailburn.app.standing_commands import ServiceUrl

incidents_app = typer.Typer()

Number = Annotated[int, typer.Argument(metavar="NUMBER", help="Of the incident.", min=1)]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="Why, or what was seen.")]
RespondToken = Annotated[
    str | None,
    typer.Option(
        "--token", envvar="TAILBURN_TOKEN", help="Token for --url: read, or respond to act."
    ),
]
Who = Annotated[
    str | None,
    typer.Option("--who", envvar="USER", help="Who does it.", show_default="your user's name"),
]


@incidents_app.callback(invoke_without_command=True)
def standing(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Also those that are resolved.")] = False,
    since: Since = None,
    url: ServiceUrl = None,
    token: RespondToken = None,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Alerts that belong together: how each incident stands, since when, and who is on it.

    tailburn incidents --store var/tailburn

    tailburn incidents --url http://localhost:9464 --all --since 7d
    """
    if context.invoked_subcommand is not None:
        return
    from tailburn.app.standing.incidents import Asked, show_incidents

    show_incidents(Asked(store, config, url, token), every, since, json)


@incidents_app.command()
def show(
    number: Number,
    url: ServiceUrl = None,
    token: RespondToken = None,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """One incident: its alerts, its timeline, and who was told by which way.

    tailburn incidents show 3 --store var/tailburn
    """
    from tailburn.app.standing.incidents import Asked, show_incident

    show_incident(Asked(store, config, url, token), number, json)


_LIFE: Final = {
    "ack": """Say that somebody is on it; who does becomes its owner, where it has none.

    tailburn incidents ack 3 --who ada --store var/tailburn
    """,
    "mitigate": """Say that it hurts nobody any more, though it is not mended.

    tailburn incidents mitigate 3 "drained node-3" --store var/tailburn
    """,
    "resolve": """Say that it is over. What fires again within 30 minutes opens it again.

    tailburn incidents resolve 3 "rolled back" --store var/tailburn
    """,
    "reopen": """Say that it is not over after all; it is told again.

    tailburn incidents reopen 3 "it is back" --store var/tailburn
    """,
}


def _add_life(action: str, told: str) -> None:
    """A command that says where an incident stands."""

    def command(
        number: Number,
        text: Text = "",
        who: Who = None,
        url: ServiceUrl = None,
        token: RespondToken = None,
        store: StoreFolder = None,
        config: Config = None,
        json: AsJson = False,
    ) -> None:
        from tailburn.app.standing.incidents import Asked, act

        act(Asked(store, config, url, token), number, action, who, text, json)

    incidents_app.command(action, help=told)(command)


for _action, _told in _LIFE.items():
    _add_life(_action, _told)


@incidents_app.command()
def own(
    number: Number,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who owns it from now on.")],
    who: Who = None,
    url: ServiceUrl = None,
    token: RespondToken = None,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Give it to somebody.

    tailburn incidents own 3 grace --store var/tailburn
    """
    from tailburn.app.standing.incidents import Asked, act

    act(Asked(store, config, url, token), number, "own", who, name, json)


@incidents_app.command()
def note(
    number: Number,
    text: Text,
    who: Who = None,
    url: ServiceUrl = None,
    token: RespondToken = None,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Add a line to its timeline.

    tailburn incidents note 3 "the new gateway holds streams" --store var/tailburn
    """
    from tailburn.app.standing.incidents import Asked, act

    act(Asked(store, config, url, token), number, "note", who, text, json)
