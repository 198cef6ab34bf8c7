"""Incidents and the messages that tell of them, written down together with what led to them."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import and_, delete, or_, select, true, update
from sqlalchemy.orm import Session

from tailburn.engine.evaluation.alerts import Flip
from tailburn.engine.incidents import Event, Happened, Incident, Life, Member, Message, Step
from tailburn.engine.slo.burn import Severity
from tailburn.engine.store.state.alerts import alert_key, evaluated_ns, flip_of, named
from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.lease import is_held
from tailburn.engine.store.state.models import (
    DeliveryRow,
    FlipRow,
    IncidentAlert,
    IncidentEvent,
    IncidentRow,
    LeaseRow,
)
from tailburn.engine.store.state.taking_up import taken_up

MOST_FLIPS = 1_000
"""So many changes of alerts are taken in at once."""


Decided = tuple[Sequence[Step], Sequence[Message]]
"""What changes of alerts came to."""

Decide = Callable[[Sequence[Incident], Sequence[Flip], int], Decided]
"""Given incidents that are not long over, changes of alerts, and up to when all is known (ns)."""


class Incidents:
    """What is handed out are copies."""

    def __init__(self, state: State, holder: str | None = None) -> None:
        """`holder`: of the lease that has to be held to take in changes; None: there is none."""
        self._state = state
        self._holder = holder

    def advance(
        self, back_ns: int, settles_ns: int, decide: Decide, now_unix_ns: int
    ) -> Decided | None:
        """Take in the changes of alerts that nobody has, all of it or nothing.

        `back_ns`: incidents count that were over so long before the last evaluation at most;
        `settles_ns`: so long one has to be quiet before time alone changes it;
        `now_unix_ns`: by the wall clock; its messages are due at once. None where there was
        nothing to decide. Raises `DBAPIError`.
        """
        with self._state.reading() as session:
            if not (self._is_new(session) or _is_waiting(session, settles_ns)):
                return None
        with self._state.writing(shared=True) as session:
            if self._holder is None:
                flips, known_ns = _taken_in(session)
            else:
                lease = is_held(session, self._holder)
                if lease is None:
                    return None
                flips, known_ns = _taken_in_by(session, lease)
            incidents = _read(session, _is_live(known_ns - back_ns))
            decided = decide(incidents, flips, known_ns)
            _write(session, *decided, now_unix_ns)
        return decided

    def _is_new(self, session: Session) -> bool:
        """Whether it has not taken up yet what the holder before it left."""
        if self._holder is None:
            return False
        lease = session.scalar(select(LeaseRow).where(LeaseRow.holder == self._holder))
        return lease is not None and lease.taken_up_term < lease.term

    def all(
        self,
        since_ns: int | None = None,
        is_open: bool | None = None,
        most: int | None = None,
        before: int | None = None,
    ) -> list[Incident]:
        """The newest that were not over before a time, oldest first; `before`: of lower numbers."""
        asked = [] if since_ns is None else [_is_live(since_ns)]
        if before is not None:
            asked.append(IncidentRow.id < before)
        if is_open is not None:
            asked.append((IncidentRow.life != Life.RESOLVED) == is_open)
        with self._state.reading() as session:
            return _read(session, and_(true(), *asked), most)

    def one(self, number: int) -> Incident | None:
        with self._state.reading() as session:
            return next(iter(_read(session, IncidentRow.id == number)), None)

    def timeline(self, number: int) -> list[Event]:
        """What happened to an incident, in the order in which it was noted."""
        asked = select(IncidentEvent).where(IncidentEvent.incident_id == number)
        with self._state.reading() as session:
            rows = session.scalars(asked.order_by(IncidentEvent.id))
            return [Event(row.at_ns, Happened(row.what), row.text, row.who) for row in rows]

    def change(
        self, number: int, decide: Callable[[Incident], Decided], now_unix_ns: int
    ) -> Incident | None:
        """Write down what becomes of one incident as it stands; the incident after it.

        None where there is none of this number. What `decide` raises leaves all as it was.
        """
        with self._state.writing(shared=True) as session:
            found = _read(session, IncidentRow.id == number)
            if not found:
                return None
            _write(session, *decide(found[0]), now_unix_ns)
            session.flush()
            session.expire_all()
            return _read(session, IncidentRow.id == number)[0]

    def forget(self, before_ns: int, most: int = 1_000) -> None:
        """Remove incidents that were over before a time, the oldest first, so many at a time."""
        asked = select(IncidentRow.id).where(IncidentRow.resolved_ns < before_ns)
        with self._state.reading() as session:
            old = list(session.scalars(asked.order_by(IncidentRow.id).limit(most)))
        if not old:
            return
        with self._state.writing(shared=True) as session:
            for table in (DeliveryRow, IncidentEvent, IncidentAlert):
                session.execute(delete(table).where(table.incident_id.in_(old)))
            session.execute(delete(IncidentRow).where(IncidentRow.id.in_(old)))


_UNDELIVERED = select(FlipRow).where(FlipRow.delivered_ns.is_(None)).order_by(FlipRow.id)


def _is_waiting(session: Session, settles_ns: int) -> bool:
    """Whether there is a change to take in, or an incident that has been quiet for long enough."""
    if session.scalar(_UNDELIVERED.limit(1)) is not None:
        return True
    quiet = select(IncidentRow.id).where(
        IncidentRow.life != Life.RESOLVED,
        IncidentRow.quiet_ns <= (evaluated_ns(session) or 0) - settles_ns,
    )
    return session.scalar(quiet.limit(1)) is not None


def _taken_in(session: Session) -> tuple[list[Flip], int]:
    """The oldest changes that nobody took in, and up to when there are no others."""
    rows = list(session.scalars(_UNDELIVERED.limit(MOST_FLIPS)))
    flips = [flip_of(row) for row in rows]
    known_ns = evaluated_ns(session) or 0
    if len(rows) == MOST_FLIPS:  # more may follow
        known_ns = flips[-1].at_ns
    ids = [row.id for row in rows]
    session.execute(update(FlipRow).where(FlipRow.id.in_(ids)).values(delivered_ns=known_ns))
    return flips, known_ns


def _taken_in_by(session: Session, lease: LeaseRow) -> tuple[list[Flip], int]:
    """The same; at first all in which incidents differ from what is seen here."""
    if lease.taken_up_term == lease.term:
        return _taken_in(session)
    lease.taken_up_term = lease.term
    return taken_up(session), evaluated_ns(session) or 0


def _is_live(since_ns: int) -> Any:
    return or_(IncidentRow.resolved_ns.is_(None), IncidentRow.resolved_ns >= since_ns)


def _read(session: Session, which: Any, most: int | None = None) -> list[Incident]:
    newest = select(IncidentRow).where(which).order_by(IncidentRow.id.desc()).limit(most)
    rows = list(session.scalars(newest))[::-1]
    ids = [row.id for row in rows]
    members: dict[int, list[Member]] = {number: [] for number in ids}
    asked = select(IncidentAlert).where(IncidentAlert.incident_id.in_(ids))
    for row in session.scalars(asked.order_by(IncidentAlert.number)):
        members[row.incident_id].append(Member(alert_key(row), row.began_ns, row.ended_ns))
    told: dict[int, set[str]] = {number: set() for number in ids}
    sent = select(DeliveryRow.incident_id, DeliveryRow.channel)
    for number, channel in session.execute(sent.where(DeliveryRow.incident_id.in_(ids))):
        told[number].add(channel)
    return [_incident(row, members[row.id], told[row.id]) for row in rows]


def _incident(row: IncidentRow, members: Iterable[Member], told: Iterable[str]) -> Incident:
    return Incident(
        key=row.key,
        opened_ns=row.opened_ns,
        severity=Severity(row.severity),
        where=json.loads(row.where),
        life=Life(row.life),
        members=tuple(members),
        quiet_ns=row.quiet_ns,
        resolved_ns=row.resolved_ns,
        owner=row.owner,
        reopened=row.reopened,
        id=row.id,
        told=frozenset(told),
    )


def _write(
    session: Session, steps: Iterable[Step], messages: Iterable[Message], now_unix_ns: int
) -> None:
    ids = {}
    steps = list(steps)
    last = {step.incident.key: step.incident for step in steps}
    for incident in last.values():
        ids[incident.key] = _put(session, incident)
    session.add_all(
        IncidentEvent(incident_id=ids[step.incident.key], **_event(step.event)) for step in steps
    )
    session.add_all(_delivery(ids[m.incident], m, now_unix_ns) for m in messages)


def _put(session: Session, incident: Incident) -> int:
    """Write an incident and its alerts as they stand; its number."""
    found = session.scalar(select(IncidentRow).where(IncidentRow.key == incident.key))
    row = found or IncidentRow(key=incident.key)
    row.severity, row.life = str(incident.severity), str(incident.life)
    row.where, row.owner = json.dumps(dict(incident.where)), incident.owner
    row.opened_ns, row.quiet_ns = incident.opened_ns, incident.quiet_ns
    row.resolved_ns, row.reopened = incident.resolved_ns, incident.reopened
    session.add(row)
    session.flush()
    for number, member in enumerate(incident.members):
        session.merge(IncidentAlert(incident_id=row.id, number=number, **_member(member)))
    return row.id


def _member(member: Member) -> dict[str, Any]:
    return {**named(member.key), "began_ns": member.began_ns, "ended_ns": member.ended_ns}


def _event(event: Event) -> dict[str, Any]:
    return {**asdict(event), "what": str(event.what)}


def _delivery(incident_id: int, message: Message, now_unix_ns: int) -> DeliveryRow:
    return DeliveryRow(
        incident_id=incident_id,
        message=message.id,
        channel=message.channel,
        what=str(message.what),
        severity=str(message.severity),
        page="",
        at_ns=message.at_ns,
        decided_unix_ns=now_unix_ns,
        due_unix_ns=now_unix_ns,
        tries=0,
        delivered_unix_ns=None,
        error="",
    )
