"""Tokens: who may send and read."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("scopes", sa.String(64), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.Column("created_ns", sa.BigInteger, nullable=False),
        sa.Column("last_used_ns", sa.BigInteger),
        sa.Column("revoked_ns", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
    )
    live = sa.text("revoked_ns IS NULL")
    op.create_index(
        "ix_tokens_live_name",
        "tokens",
        ["name"],
        unique=True,
        sqlite_where=live,
        postgresql_where=live,
    )


def downgrade() -> None:
    op.drop_table("tokens")
