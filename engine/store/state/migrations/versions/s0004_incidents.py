"""Incidents, their alerts and timelines, the messages that tell of them, and silences."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "incidents",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("life", sa.String(16), nullable=False),
        sa.Column("where", sa.String, nullable=False),
        sa.Column("owner", sa.String(128), nullable=False),
        sa.Column("opened_ns", sa.BigInteger, nullable=False),
        sa.Column("quiet_ns", sa.BigInteger),
        sa.Column("resolved_ns", sa.BigInteger),
        sa.Column("reopened", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_incidents"),
        sa.UniqueConstraint("key", name="uq_incidents_key"),
    )
    op.create_index("ix_incidents_resolved_ns", "incidents", ["resolved_ns"])
    _create_alerts()
    op.create_table(
        "incident_events",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("incident_id", sa.Integer, nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("what", sa.String(16), nullable=False),
        sa.Column("who", sa.String(128), nullable=False),
        sa.Column("text", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_incident_events"),
        _of_incident("incident_events"),
    )
    op.create_index("ix_incident_events_incident_id", "incident_events", ["incident_id"])
    _create_deliveries()
    op.create_table(
        "silences",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("matchers", sa.String, nullable=False),
        sa.Column("starts_unix_ns", sa.BigInteger, nullable=False),
        sa.Column("ends_unix_ns", sa.BigInteger, nullable=False),
        sa.Column("who", sa.String(128), nullable=False),
        sa.Column("why", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_silences"),
    )
    op.create_index("ix_silences_ends_unix_ns", "silences", ["ends_unix_ns"])


def downgrade() -> None:
    op.drop_table("silences")
    for table in ("deliveries", "incident_events", "incident_alerts", "incidents"):
        op.drop_table(table)


def _create_alerts() -> None:
    sizes = {"alertname": 64, "slo": 128, "objective": 64, "severity": 16, "long": 16, "short": 16}
    op.create_table(
        "incident_alerts",
        sa.Column("incident_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        *(sa.Column(name, sa.String(size), nullable=False) for name, size in sizes.items()),
        sa.Column("by", sa.String, nullable=False),
        sa.Column("began_ns", sa.BigInteger, nullable=False),
        sa.Column("ended_ns", sa.BigInteger),
        sa.PrimaryKeyConstraint("incident_id", "number", name="pk_incident_alerts"),
        _of_incident("incident_alerts"),
    )


def _create_deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("incident_id", sa.Integer, nullable=False),
        sa.Column("message", sa.String(160), nullable=False),
        sa.Column("channel", sa.String(64), nullable=False),
        sa.Column("what", sa.String(16), nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("page", sa.String, nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("decided_unix_ns", sa.BigInteger, nullable=False),
        sa.Column("due_unix_ns", sa.BigInteger),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("delivered_unix_ns", sa.BigInteger),
        sa.Column("error", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.UniqueConstraint("message", name="uq_deliveries_message"),
        _of_incident("deliveries"),
    )
    op.create_index("ix_deliveries_incident_id", "deliveries", ["incident_id"])
    is_due = sa.text("due_unix_ns IS NOT NULL")
    op.create_index(
        "ix_deliveries_due_unix_ns",
        "deliveries",
        ["due_unix_ns"],
        sqlite_where=is_due,
        postgresql_where=is_due,
    )


def _of_incident(table: str) -> "sa.ForeignKeyConstraint":
    name = f"fk_{table}_incident_id"
    return sa.ForeignKeyConstraint(["incident_id"], ["incidents.id"], name=name)
