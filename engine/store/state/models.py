"""Every table of the state database. Times are ns since the epoch, `_ns`."""

from sqlalchemy import BigInteger, Index, LargeBinary, MetaData, String, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Constraints have names, so that later migrations can alter them on any database."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Token(Base):
    """One bearer token. Its secret is never stored, only its SHA-256."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)  # public, part of the secret
    name: Mapped[str] = mapped_column(String(64))
    tenant: Mapped[str] = mapped_column(String(64))
    scopes: Mapped[str] = mapped_column(String(64))  # sorted, separated by spaces
    hash: Mapped[bytes] = mapped_column(LargeBinary(32))
    created_ns: Mapped[int] = mapped_column(BigInteger)
    last_used_ns: Mapped[int | None] = mapped_column(BigInteger)  # to the minute
    revoked_ns: Mapped[int | None] = mapped_column(BigInteger)

    __table_args__ = (
        # A revoked token's name is free again: rotation keeps its name.
        Index(
            "ix_tokens_live_name",
            "name",
            unique=True,
            sqlite_where=text("revoked_ns IS NULL"),
            postgresql_where=text("revoked_ns IS NULL"),
        ),
    )


class ShownSeries(Base):
    """A series of an SLO that was shown at 0 once, so it may be shown as it counts."""

    __tablename__ = "shown_series"

    slo: Mapped[str] = mapped_column(String(128), primary_key=True)
    objective: Mapped[str] = mapped_column(String(64), primary_key=True)
    definition: Mapped[str] = mapped_column(String(16), primary_key=True)
    by: Mapped[str] = mapped_column(primary_key=True)  # dimensions and their values, as JSON
    shown_ns: Mapped[int] = mapped_column(BigInteger)
