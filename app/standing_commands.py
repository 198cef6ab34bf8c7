"""`tailburn budget`, `baselines` and `scaling`, and how a service is asked instead of a store."""

from typing import Annotated

import typer

from tailburn.app.options import (
    BASELINE_BY,
    BASELINE_CLOCKS,
    BASELINE_OVER,
    AsJson,
    Config,
    Model,
    StoreFolder,
    Until,
    Where,
)

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


def baselines(
    by: Annotated[
        str,
        typer.Option("--by", metavar="COLUMNS", help="What tells series apart."),
    ] = BASELINE_BY,
    clock: Annotated[
        str,
        typer.Option(
            "--clock", metavar="NAMES", help="Such as ttft, or ttft_gateway_s for one vantage."
        ),
    ] = BASELINE_CLOCKS,
    over: Annotated[
        str,
        typer.Option("--over", metavar="TIME", help="How long the present is, up to --until."),
    ] = BASELINE_OVER,
    url: ServiceUrl = None,
    token: ReadToken = None,
    store: StoreFolder = None,
    config: Config = None,
    until: Until = None,
    model: Model = None,
    where: Where = None,
    json: AsJson = False,
) -> None:
    """The tail now against this hour of the days before, and deadlines at the load there is.

    With what each baseline rests on, and how much longer it takes where there is none yet.

    tailburn baselines --store var/tailburn --by model,replica --clock ttft

    tailburn baselines --url http://localhost:9464 --model llama --json
    """
    from tailburn.app.standing.baselines import Options, show_baselines

    options = Options(by, clock, over, until, model, where or ())
    show_baselines(store, config, url, token, options, json)


def scaling(
    url: Annotated[
        str,
        typer.Option("--url", metavar="URL", help="The web port of a running service."),
    ] = "http://localhost:9464",
    token: ReadToken = None,
    slo: OneSlo = None,
    json: AsJson = False,
) -> None:
    """What a running service tells autoscalers: each signal's value, since when, and why.

    tailburn scaling --url http://localhost:9464 --slo chat
    """
    from tailburn.app.standing.scaling import show_scaling

    show_scaling(url, token, slo, json)
