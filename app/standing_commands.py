"""`tailburn budget` and the options by which a running service is asked instead of a store."""

from typing import Annotated

import typer

from tailburn.app.options import AsJson, Config, StoreFolder, Until

ServiceUrl = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Ask the web port of a running service, such as http://localhost:9464.",
    ),
]
ReadToken = Annotated[
    str | None,
    typer.Option("--token", envvar="TAILBURN_TOKEN", help="Token of scope read, for --url."),
]
OneSlo = Annotated[str | None, typer.Option("--slo", metavar="NAME", help="Only this SLO.")]


def budget(
    slo: OneSlo = None,
    url: ServiceUrl = None,
    token: ReadToken = None,
    store: StoreFolder = None,
    config: Config = None,
    until: Until = None,
    json: AsJson = False,
) -> None:
    """What is left of each budget, how fast it burns, and when it is gone at that rate.

    Budgets are those of the settings' SLOs, or those that a service ran with last on the store.

    tailburn budget --store var/tailburn --slo chat

    tailburn budget --url http://localhost:9464 --json
    """
    from tailburn.app.standing.budgets import show_budgets

    show_budgets(store, config, url, token, slo, until, json)
