"""Primary keys that hold `by`, the dimensions of a series and their values, as JSON.

PostgreSQL refuses index rows above 2.7 kB, and a value is as long as its sender makes it: there
the key is a unique index over the hash of `by`.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op


def make_keyed(table: str, key: tuple[str, ...], *columns: "sa.Column[Any]") -> None:
    """Make a table whose rows are told apart by `key`, of which `by` is the last."""
    if op.get_bind().dialect.name != "postgresql":
        op.create_table(table, *columns, sa.PrimaryKeyConstraint(*key, name=f"pk_{table}"))
        return
    op.create_table(table, *columns)
    op.create_index(f"uq_{table}", table, [*key[:-1], sa.text("md5(by)")], unique=True)
