"""An incident: the alerts that belong together, and what became of them. Times are ns, `_ns`."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tailburn.engine.evaluation.alerts import AlertKey
from tailburn.engine.slo.burn import Severity


class Life(StrEnum):
    """Where an incident stands. Reopened ones are open again, and count how often."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    MITIGATED = "mitigated"
    RESOLVED = "resolved"


class Happened(StrEnum):
    """What a line of the timeline is about."""

    OPENED = "opened"
    JOINED = "joined"
    """One more alert fires."""
    ESCALATED = "escalated"
    """A page fires where only tickets did."""
    ENDED = "ended"
    """An alert is over."""
    RESOLVED = "resolved"
    REOPENED = "reopened"
    ACKNOWLEDGED = "acknowledged"
    MITIGATED = "mitigated"
    OWNER = "owner"
    NOTE = "note"
    TOLD = "told"
    """A message got through."""
    NOT_TOLD = "not told"
    """A message was given up."""


@dataclass(frozen=True)
class Member:
    """A stretch in which an alert of an incident fired."""

    key: AlertKey
    began_ns: int
    ended_ns: int | None = None


@dataclass(frozen=True)
class Event:
    """A line of an incident's timeline."""

    at_ns: int
    what: Happened
    text: str
    who: str = ""
    """Empty: the service itself."""


@dataclass(frozen=True)
class Incident:
    """`where`: dimensions that all its alerts share, as far as they name any."""

    key: str
    """Never the same for two incidents of any service: receivers deduplicate by it."""
    opened_ns: int
    severity: Severity
    where: Mapping[str, str]
    life: Life = Life.OPEN
    members: tuple[Member, ...] = ()
    quiet_ns: int | None = None
    """Since when none of its alerts fires."""
    resolved_ns: int | None = None
    owner: str = ""
    reopened: int = 0
    id: int | None = None
    """As people call it; none before it is written down."""
    told: frozenset[str] = frozenset()
    """Channels by which somebody is told of it, or is about to be."""

    @property
    def is_over(self) -> bool:
        return self.life is Life.RESOLVED

    @property
    def firing(self) -> tuple[Member, ...]:
        return tuple(m for m in self.members if m.ended_ns is None)

    @property
    def slos(self) -> tuple[str, ...]:
        """Each once, in the order in which they came."""
        return tuple(dict.fromkeys(m.key.slo for m in self.members))


@dataclass(frozen=True)
class Step:
    """One thing that happened to an incident, and how it stands after it."""

    incident: Incident
    event: Event

    @property
    def what(self) -> Happened:
        return self.event.what


class What(StrEnum):
    """Why somebody is told."""

    TRIGGER = "trigger"
    UPDATE = "update"
    RESOLVE = "resolve"


@dataclass(frozen=True)
class Message:
    """Somebody is to be told of an incident by one channel."""

    incident: str
    """Its key."""
    what: What
    severity: Severity
    channel: str
    at_ns: int
    """Of the decision, as telemetry has the time."""
    id: str
    """The same each time it is tried: the idempotency key."""
