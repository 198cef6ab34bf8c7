"""The options that several commands share, and the settings as options of `serve`."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer

from tailburn.app.settings import TABLE, Row

StoreFolder = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="DIR", help="Folder of the store.", show_default="var/tailburn"
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="File of settings. Default: tailburn.toml, if there."
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="From here on, by receive time: 15m, 1h, 7d ago, or 2026-12-01T17:14:00Z. "
        "Default: all.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Up to here, written as --since."),
]
Model = Annotated[str | None, typer.Option("--model", help="Only this model.")]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="KEY=VALUE", help="Only where a column is this; repeatable."),
]
Ago = Annotated[
    str,
    typer.Option("--ago", metavar="TIME", help="Against the same window so long before."),
]
_SLO_PATHS: Any = typer.Argument(
    metavar="PATH...",
    help="Files of SLOs, folders of them (.yaml, .yml), or - for standard input.",
    show_default=False,
)
SloPaths = Annotated[list[Path] | None, _SLO_PATHS]
NeededSloPaths = Annotated[list[Path], _SLO_PATHS]
SloInput = Annotated[
    list[Path] | None,
    typer.Option("--input", "-i", metavar="PATH", help="The same; repeatable."),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE|DIR|-",
        help="A file (*.yaml), a folder with a file for each SLO, or - for standard output.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object a line on standard output, nothing else.")
]

BASELINE_BY: Final = "model,request_type,replica"
BASELINE_CLOCKS: Final = "ttft,tpot,e2e"
BASELINE_OVER: Final = "15m"


Command = TypeVar("Command", bound=Callable[..., None])


def with_settings(command: Command) -> Command:
    """Give a command that takes `**flags` an option for every setting."""
    own = [
        p
        for p in inspect.signature(command).parameters.values()
        if p.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    flags = [_parameter(row) for row in TABLE]
    command.__signature__ = inspect.Signature([*own, *flags])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*own, *flags)}
    return command


def _parameter(row: Row) -> inspect.Parameter:
    option = typer.Option(
        f"{row.flag}/--no-{row.flag[2:]}" if row.is_switch else row.flag,
        metavar=None if row.is_switch else row.metavar,
        help=row.help + (f" Default: {row.shown_default}." if row.shown_default else ""),
        rich_help_panel=row.topic,
    )
    kind: Any = bool | None if row.is_switch else list[str] | None if row.is_list else str | None
    return inspect.Parameter(
        row.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
    )
