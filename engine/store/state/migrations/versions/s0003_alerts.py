"""Versions of SLOs, states of alerts and their changes, and up to which minute they are known."""

import sqlalchemy as sa
from alembic import op

from tailburn.engine.store.state.migrations.keys import make_keyed

revision = "0003"
down_revision = "0002"

_ALERT = ("alertname", "slo", "objective", "severity", "long", "short", "by")
_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # whose Integer has 64 bits


def upgrade() -> None:
    op.create_table(
        "slo_versions",
        sa.Column("slo", sa.String(128), nullable=False),
        sa.Column("objective", sa.String(64), nullable=False),
        sa.Column("definition", sa.String(16), nullable=False),
        sa.Column("document", sa.String, nullable=False),
        sa.Column("first_seen_ns", sa.BigInteger, nullable=False),
        sa.Column("retired_ns", sa.BigInteger),
        sa.PrimaryKeyConstraint("slo", "objective", "definition", name="pk_slo_versions"),
    )
    make_keyed(
        "alert_states",
        _ALERT,
        *_alert_columns(),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("since_ns", sa.BigInteger, nullable=False),
        sa.Column("active_since_ns", sa.BigInteger, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("why", sa.String, nullable=False),
    )
    op.create_table(
        "alert_flips",
        sa.Column("id", _SERIAL, nullable=False),
        *_alert_columns(),
        sa.Column("old", sa.String(16), nullable=False),
        sa.Column("new", sa.String(16), nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("delivered_ns", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_alert_flips"),
    )
    op.create_index("ix_alert_flips_at_ns", "alert_flips", ["at_ns"])
    undelivered = sa.text("delivered_ns IS NULL")
    op.create_index(
        "ix_alert_flips_undelivered",
        "alert_flips",
        ["id"],
        sqlite_where=undelivered,
        postgresql_where=undelivered,
    )
    op.create_table(
        "evaluated",
        sa.Column("what", sa.String(16), nullable=False),
        sa.Column("minute_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("what", name="pk_evaluated"),
    )
    op.create_table(
        "covered",
        sa.Column("begin_ns", sa.BigInteger, nullable=False),
        sa.Column("end_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("begin_ns", name="pk_covered"),
    )


def downgrade() -> None:
    for table in ("covered", "evaluated", "alert_flips", "alert_states", "slo_versions"):
        op.drop_table(table)


def _alert_columns() -> tuple["sa.Column[str]", ...]:
    """What tells one alert from all others."""
    sizes = {"alertname": 64, "slo": 128, "objective": 64, "severity": 16, "long": 16, "short": 16}
    sized = (sa.Column(name, sa.String(size), nullable=False) for name, size in sizes.items())
    return (*sized, sa.Column("by", sa.String, nullable=False))
