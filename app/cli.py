"""The command line. Each command imports what it needs when it runs: `--help` is quick."""

import gc
import os
from pathlib import Path
from typing import Annotated

import typer

from tailburn.app.alerts_commands import alerts_app
from tailburn.app.calculator_commands import explain, simulate
from tailburn.app.change_commands import change_app
from tailburn.app.hops_commands import hops_app
from tailburn.app.incident_commands import incidents_app
from tailburn.app.lab_commands import SeverityName, lab_app
from tailburn.app.options import (
    Ago,
    AsJson,
    Config,
    Model,
    Since,
    StoreFolder,
    Until,
    Where,
    with_settings,
)
from tailburn.app.page_commands import page_app
from tailburn.app.planning_commands import backtest, suggest
from tailburn.app.rules_commands import rules_app
from tailburn.app.rules_proof_commands import check_rules, test_rules
from tailburn.app.rules_scaling_commands import scaling as scaling_rules
from tailburn.app.signals_commands import signals_app
from tailburn.app.silence_commands import silences_app
from tailburn.app.slo_commands import slo_app
from tailburn.app.standing_commands import baselines, budget, scaling
from tailburn.app.token_commands import token_app

cli = typer.Typer(
    name="tailburn",
    help="Tail latency and SLO burn-rate alerting for LLM inference serving.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
cli.add_typer(token_app, name="token")
cli.add_typer(hops_app, name="hops")
cli.add_typer(rules_app, name="rules")
cli.add_typer(slo_app, name="slo")
cli.add_typer(alerts_app, name="alerts")
cli.add_typer(incidents_app, name="incidents")
cli.add_typer(page_app, name="page")
cli.add_typer(silences_app, name="silences")
cli.add_typer(change_app, name="change")
cli.add_typer(signals_app, name="signals")
cli.add_typer(lab_app, name="lab")
rules_app.command("check")(check_rules)
rules_app.command("test")(test_rules)
rules_app.command("scaling")(scaling_rules)
cli.command()(budget)
cli.command()(baselines)
cli.command()(scaling)
slo_app.command()(explain)
slo_app.command()(simulate)
slo_app.command()(suggest)
cli.command()(backtest)


@cli.command()
@with_settings
def serve(config: Config = None, **flags: object) -> None:
    """Take telemetry in and serve metrics, health and the API, until SIGTERM.

    tailburn serve --store var/tailburn --slo slo/
    """
    gc.disable()  # all that is imported stays: looking for garbage in it delays the start
    from tailburn.app.serve import serve_until_told
    from tailburn.app.settings_sources import load_settings

    gc.freeze()
    gc.enable()
    serve_until_told(load_settings(flags, config))


@cli.command()
def replay(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Folders of recorded bodies; OTLP files: JSON, JSON lines, protobuf, .gz, .zst.",
        ),
    ],
    store: StoreFolder = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="URL", help="Send to this OTLP/HTTP address, times shifted."),
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option("--speed", metavar="X", help="Keep the recorded pace, X times as fast."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="TAILBURN_TOKEN", help="Token to send with --to."),
    ] = None,
    config: Config = None,
) -> None:
    """Take recorded telemetry in, at the receive times it was recorded with.

    tailburn replay recorded/ --store var/tailburn

    tailburn replay recorded/ --to http://localhost:4318 --speed 10
    """
    from tailburn.app.errors import UserError
    from tailburn.app.replay.commands import replay_into, replay_to
    from tailburn.app.settings_sources import load_settings

    if to is not None and store is not None:
        raise UserError("replay takes --store or --to, not both")
    if to is not None:
        replay_to(paths, to, speed, token)
    else:
        replay_into(paths, load_settings({"store": store}, config), speed)


