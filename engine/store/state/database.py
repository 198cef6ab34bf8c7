"""Open the state database, bring its schema up to date, and hand out sessions."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from tailburn.engine.store.state.address import Postgres
from tailburn.engine.store.state.patience import OWN, SHARED, WRITES
from tailburn.engine.store.state.schema import StateError, current_version, migrate
from tailburn.engine.store.state.sqlite import sqlite_engine


def state_path(store: Path) -> Path:
    """Where the state database of a store's folder lies."""
    return store / "state.sqlite"


class State:
    """An open state database; safe to share between threads.

    What goes wrong between here and it is a `DBAPIError`, in both kinds of database. A server that
    went away and came back is found again by whoever asks next.
    """

    def __init__(self, engine: Engine) -> None:
        self._reader = engine
        self._writer = engine.execution_options(**{WRITES: OWN})
        self._shared_writer = engine.execution_options(**{WRITES: SHARED})

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One consistent view; sees every commit made before it began."""
        with _session(self._reader) as session:
            yield session

    @contextmanager
    def writing(self, *, shared: bool = False) -> Iterator[Session]:
        """One transaction, alone among all writers; undone where the block raises.

        `shared`: it writes to a `SharedBase` table, which other services may write to as well.
        Waits up to `BUSY_TIMEOUT_S` for another writer, then raises OperationalError. Where a
        server goes away while it commits, nobody can tell from that error whether it did.
        """
        with _session(self._shared_writer if shared else self._writer) as session:
            yield session

    def close(self) -> None:
        self._reader.dispose()


def open_state(place: Path | Postgres) -> State:
    """Open or create the SQLite file at a path, readable by its owner only; or a schema.

    The tables are current then, those that are shared with others as well. Raises StateError: not
    a database, no permission, no answer, or a schema newer than this version.
    """
    if isinstance(place, Postgres) and place.shared:
        open_state(replace(place, schema=place.shared, shared="")).close()
    engine = _engine(place)
    try:
        _migrate(engine, place)
    except DBAPIError as error:
        engine.dispose()
        raise StateError(f"{place}: {reason_of(error)}") from error
    except StateError:
        engine.dispose()
        raise
    return State(engine)


def version_at(place: Path | Postgres) -> str | None:
    """The migration that a database has, changing nothing; None: none yet.

    A file has to be there. Raises StateError.
    """
    engine = _engine(place)
    try:
        with engine.begin() as connection:
            return current_version(connection)
    except DBAPIError as error:
        raise StateError(f"{place}: {reason_of(error)}") from error
    finally:
        engine.dispose()


def reason_of(error: DBAPIError) -> str:
    """In one line, without the statement."""
    return " ".join(str(error.orig).split())


@contextmanager
def _session(engine: Engine) -> Iterator[Session]:
    try:
        with Session(engine, expire_on_commit=False) as session, session.begin():
            yield session
    except PoolTimeout as error:
        raise OperationalError("connect", None, error) from error


def _engine(place: Path | Postgres) -> Engine:
    if isinstance(place, Path):
        return sqlite_engine(place)
    try:  # its driver is an extra, and delays a start
        from tailburn.engine.store.state.postgres import postgres_engine
    except ImportError as error:
        raise StateError(
            f"{place}: PostgreSQL needs a driver that is not installed ({error}); "
            "pip install 'tailburn[postgres]'"
        ) from None
    return postgres_engine(place)


def _migrate(engine: Engine, place: Path | Postgres) -> None:
    # One writer at a time: of two that open a new place at once the second finds it done.
    with engine.execution_options(**{WRITES: OWN}).begin() as connection:
        if isinstance(place, Postgres):
            from tailburn.engine.store.state.postgres import make_schema

            make_schema(connection, place.schema)
        migrate(connection, str(place))
