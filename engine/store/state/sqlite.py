"""The state in an SQLite file: its engine, and what a transaction is there."""

import os
import sqlite3
import time
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine, create_engine, event

from tailburn.engine.store.state.models import SHARED_TABLES
from tailburn.engine.store.state.patience import BUSY_TIMEOUT_S, WRITES
from tailburn.engine.store.state.schema import StateError

_LOCKED_S: Final = 0.02


def sqlite_engine(path: Path) -> Engine:
    """Of a file that is made where there is none. Raises StateError where it can't be opened."""
    try:
        _make_private(path)
    except OSError as error:
        raise StateError(f"{path}: can't be opened: {error.strerror}") from error
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(
        url,
        connect_args={"timeout": BUSY_TIMEOUT_S},
        execution_options={"schema_translate_map": {SHARED_TABLES: None}},
    )
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _make_private(path: Path) -> None:
    """SQLite gives its side files the mode of the main one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


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
    writes = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
