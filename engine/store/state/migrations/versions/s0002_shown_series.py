"""Series of SLOs that were shown at 0 before they counted."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "shown_series",
        sa.Column("slo", sa.String(128), nullable=False),
        sa.Column("objective", sa.String(64), nullable=False),
        sa.Column("definition", sa.String(16), nullable=False),
        sa.Column("by", sa.String, nullable=False),
        sa.Column("shown_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("slo", "objective", "definition", "by", name="pk_shown_series"),
    )


def downgrade() -> None:
    op.drop_table("shown_series")
