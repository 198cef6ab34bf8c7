"""Services of which one tells people; silences made elsewhere; channels with long names."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


_CHANNELS = (("message", sa.String(160)), ("channel", sa.String(64)))


def upgrade() -> None:
    with op.batch_alter_table("deliveries") as deliveries:
        for name, short in _CHANNELS:
            deliveries.alter_column(name, type_=sa.String(), existing_type=short)
    op.add_column("silences", sa.Column("origin", sa.String))
    op.create_table(
        "leases",
        sa.Column("what", sa.String(16), nullable=False),
        sa.Column("holder", sa.String(32), nullable=False),
        sa.Column("term", sa.Integer, nullable=False),
        sa.Column("taken_up_term", sa.Integer, nullable=False),
        sa.Column("until_unix_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("what", name="pk_leases"),
    )
    op.create_table(
        "services",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(256), nullable=False),
        sa.Column("began_unix_ns", sa.BigInteger, nullable=False),
        sa.Column("seen_unix_ns", sa.BigInteger, nullable=False),
        sa.Column("evaluated_ns", sa.BigInteger),
        sa.Column("covered_ratio", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_services"),
    )


def downgrade() -> None:
    op.drop_table("services")
    op.drop_table("leases")
    with op.batch_alter_table("silences") as silences:
        silences.drop_column("origin")
    with op.batch_alter_table("deliveries") as deliveries:
        for name, short in _CHANNELS:
            deliveries.alter_column(name, type_=short, existing_type=sa.String())
