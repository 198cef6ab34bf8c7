"""Series of SLOs that were shown at 0 before they counted."""

import sqlalchemy as sa
from alembic import op

from tailburn.engine.store.state.migrations.keys import make_keyed

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    make_keyed(
        "shown_series",
        ("slo", "objective", "definition", "by"),
        sa.Column("slo", sa.String(128), nullable=False),
        sa.Column("objective", sa.String(64), nullable=False),
        sa.Column("definition", sa.String(16), nullable=False),
        sa.Column("by", sa.String, nullable=False),
        sa.Column("shown_ns", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("shown_series")
