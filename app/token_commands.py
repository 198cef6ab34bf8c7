"""`tailburn token add|list|revoke`: the tokens of a store, also while it is served."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tailburn.app.access import DEFAULT_TENANT, issue
from tailburn.app.errors import UserError
from tailburn.app.settings import Settings
from tailburn.collector.doors.access import Scope
from tailburn.engine.store.state.database import open_state
from tailburn.engine.store.state.models import Token
from tailburn.engine.store.state.schema import StateError
from tailburn.engine.store.state.tokens import NameTaken, Tokens

STATE_FILE = "state.sqlite"

token_app = typer.Typer(
    help="Tokens: who may send to this service and read from it.",
    no_args_is_help=True,
)

Store = Annotated[
    Path, typer.Option("--store", envvar="TAILBURN_STORE", help="Folder of the store.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout.")]
STORE = Settings().store


@token_app.command()
def add(
    name: Annotated[str, typer.Argument(help="What the token is for, as `list` shows it.")],
    scope: Annotated[
        list[Scope],
        typer.Option(
            help="ingest: send. read: pages, API, /metrics. respond: acknowledge, silence, "
            "add a change. admin: all of them. May be given more than once."
        ),
    ],
    tenant: Annotated[str, typer.Option(help="Whose data this token sends and sees.")] = (
        DEFAULT_TENANT
    ),
    store: Store = STORE,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, once: it is kept only as a hash."""
    issued = issue(name, tenant, scope, time.time_ns())
    with _tokens(store) as tokens:
        tokens.add(issued.token)
    if as_json:
        _print_json({**_fields(issued.token), "token": issued.secret})
        return
    typer.echo(issued.secret)
    typer.echo(
        f"Shown this once. Send it as the header `Authorization: Bearer <token>`; for an "
        f"OpenTelemetry SDK OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer%20<token>'. "
        f"To take it back: tailburn token revoke {name}",
        err=True,
    )


@token_app.command(name="list")
def list_(store: Store = STORE, as_json: AsJson = False) -> None:
    """List all tokens, revoked ones too; secrets can't be shown again."""
    with _tokens(store) as tokens:
        rows = tokens.all()
    if as_json:
        for row in rows:
            _print_json(_fields(row))
    elif rows:
        Console().print(_table(rows))
    else:
        typer.echo("No tokens: only processes on this machine are served.", err=True)


@token_app.command()
def revoke(
    token: Annotated[str, typer.Argument(help="The token's id or name, as `list` shows them.")],
    store: Store = STORE,
    as_json: AsJson = False,
) -> None:
    """Take a token back; a running service refuses it within a second."""
    with _tokens(store) as tokens:
        revoked = tokens.revoke(token, time.time_ns())
    if revoked is None:
        raise UserError(f"no live token has the id or name {token!r}; see `tailburn token list`")
    if as_json:
        _print_json(_fields(revoked))
    else:
        typer.echo(f"Revoked {revoked.name} ({revoked.id}).", err=True)


@contextmanager
def _tokens(store: Path) -> Iterator[Tokens]:
    try:
        state = open_state(store / STATE_FILE)
    except StateError as error:
        raise UserError(str(error)) from error
    try:
        yield Tokens(state)
    except NameTaken as error:
        raise UserError(str(error)) from error
    finally:
        state.close()


def _fields(token: Token) -> dict[str, object]:
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


def _table(rows: list[Token]) -> Table:
    table = Table("id", "name", "tenant", "scopes", "created", "last used", "revoked")
    for row in rows:
        times = (row.created_ns, row.last_used_ns, row.revoked_ns)
        style = "dim" if row.revoked_ns is not None else None
        table.add_row(row.id, row.name, row.tenant, row.scopes, *map(_shown, times), style=style)
    return table


def _shown(time_ns: int | None) -> str:
    if time_ns is None:
        return "-"
    return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _print_json(fields: dict[str, object]) -> None:
    typer.echo(json.dumps(fields))
