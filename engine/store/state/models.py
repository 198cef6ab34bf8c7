"""Every table of the state database. Times are ns since the epoch, `_ns`."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    text,
)
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


SHARED_TABLES: Final = "shared"
"""Stands for the schema of what several services have together, where they do."""


class SharedBase(Base):
    """What services that stand by for each other have together: of two one tells people."""

    __abstract__ = True
    __table_args__: Any = {"schema": SHARED_TABLES}  # noqa: RUF012


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


class IncidentRow(SharedBase):
    """Alerts that belong together, and how that stands; `engine.incidents` has its words."""

    __tablename__ = "incidents"

    id: Mapped[int] = mapped_column(primary_key=True)  # as people call it
    key: Mapped[str] = mapped_column(String(64), unique=True)  # as receivers tell it from others
    severity: Mapped[str] = mapped_column(String(16))
    life: Mapped[str] = mapped_column(String(16))
    where: Mapped[str]  # dimensions and their values, as JSON
    owner: Mapped[str] = mapped_column(String(128))
    opened_ns: Mapped[int] = mapped_column(BigInteger)
    quiet_ns: Mapped[int | None] = mapped_column(BigInteger)
    resolved_ns: Mapped[int | None] = mapped_column(BigInteger)
    reopened: Mapped[int]

    __table_args__ = (
        Index("ix_incidents_resolved_ns", "resolved_ns"),
        {"schema": SHARED_TABLES},
    )


class IncidentAlert(SharedBase):
    """A stretch in which an alert of an incident fired."""

    __tablename__ = "incident_alerts"

    incident_id: Mapped[int] = mapped_column(ForeignKey(IncidentRow.id), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)  # in the order in which they came
    alertname: Mapped[str] = mapped_column(String(64))
    slo: Mapped[str] = mapped_column(String(128))
    objective: Mapped[str] = mapped_column(String(64))
    severity: Mapped[str] = mapped_column(String(16))
    long: Mapped[str] = mapped_column(String(16))
    short: Mapped[str] = mapped_column(String(16))
    by: Mapped[str]
    began_ns: Mapped[int] = mapped_column(BigInteger)
    ended_ns: Mapped[int | None] = mapped_column(BigInteger)


class IncidentEvent(SharedBase):
    """A line of an incident's timeline. Rows are added, and forgotten with their incident."""

    __tablename__ = "incident_events"

    id: Mapped[int] = mapped_column(primary_key=True)
    incident_id: Mapped[int] = mapped_column(ForeignKey(IncidentRow.id), index=True)
    at_ns: Mapped[int] = mapped_column(BigInteger)
    what: Mapped[str] = mapped_column(String(16))
    who: Mapped[str] = mapped_column(String(128))
    text: Mapped[str]


class DeliveryRow(SharedBase):
    """A message of an incident on its way through one channel."""

    __tablename__ = "deliveries"

    id: Mapped[int] = mapped_column(primary_key=True)
    incident_id: Mapped[int] = mapped_column(ForeignKey(IncidentRow.id), index=True)
    message: Mapped[str] = mapped_column(unique=True)  # its idempotency key
    channel: Mapped[str]  # as the settings have it, which may name a file anywhere
    what: Mapped[str] = mapped_column(String(16))
    severity: Mapped[str] = mapped_column(String(16))
    page: Mapped[str]  # all that is sent, as JSON; empty until it is worded
    at_ns: Mapped[int] = mapped_column(BigInteger)  # of the decision
    decided_unix_ns: Mapped[int] = mapped_column(BigInteger)  # the same by the wall clock
    due_unix_ns: Mapped[int | None] = mapped_column(BigInteger)  # null: done or given up
    tries: Mapped[int]
    delivered_unix_ns: Mapped[int | None] = mapped_column(BigInteger)
    error: Mapped[str]  # of the last try; empty where there was none

    __table_args__ = (
        Index(
            "ix_deliveries_due_unix_ns",
            "due_unix_ns",
            sqlite_where=text("due_unix_ns IS NOT NULL"),
            postgresql_where=text("due_unix_ns IS NOT NULL"),
        ),
        {"schema": SHARED_TABLES},
    )


class SilenceRow(SharedBase):
    """A time in which nobody is told of what its matchers name."""

    __tablename__ = "silences"

    id: Mapped[int] = mapped_column(primary_key=True)  # as people call it
    matchers: Mapped[str]  # as Alertmanager writes them, as JSON
    starts_unix_ns: Mapped[int] = mapped_column(BigInteger)
    ends_unix_ns: Mapped[int] = mapped_column(BigInteger, index=True)
    who: Mapped[str] = mapped_column(String(128))
    why: Mapped[str]
    origin: Mapped[str | None]  # where else it was made; null: here


class ChangeRow(SharedBase):
    """A change of the fleet; told twice, it is written once."""

    __tablename__ = "changes"

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(32), unique=True)
    tenant: Mapped[str] = mapped_column(String(64))
    at_ns: Mapped[int] = mapped_column(BigInteger, index=True)
    kind: Mapped[str] = mapped_column(String(16))
    what: Mapped[str] = mapped_column(String(256))
    old: Mapped[str] = mapped_column(String(256))
    new: Mapped[str] = mapped_column(String(256))
    where: Mapped[str]  # dimensions and their values, as JSON
    who: Mapped[str] = mapped_column(String(128))
    link: Mapped[str] = mapped_column(String(2048))


class LeaseRow(SharedBase):
    """Who tells people, of several services: the one that says so, until it is silent too long."""

    __tablename__ = "leases"

    what: Mapped[str] = mapped_column(String(16), primary_key=True)
    holder: Mapped[str] = mapped_column(String(32))  # a life of a service
    term: Mapped[int]  # one more with each holder
    taken_up_term: Mapped[int]  # the last whose holder has taken up what the one before left
    until_unix_ns: Mapped[int] = mapped_column(BigInteger)  # by the clock of the database


class ServiceRow(SharedBase):
    """A life of one of several services, as it says itself how it stands."""

    __tablename__ = "services"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(256))  # the host that it is on, and its web port
    began_unix_ns: Mapped[int] = mapped_column(BigInteger)  # these two by the database's clock
    seen_unix_ns: Mapped[int] = mapped_column(BigInteger)
    evaluated_ns: Mapped[int | None] = mapped_column(BigInteger)
    covered_ratio: Mapped[float] = mapped_column(Float)  # of the last 24 h, in which it counted
