"""`tailburn lab`: a fleet on paper that tells of itself as a real one does, broken on purpose."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tailburn.app.options import AsJson

lab_app = typer.Typer(
    help="The wind tunnel: a simulated fleet that sends what real stacks send, with faults set "
    "at their cause.",
    no_args_is_help=True,
)

_PANEL_RUN = "The run"
_PANEL_FAULT = "The fault"
_PANEL_TARGET = "Where it goes"


class SeverityName(StrEnum):
    """How strong a fault is."""

    WEAK = "weak"
    MEDIUM = "medium"
    STRONG = "strong"


@lab_app.command("list")
def list_(json: AsJson = False) -> None:
    """Every scenario: the faults S1 to S35, and what is no fault, N1 to N6.

    tailburn lab list
    """
    from tailburn.app.terminal.output import draw, json_lines
    from tailburn.app.wind_tunnel.words import scenario_rows, scenarios_table

    if json:
        json_lines(scenario_rows())
    else:
        draw(scenarios_table())


@lab_app.command()
def explain(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Its id or its name.")],
    json: AsJson = False,
) -> None:
    """What is broken, what one should see and why, and what looks much the same.

    tailburn lab explain S23
    """
    from tailburn.app.terminal.output import json_lines, stdout
    from tailburn.app.wind_tunnel.words import explained, explanation_row

    if json:
        json_lines([explanation_row(scenario)])
    else:
        stdout().print(explained(scenario))


@lab_app.command()
def run(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENARIO...",
            help="Ids or names, one or several at once; none: a fleet that is well.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="URL",
            help="Send to this OTLP/HTTP address.",
            rich_help_panel=_PANEL_TARGET,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write bodies, scrapes and truth into a new folder.",
            rich_help_panel=_PANEL_TARGET,
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            "--truth",
            metavar="DIR",
            help="Where the truth goes. Default: DIR/truth of --out, else var/lab/truth.",
            rich_help_panel=_PANEL_TARGET,
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="TAILBURN_TOKEN",
            help="Token to send with --to.",
            rich_help_panel=_PANEL_TARGET,
        ),
    ] = None,
    collector: Annotated[
        str,
        typer.Option(
            "--collector",
            metavar="TIME",
            help="An OpenTelemetry Collector in between that gathers bodies so long; 0s: none.",
            rich_help_panel=_PANEL_TARGET,
        ),
    ] = "0s",
    metrics_port: Annotated[
        int,
        typer.Option(
            "--metrics-port",
            metavar="PORT",
            min=0,
            max=65_535,
            help="With --live: serves /metrics of every target. 0 takes a free port.",
            rich_help_panel=_PANEL_TARGET,
        ),
    ] = 9_500,
    rate: Annotated[
        float,
        typer.Option(
            "--rate",
            metavar="PER_S",
            help="Requests a second, the mean of a week.",
            rich_help_panel=_PANEL_RUN,
        ),
    ] = 10.0,
    services: Annotated[
        int,
        typer.Option(
            "--services",
            min=1,
            max=2,
            help="2: code completion beside it, at the same gateways, half as often asked.",
            rich_help_panel=_PANEL_RUN,
        ),
    ] = 1,
    past_rate: Annotated[
        float | None,
        typer.Option(
            "--past-rate",
            metavar="PER_S",
            help="With --live: the rate of the past up to its last hour, to have it sooner.",
            rich_help_panel=_PANEL_RUN,
        ),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(
            "--hours",
            metavar="H",
            help="How long it is. With --live: how much lies before now, as fast as it is taken. "
            "Default: 1, live 0.",
            rich_help_panel=_PANEL_RUN,
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Go on in real time, until Ctrl-C.", rich_help_panel=_PANEL_RUN
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            metavar="N",
            min=0,
            help="The same seed gives the same requests.",
            rich_help_panel=_PANEL_RUN,
        ),
    ] = 1,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="NAME|FILE",
            help="Who asks: azure-code and the like, or requests or rates of your own (CSV, "
            "Parquet). Default: the scenario's.",
            rich_help_panel=_PANEL_RUN,
        ),
    ] = None,
    stack: Annotated[
        list[str] | None,
        typer.Option(
            "--stack",
            metavar="HOP=STACK",
            help="Which product stands at a hop, such as engine=sglang; repeatable.",
            rich_help_panel=_PANEL_RUN,
        ),
    ] = None,
    epoch: Annotated[
        str | None,
        typer.Option(
            "--epoch",
            metavar="TIME",
            help="When the run begins, such as 2026-11-30T00:00Z. Default: so that it ends now.",
            rich_help_panel=_PANEL_RUN,
        ),
    ] = None,
    severity: Annotated[
        SeverityName,
        typer.Option("--severity", help="How strong the fault is.", rich_help_panel=_PANEL_FAULT),
    ] = SeverityName.MEDIUM,
    begin: Annotated[
        str | None,
        typer.Option(
            "--begin",
            metavar="TIME",
            help="When the fault begins, into the run; live: after now, -10m before it. "
            "Default: at half of the run; live: 2m.",
            rich_help_panel=_PANEL_FAULT,
        ),
    ] = None,
    lasts: Annotated[
        str | None,
        typer.Option(
            "--lasts",
            metavar="TIME",
            help="How long. Default: a quarter of the run; live: 20m.",
            rich_help_panel=_PANEL_FAULT,
        ),
    ] = None,
    ramp: Annotated[
        str,
        typer.Option(
            "--ramp",
            metavar="TIME",
            help="How long it grows, where it can.",
            rich_help_panel=_PANEL_FAULT,
        ),
    ] = "0s",
    json: AsJson = False,
) -> None:
    """Run a fleet with faults, send what it tells, and write the truth apart from it.

    A service must go by the lab's clock: tailburn serve --clock telemetry

    tailburn lab run S8 --hours 2 --out runs/slow-memory

    tailburn lab run S1 S15 --severity strong --to http://127.0.0.1:4318

    tailburn lab run --live --hours 24 --rate 5 --to http://127.0.0.1:4318
    """
    from tailburn.app.wind_tunnel.asked import Asked
    from tailburn.app.wind_tunnel.running import run_lab

    run_lab(
        Asked.of(
            scenarios or (), severity=severity.value, rate=rate, hours=hours, live=live, seed=seed,
            workload=workload, stacks=stack or (), epoch=epoch, begin=begin, lasts=lasts,
            ramp=ramp, to=to, out=out, truth=truth, token=token, collector=collector,
            metrics_port=metrics_port, services=services, past_rate=past_rate,
        ),
        json,
    )  # fmt: skip
