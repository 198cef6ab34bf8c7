"""Open the state database, bring its schema up to date, and hand out sessions."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from tailburn.engine.store.state.schema import StateError, migrate

BUSY_TIMEOUT_S: Final = 5.0
_LOCKED_S: Final = 0.02
_BEGIN: Final = "tailburn_begin"


def state_path(store: Path) -> Path:
    """Where the state database of a store's folder lies."""
    return store / "state.sqlite"


class State:
    """An open state database; safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self._reader = engine
        self._writer = engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One consistent view; sees every commit made before it began."""
        with Session(self._reader, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One transaction, alone among all writers; undone where the block raises.

        Waits up to `BUSY_TIMEOUT_S` for another writer, then raises OperationalError.
        """
        with Session(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        self._reader.dispose()


def open_state(path: Path) -> State:
    """Open or create the SQLite file at `path`, readable by its owner only, schema current.

    Raises StateError: not a database, no permission, or a schema newer than this version.
    """
    try:
        _make_private(path)
    except OSError as error:
        raise StateError(f"{path}: can't be opened: {error.strerror}") from error
    engine = _sqlite_engine(path)
    try:
        _migrate(engine, path)
    except DBAPIError as error:
        engine.dispose()
        raise StateError(f"{path}: {error.orig}") from error
    except StateError:
        engine.dispose()
        raise
    return State(engine)


def _migrate(engine: Engine, path: Path) -> None:
    # One writer at a time: of two that open a new file at once the second finds it done.
    with engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"}).begin() as connection:
        migrate(connection, str(path))


def _make_private(path: Path) -> None:
    """SQLite gives its side files the mode of the main one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _sqlite_engine(path: Path) -> Engine:
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S})
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(connection: sqlite3.Connection, record: object) -> None:
    connection.isolation_level = None  # `_on_begin` says when a transaction starts, also for DDL
    _log_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")  # what was answered survives a power cut
    connection.execute("PRAGMA foreign_keys = ON")


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Have a write-ahead log. Of those that begin one at once SQLite lets all but one fail."""
    give_up_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > give_up_s:
                raise
            time.sleep(_LOCKED_S)


def _on_begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))
