"""Every table of the state database. Times are ns since the epoch, `_ns`."""

from sqlalchemy import BigInteger, Float, Index, Integer, LargeBinary, MetaData, String, text
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


class SloVersion(Base):
    """A budget as it was defined for a time; `engine.slo.definition` names its versions."""

    __tablename__ = "slo_versions"

    slo: Mapped[str] = mapped_column(String(128), primary_key=True)
    objective: Mapped[str] = mapped_column(String(64), primary_key=True)
    definition: Mapped[str] = mapped_column(String(16), primary_key=True)
    document: Mapped[str]  # the budget and its SLO, as JSON
    first_seen_ns: Mapped[int] = mapped_column(BigInteger)
    retired_ns: Mapped[int | None] = mapped_column(BigInteger)  # no longer loaded; null: in force


class AlertRow(Base):
    """An alert that is pending, firing or frozen, as it was last evaluated."""

    __tablename__ = "alert_states"

    alertname: Mapped[str] = mapped_column(String(64), primary_key=True)
    slo: Mapped[str] = mapped_column(String(128), primary_key=True)
    objective: Mapped[str] = mapped_column(String(64), primary_key=True)
    severity: Mapped[str] = mapped_column(String(16), primary_key=True)
    long: Mapped[str] = mapped_column(String(16), primary_key=True)
    short: Mapped[str] = mapped_column(String(16), primary_key=True)
    by: Mapped[str] = mapped_column(primary_key=True)  # dimensions and their values, as JSON
    status: Mapped[str] = mapped_column(String(16))
    since_ns: Mapped[int] = mapped_column(BigInteger)  # in this status
    active_since_ns: Mapped[int] = mapped_column(BigInteger)  # in trouble, without a break
    value: Mapped[float | None] = mapped_column(Float)
    why: Mapped[str]


class FlipRow(Base):
    """One change of the status of an alert. Rows are added, delivered, and forgotten when old."""

    __tablename__ = "alert_flips"

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True
    )  # SQLite counts up by itself in an Integer alone, which has 64 bits there
    alertname: Mapped[str] = mapped_column(String(64))
    slo: Mapped[str] = mapped_column(String(128))
    objective: Mapped[str] = mapped_column(String(64))
    severity: Mapped[str] = mapped_column(String(16))
    long: Mapped[str] = mapped_column(String(16))
    short: Mapped[str] = mapped_column(String(16))
    by: Mapped[str]
    old: Mapped[str] = mapped_column(String(16))
    new: Mapped[str] = mapped_column(String(16))
    at_ns: Mapped[int] = mapped_column(BigInteger)
    value: Mapped[float | None] = mapped_column(Float)
    reason: Mapped[str]
    delivered_ns: Mapped[int | None] = mapped_column(BigInteger)

    __table_args__ = (
        Index("ix_alert_flips_at_ns", "at_ns"),
        Index(
            "ix_alert_flips_undelivered",
            "id",
            sqlite_where=text("delivered_ns IS NULL"),
            postgresql_where=text("delivered_ns IS NULL"),
        ),
    )


class Evaluated(Base):
    """Up to which minute the alerts have been evaluated; one row for each thing evaluated."""

    __tablename__ = "evaluated"

    what: Mapped[str] = mapped_column(String(16), primary_key=True)
    minute_ns: Mapped[int] = mapped_column(BigInteger)


class Covered(Base):
    """A stretch of whole minutes in which the service counted, whether or not requests came."""

    __tablename__ = "covered"

    begin_ns: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    end_ns: Mapped[int] = mapped_column(BigInteger)
