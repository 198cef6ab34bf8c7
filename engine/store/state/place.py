"""Where the state of a store lies: in a file of its folder, or in a PostgreSQL database."""

from pathlib import Path
from typing import Final

from sqlalchemy import URL

from tailburn.engine.store.state.address import (
    ID_FILE,
    Postgres,
    new_schema,
    parse_address,
    schema_in,
    shared_schema,
)
from tailburn.engine.store.state.database import state_path
from tailburn.engine.store.state.schema import StateError

_NOT_BEGUN: Final = "tailburn_none"


def place_of(store: Path, url: str = "", pair: str = "") -> Path | Postgres:
    """The file where `url` is empty; a store without an id gets one. Raises StateError.

    `pair`: the name of what it shares with another service; only in a database.
    """
    if not url:
        return state_path(store)
    address = _parsed(url)
    try:
        own = schema_in(store) if _has_id(store) else new_schema(store)
        return Postgres(address, own, shared_schema(pair) if pair else "")
    except OSError as error:
        raise StateError(f"{store / ID_FILE}: can't be opened: {error.strerror}") from error


def is_begun(store: Path, url: str = "") -> bool:
    """Whether a service, or a command that writes, was ever there with these settings."""
    return _has_id(store) if url else state_path(store).exists()


def place_to_look_at(store: Path, url: str = "") -> Path | Postgres:
    """As `place_of`, and nothing is made: a schema that there is not stands for none yet."""
    if not url or _has_id(store):
        return place_of(store, url)
    return Postgres(_parsed(url), _NOT_BEGUN)


def _has_id(store: Path) -> bool:
    return (store / ID_FILE).exists()


def _parsed(url: str) -> URL:
    try:
        return parse_address(url)
    except ValueError as error:
        raise StateError(f"state_url: {error}") from None
