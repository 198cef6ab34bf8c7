"""Messages on their way: what is due, how it went, when it is tried again."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Update, func, select, update

from tailburn.engine.incidents import Happened, What
from tailburn.engine.slo.burn import Severity
from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.models import DeliveryRow, IncidentEvent

SILENCED: Final = "silenced"
"""The trouble of a message that waits for the end of a silence."""


@dataclass(frozen=True)
class Delivery:
    """One message of an incident by one channel. `page`: all that is sent, as JSON, or empty."""

    id: int
    incident: int
    message: str
    channel: str
    what: What
    severity: Severity
    at_ns: int
    page: str
    decided_unix_ns: int
    due_unix_ns: int | None
    tries: int
    delivered_unix_ns: int | None
    error: str


class Deliveries:
    """`unix` is of the wall clock; other times are as telemetry has them."""

    def __init__(self, state: State) -> None:
        self._state = state

    def due(self, channel: str, now_unix_ns: int, most: int = 100) -> list[Delivery]:
        """What a channel is to send now, oldest first: of each incident the first alone."""
        first = (
            select(func.min(DeliveryRow.id))
            .where(DeliveryRow.due_unix_ns.is_not(None), DeliveryRow.channel == channel)
            .group_by(DeliveryRow.incident_id)
        )
        asked = select(DeliveryRow).where(
            DeliveryRow.id.in_(first), DeliveryRow.due_unix_ns <= now_unix_ns
        )
        with self._state.reading() as session:
            rows = session.scalars(asked.order_by(DeliveryRow.id).limit(most))
            return [_delivery(row) for row in rows]

    def strayed(self, channels: Collection[str]) -> list[Delivery]:
        """What is on its way by a channel that is none of these."""
        asked = select(DeliveryRow).where(
            DeliveryRow.due_unix_ns.is_not(None), DeliveryRow.channel.not_in(channels)
        )
        with self._state.reading() as session:
            return [_delivery(row) for row in session.scalars(asked.order_by(DeliveryRow.id))]

    def of(self, incident: int) -> list[Delivery]:
        """All messages of an incident, oldest first."""
        asked = select(DeliveryRow).where(DeliveryRow.incident_id == incident)
        with self._state.reading() as session:
            return [_delivery(row) for row in session.scalars(asked.order_by(DeliveryRow.id))]

    def word(self, delivery: Delivery, page: str) -> None:
        """Keep what is sent: it is the same at each try."""
        with self._state.writing(shared=True) as session:
            session.execute(_of(delivery).values(page=page))

    def done(self, delivery: Delivery, now_unix_ns: int, at_ns: int) -> None:
        """The receiver has it; `at_ns` is when, for the timeline."""
        with self._state.writing(shared=True) as session:
            session.execute(
                _of(delivery).values(
                    delivered_unix_ns=now_unix_ns,
                    due_unix_ns=None,
                    tries=delivery.tries + 1,
                    error="",
                )
            )
            told = f"{delivery.what} by {delivery.channel}"
            session.add(_event(delivery, at_ns, Happened.TOLD, told))

    def hold(self, delivery: Delivery, until_unix_ns: int) -> None:
        """Send it then, and not before: it is silenced. That is no try."""
        with self._state.writing(shared=True) as session:
            session.execute(_of(delivery).values(due_unix_ns=until_unix_ns, error=SILENCED))

    def drop(self, delivery: Delivery, why: str, at_ns: int) -> None:
        """Never send it."""
        with self._state.writing(shared=True) as session:
            session.execute(_of(delivery).values(due_unix_ns=None, error=why))
            session.add(_not_told(delivery, why, at_ns))

    def failed(self, delivery: Delivery, error: str, due_unix_ns: int | None, at_ns: int) -> None:
        """It did not get through; `due_unix_ns` is when it is tried again, None: never."""
        with self._state.writing(shared=True) as session:
            session.execute(
                _of(delivery).values(error=error, due_unix_ns=due_unix_ns, tries=delivery.tries + 1)
            )
            if due_unix_ns is None:
                session.add(_not_told(delivery, error, at_ns))


def _of(delivery: Delivery) -> Update:
    return update(DeliveryRow).where(DeliveryRow.id == delivery.id)


def _not_told(delivery: Delivery, why: str, at_ns: int) -> IncidentEvent:
    told = f"{delivery.what} by {delivery.channel}: {why}"
    return _event(delivery, at_ns, Happened.NOT_TOLD, told)


def _event(delivery: Delivery, at_ns: int, what: Happened, text: str) -> IncidentEvent:
    return IncidentEvent(
        incident_id=delivery.incident, at_ns=at_ns, what=str(what), who="", text=text
    )


def _delivery(row: DeliveryRow) -> Delivery:
    return Delivery(
        id=row.id,
        incident=row.incident_id,
        message=row.message,
        channel=row.channel,
        what=What(row.what),
        severity=Severity(row.severity),
        at_ns=row.at_ns,
        page=row.page,
        decided_unix_ns=row.decided_unix_ns,
        due_unix_ns=row.due_unix_ns,
        tries=row.tries,
        delivered_unix_ns=row.delivered_unix_ns,
        error=row.error,
    )
