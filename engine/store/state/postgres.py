"""The state in a PostgreSQL database: its engine, and what a transaction is there.

Everything that a transaction needs is said at its begin and ends with it, so a pooler between,
which gives each transaction another connection, does no harm.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, create_engine, event, text

from tailburn.engine.store.state.address import Postgres
from tailburn.engine.store.state.models import SHARED_TABLES
from tailburn.engine.store.state.patience import (
    BUSY_TIMEOUT_S,
    CONNECT_S,
    IDLE_S,
    OWN,
    SHARED,
    SHARED_IDLE_S,
    SILENT_S,
    STATEMENT_S,
    WRITES,
)

T = TypeVar("T")

KEPT_OPEN: Final = 2
MOST_OPEN: Final = 8

_CONNECT: Final = {
    "connect_timeout": CONNECT_S,
    "application_name": "tailburn",
    "keepalives_idle": 5,  # s; a host that is gone is found within ten
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # ms
    "prepare_threshold": None,  # a statement prepared before a migration may fail after it
}


class BoundedConnection(psycopg.Connection[Any]):
    """Gives up a server that is stopped, or a network that swallows, after `SILENT_S`."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        try:
            return super().wait(gen, interval, SILENT_S if timeout is None else timeout)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()  # an answer that comes later must not be taken for another's
            raise


def postgres_engine(place: Postgres) -> Engine:
    """Connects to nothing yet."""
    engine = create_engine(
        place.url.set(drivername="postgresql+psycopg"),
        connect_args={k: v for k, v in _CONNECT.items() if k not in place.url.query},
        pool_size=KEPT_OPEN,
        max_overflow=MOST_OPEN - KEPT_OPEN,
        pool_timeout=BUSY_TIMEOUT_S,
        pool_pre_ping=True,  # a server that was away and is back costs no error
        execution_options={"schema_translate_map": {SHARED_TABLES: place.shared or place.schema}},
    )
    shared = [schema for schema in (place.schema, place.shared) if schema]
    begins = {
        None: _reads(place.schema),
        OWN: _writes(place.schema, [place.schema], IDLE_S),
        SHARED: _writes(place.schema, shared, SHARED_IDLE_S),
    }

    @event.listens_for(engine, "do_connect")
    def connect(dialect: object, record: object, given: Any, named: Any) -> BoundedConnection:
        return BoundedConnection.connect(*given, **named)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql(begins[writes]).close()

    return engine


def make_schema(connection: Connection, schema: str) -> None:
    """Where it is not there: an owner of the database may have made it for a user who can't."""
    if connection.scalar(text("SELECT to_regnamespace(:name)"), {"name": schema}) is None:
        connection.exec_driver_sql(f'CREATE SCHEMA "{schema}"')


def _reads(schema: str) -> str:
    limits = _limits(schema, IDLE_S)
    return f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; {limits}"


def _writes(schema: str, locked: Sequence[str], idle_s: float) -> str:
    """Of writers of several schemas each locks its own first, so none waits for another's."""
    # Whatever was committed while it waited for the lock is seen: no snapshot is older than that.
    locks = "".join(f"; SELECT pg_advisory_xact_lock({_lock_of(each)})" for each in locked)
    limits = _limits(schema, idle_s)
    return f"SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE; {limits}{locks}"


def _limits(schema: str, idle_s: float) -> str:
    return (
        f'SET LOCAL search_path TO "{schema}"; '
        f"SET LOCAL lock_timeout = {_ms(BUSY_TIMEOUT_S)}; "
        f"SET LOCAL statement_timeout = {_ms(STATEMENT_S)}; "
        f"SET LOCAL idle_in_transaction_session_timeout = {_ms(idle_s)}"
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _lock_of(schema: str) -> int:
    """Writers of one state share it, and no others do."""
    return int.from_bytes(hashlib.sha256(schema.encode()).digest()[:8], signed=True)