@cli.command()
def demo(
    fault: Annotated[
        str,
        typer.Option(
            "--fault",
            metavar="SCENARIO",
            help="What breaks, by id or name (tailburn lab list); none: nothing.",
        ),
    ] = "S23",
    severity: Annotated[
        SeverityName, typer.Option("--severity", help="How far.")
    ] = SeverityName.STRONG,
    capture: Annotated[
        bool,
        typer.Option("--capture", help="Only the recorded run of a real vLLM, served."),
    ] = False,
    recorded: Annotated[
        bool,
        typer.Option("--recorded/--no-recorded", help="Show that run first, shortly."),
    ] = True,
    hours: Annotated[
        float,
        typer.Option("--hours", metavar="H", min=0.25, max=720, help="How long its past is."),
    ] = 25.0,
    store: StoreFolder = None,
    config: Config = None,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Delete what an earlier demo left in the folder.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Serve a simulated fleet: a day that is well, then a fault, then real time.

    tailburn demo --fault S1 --store var/demo --afresh

    tailburn demo --capture --store var/demo --afresh
    """
    from tailburn.app.settings_sources import load_settings

    settings = load_settings({"store": store}, config)
    if capture:
        from tailburn.app.demo.captured import serve_capture

        serve_capture(settings, afresh)
    else:
        # The lab is a process of its own; gRPC, once loaded, would remark on the fork.
        os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
        from tailburn.app.demo.fleet import Story, serve_story

        serve_story(settings, Story(fault, severity.value, hours, recorded, json), afresh)


@cli.command()
def tails(
    by: Annotated[
        str,
        typer.Option("--by", metavar="COLUMNS", help="Group by these, such as model,replica."),
    ] = "",
    exact: Annotated[
        bool, typer.Option("--exact", help="From the requests themselves: slower, no error.")
    ] = False,
    store: StoreFolder = None,
    config: Config = None,
    since: Since = None,
    until: Until = None,
    model: Model = None,
    where: Where = None,
    json: AsJson = False,
) -> None:
    """Quantiles of every clock, with their error.

    tailburn tails --since 1h --by model,replica
    """
    from tailburn.app.reading import Reader

    Reader(store, config, since, until, model, where, json).tails(by, exact)


@cli.command()
def requests(
    store: StoreFolder = None,
    config: Config = None,
    since: Since = None,
    until: Until = None,
    model: Model = None,
    where: Where = None,
    json: AsJson = False,
) -> None:
    """One row per request, oldest first.

    tailburn requests --since 15m --where outcome=error --json
    """
    from tailburn.app.reading import Reader

    Reader(store, config, since, until, model, where, json).requests()


@hops_app.callback(invoke_without_command=True)
def hops(
    context: typer.Context,
    slowest: Annotated[
        str | None,
        typer.Option(
            "--slowest",
            metavar="SHARE",
            help="Set this share, such as 5%, against the rest: which hop owns the excess.",
        ),
    ] = None,
    store: StoreFolder = None,
    config: Config = None,
    since: Since = None,
    until: Until = None,
    model: Model = None,
    where: Where = None,
    json: AsJson = False,
) -> None:
    """Where the time went, hop by hop; and the rules that recognise hops.

    tailburn hops --since 15m --slowest 5%
    """
    if context.invoked_subcommand is not None:
        return
    from tailburn.app.reading import Reader

    Reader(store, config, since, until, model, where, json).hops(slowest)


@cli.command()
def compare(
    ago: Ago = "24h",
    slowest: Annotated[
        str,
        typer.Option("--slowest", metavar="SHARE", help="The band: this share, the slowest."),
    ] = "5%",
    threshold: Annotated[
        str | None,
        typer.Option(
            "--threshold",
            metavar="TIME",
            help="Also deal out to hops the requests whose first token took longer.",
        ),
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            "--objective", metavar="SHARE", help="Of the requests are to be within --threshold."
        ),
    ] = "95%",
    store: StoreFolder = None,
    config: Config = None,
    since: Since = "15m",
    until: Until = None,
    model: Model = None,
    where: Where = None,
    json: AsJson = False,
) -> None:
    """Set the slow requests against those of a day before: other requests, or slower hops?

    The change of their mean is split into a mix effect and one for each hop, to the nanosecond.

    tailburn compare --since 15m --ago 24h --threshold 500ms
    """
    from tailburn.app.reading import Reader

    Reader(store, config, since, until, model, where, json).compare(
        ago, slowest, threshold, objective
    )


@cli.command()
def clients(
    ago: Ago = "24h",
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="What names the caller, such as tenant. "
            "Default: client, tenant or service, the first that is told.",
        ),
    ] = None,
    store: StoreFolder = None,
    config: Config = None,
    since: Since = "1h",
    until: Until = None,
    model: Model = None,
    where: Where = None,
    json: AsJson = False,
) -> None:
    """What each client asks for: streaming, limits, retries, giving up; and what changed.

    tailburn clients --since 1h --ago 24h --by tenant
    """
    from tailburn.app.reading import Reader

    Reader(store, config, since, until, model, where, json).clients(ago, by)


@cli.command()
def trace(
    trace_id: Annotated[str, typer.Argument(metavar="ID", help="Trace id or request id, in hex.")],
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """A trace as a waterfall of hops, with each request's breakdown below.

    tailburn trace 4bf92f3577b34da6a3ce929d0e0e4736
    """
    from tailburn.app.reading import Reader

    Reader(store, config, None, None, None, None, json).trace(trace_id)


@cli.command()
def balance(store: StoreFolder = None, config: Config = None, json: AsJson = False) -> None:
    """Every span received, and what became of it, per resource.

    tailburn balance --store var/tailburn
    """
    from tailburn.app.reading import Reader

    Reader(store, config, None, None, None, None, json).balance()


@cli.command()
@with_settings
def doctor(config: Config = None, json: AsJson = False, **flags: object) -> None:
    """Look at ports, disk, clock, permissions and what arrives; say what to do.

    tailburn doctor --store var/tailburn
    """
    from tailburn.app.doctor.examine import examine
    from tailburn.app.settings_sources import load_settings

    examine(load_settings(flags, config), json)
