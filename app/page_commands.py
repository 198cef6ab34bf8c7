"""`tailburn page`: whether people would be told."""

from typing import Annotated

import typer

from tailburn.app.options import AsJson, Config, StoreFolder
from tailburn.app.standing_commands import ReadToken, ServiceUrl

page_app = typer.Typer(no_args_is_help=True)


@page_app.callback()
def page() -> None:
    """Whether people would be told of an incident."""


@page_app.command()
def test(
    ticket: Annotated[
        bool, typer.Option("--ticket", help="As grave as a ticket, not as a page.")
    ] = False,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Send a test page by each way of the settings, and say where it stopped; 1 if one did.

    It is over at once, so nobody has to close it.

    tailburn page test --config tailburn.toml
    """
    from tailburn.app.paging.trial import try_paging
    from tailburn.engine.slo.burn import Severity

    try_paging(config, Severity.TICKET if ticket else Severity.PAGE, json)


@page_app.command()
def who(
    url: ServiceUrl = None,
    token: ReadToken = None,
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Which of several services tells people, who stands by, and how complete their stores are.

    tailburn page who --config tailburn.toml
    """
    from tailburn.app.standing.incidents import Asked
    from tailburn.app.standing.pair import show_pair

    show_pair(Asked(store, config, url, token), json)
