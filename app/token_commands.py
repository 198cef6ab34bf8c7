"""`tailburn token add|list|revoke`: the tokens of a store, also while it is served."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailburn.app.options import AsJson, Config, StoreFolder
from tailburn.collector.doors.access import Scope

if TYPE_CHECKING:
    from rich.table import Table

    from tailburn.engine.store.state.models import Token
    from tailburn.engine.store.state.tokens import Tokens

token_app = typer.Typer(
    help="Tokens: who may send to this service and read from it.",
    no_args_is_help=True,
)


@token_app.command()
def add(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What it is for, as `list` shows it.")
    ],
    scope: Annotated[
        list[Scope],
        typer.Option(
            metavar="SCOPE",
            help="ingest: send. read: pages, API, /metrics. respond: acknowledge, silence, "
            "add a change. admin: all of these. May be given more than once.",
        ),
    ],
    tenant: Annotated[
        str, typer.Option(metavar="NAME", help="Whose data it sends and sees.")
    ] = "default",
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Make a token and print it, once: it is kept only as a hash.

    tailburn token add gateway --scope ingest
    """
    from tailburn.app.access import issue
    from tailburn.app.terminal.output import json_lines, stderr

    issued = issue(name, tenant, scope, time.time_ns())
    with _tokens(store, config) as tokens:
        tokens.add(issued.token)
    if json:
        json_lines([{**_fields(issued.token), "token": issued.secret}])
        return
    typer.echo(issued.secret)
    stderr().print(
        "Shown this once. Send it as the header `Authorization: Bearer <token>`; an OpenTelemetry "
        "SDK takes OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer%20<token>'. "
        f"To take it back: tailburn token revoke {name}"
    )


@token_app.command(name="list")
def list_(store: StoreFolder = None, config: Config = None, json: AsJson = False) -> None:
    """List all tokens, revoked ones too; secrets can't be shown again.

    tailburn token list --json
    """
    from tailburn.app.terminal.output import json_lines, stderr, stdout

    with _tokens(store, config) as tokens:
        rows = tokens.all()
    if json:
        json_lines(map(_fields, rows))
    elif rows:
        stdout().print(_table(rows))
    else:
        stderr().print("No tokens: only processes on this machine are served.")


@token_app.command()
def revoke(
    token: Annotated[
        str, typer.Argument(metavar="ID_OR_NAME", help="As `list` shows them.", show_default=False)
    ],
    store: StoreFolder = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Take a token back; a running service refuses it within a second.

    tailburn token revoke gateway
    """
    from tailburn.app.errors import UserError
    from tailburn.app.terminal.output import json_lines, stderr

    with _tokens(store, config) as tokens:
        revoked = tokens.revoke(token, time.time_ns())
    if revoked is None:
        raise UserError(f"no live token has the id or name {token!r}; see `tailburn token list`")
    if json:
        json_lines([_fields(revoked)])
    else:
        stderr().print(f"Revoked {revoked.name} ({revoked.id}).")


@contextmanager
def _tokens(store: Path | None, config: Path | None) -> Iterator["Tokens"]:
    from tailburn.app.errors import UserError
    from tailburn.app.settings_sources import load_settings
    from tailburn.app.state import opened_state
    from tailburn.engine.store.state.tokens import NameTaken, Tokens

    with opened_state(load_settings({"store": store}, config)) as state:
        try:
            yield Tokens(state)
        except NameTaken as error:
            raise UserError(str(error)) from error


def _fields(token: "Token") -> dict[str, Any]:
    """A token without its hash, for JSON."""
    return {
        "id": token.id,
        "name": token.name,
        "tenant": token.tenant,
        "scopes": token.scopes.split(),
        "created_ns": token.created_ns,
        "last_used_ns": token.last_used_ns,
        "revoked_ns": token.revoked_ns,
    }


def _table(rows: list["Token"]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("id", "name", "tenant", "scopes", "created", "last used", "revoked"):
        table.add_column(name, no_wrap=name in ("id", "created"))
    for row in rows:
        times = (row.created_ns, row.last_used_ns, row.revoked_ns)
        style = "dim" if row.revoked_ns is not None else None
        table.add_row(row.id, row.name, row.tenant, row.scopes, *map(_shown, times), style=style)
    return table


def _shown(time_ns: int | None) -> str:
    if time_ns is None:
        return "-"
    return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%MZ")
