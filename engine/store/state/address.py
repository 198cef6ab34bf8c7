"""A store's own part of a PostgreSQL database: its address, and the schema that is this store's.

What the state tells (up to which minute alerts were evaluated, which series were shown, who holds
a token) is true of one store, so each store has a schema of its own in the database. Its name
comes from an id in the store's folder: it goes where the folder goes, and two services that were
given the very same settings, as a standby is, can't mix up theirs. A setting would have to differ
where all others are the same.
"""

import contextlib
import os
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tailburn.engine.store.state.schema import StateError

ID_FILE: Final = "state-id"
"""In the folder of a store whose state is elsewhere. Who copies the folder leaves it behind."""

_SCHEMES: Final = frozenset({"postgresql", "postgres"})
_ID: Final = re.compile(r"[0-9a-f]{12}")
_WANTED: Final = "want postgresql://USER@HOST:PORT/DATABASE"


@dataclass(frozen=True)
class Postgres:
    """Shown without password and options."""

    url: URL = field(repr=False)
    schema: str
    shared: str = ""
    """The schema of what several services have together; empty: there are no others."""

    def __str__(self) -> str:
        url = self.url
        user = f"{url.username}@" if url.username else ""
        port = f":{url.port}" if url.port else ""
        return f"postgresql://{user}{_host(url)}{port}/{url.database}"


def parse_address(text: str) -> URL:
    """Raises ValueError, which says what is wanted and nothing of what was given."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ValueError(_WANTED) from None
    if url.drivername not in _SCHEMES or not url.database:
        raise ValueError(_WANTED)
    return url


def shared_schema(pair: str) -> str:
    """Of the services that say the same name."""
    return f"tailburn_pair_{pair}"


def new_schema(folder: Path) -> str:
    """The name of a store's schema; gives the store an id where it has none."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = folder / f".{ID_FILE}-{secrets.token_hex(4)}"
    made.write_text(secrets.token_hex(6) + "\n")
    try:
        with contextlib.suppress(FileExistsError):  # of two that begin at once the first has it
            os.link(made, folder / ID_FILE)
    finally:
        made.unlink()
    return schema_in(folder)


def schema_in(folder: Path) -> str:
    """Raises StateError for a file that holds no id, FileNotFoundError where there is none."""
    found = (folder / ID_FILE).read_text("utf-8", "replace").strip()
    if _ID.fullmatch(found) is None:
        raise StateError(f"{folder / ID_FILE}: holds no id; restore it, or remove it to begin anew")
    return f"tailburn_{found}"


def _host(url: URL) -> str:
    given = url.host or url.query.get("host") or ""
    return given if isinstance(given, str) else ",".join(given)
