"""Rows that may be there already: the same words in both databases, by way of two dialects."""

from sqlalchemy import ColumnElement, Table, func
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session


def upsert(session: Session, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An insert that knows `on_conflict_do_update` and `on_conflict_do_nothing`."""
    return postgresql.insert(table) if _is_postgres(session) else sqlite.insert(table)


def key_of(session: Session, table: Table) -> list[ColumnElement[str]]:
    """What tells its rows apart; `by` may be too long for an index of PostgreSQL."""
    is_postgres = _is_postgres(session)
    return [
        func.md5(column) if is_postgres and column.name == "by" else column
        for column in table.primary_key
    ]


def _is_postgres(session: Session) -> bool:
    return session.get_bind().dialect.name == "postgresql"
