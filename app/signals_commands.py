"""`tailburn signals`: what engines, gateways and hosts tell in their metrics, and what not."""

from pathlib import Path
from typing import Annotated

import typer

from tailburn.app.options import AsJson, Config

signals_app = typer.Typer(
    help="What engines, gateways, GPUs and hosts tell in their metrics, and what not."
)

SignalFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--signals", metavar="FILE", help="Names of yours, besides the configured; repeatable."
    ),
]


@signals_app.command()
def check(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TARGET]...",
            help="HOST:PORT, a URL, or a file with a saved answer of /metrics. "
            "Default: the targets of the settings.",
        ),
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            "--file", metavar="FILE", help="Targets in the form of Prometheus' file_sd; repeatable."
        ),
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(
            "--prometheus", metavar="URL", help="All targets that this Prometheus has metrics of."
        ),
    ] = None,
    signals: SignalFiles = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also what no program at the target ever tells.")
    ] = False,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Say per target which signals are found, under which name, and what is blind without the rest.

    Ends with 1 where a target can't be read or something that the walk needs is missing.

    tailburn signals check localhost:8000 --all
    """
    from tailburn.app.settings_sources import load_settings
    from tailburn.app.signals_checking import Asked, check_targets

    asked = Asked(targets or (), file or (), prometheus, signals or ())
    if not check_targets(load_settings({}, config), asked, every, json):
        raise typer.Exit(1)


@signals_app.command("list")
def list_signals(
    signals: SignalFiles = None,
    sources: Annotated[
        bool, typer.Option("--sources", help="Each program's own names, one a line.")
    ] = False,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """List every signal: its unit, who tells it, and what is blind without it.

    tailburn signals list --sources
    """
    from tailburn.app.settings_sources import load_settings
    from tailburn.app.signals_listing import list_all, list_sources

    settings = load_settings({}, config)
    (list_sources if sources else list_all)(settings, signals or (), json)
