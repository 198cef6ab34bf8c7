"""Changes of the fleet."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "changes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("what", sa.String(256), nullable=False),
        sa.Column("old", sa.String(256), nullable=False),
        sa.Column("new", sa.String(256), nullable=False),
        sa.Column("where", sa.String, nullable=False),
        sa.Column("who", sa.String(128), nullable=False),
        sa.Column("link", sa.String(2048), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_changes"),
        sa.UniqueConstraint("key", name="uq_changes_key"),
    )
    op.create_index("ix_changes_at_ns", "changes", ["at_ns"])


def downgrade() -> None:
    op.drop_table("changes")
