"""How alerts stand and what changed, written together with the minute that it is known up to."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, delete, insert, select
from sqlalchemy.orm import Session

from tailburn.engine.evaluation.alerts import AlertKey, Flip, State, Status
from tailburn.engine.store.state.conflict import key_of, upsert
from tailburn.engine.store.state.database import State as Database
from tailburn.engine.store.state.models import (
    AlertRow,
    Base,
    Covered,
    Evaluated,
    FlipRow,
    IncidentAlert,
)

_WHAT: Final = "alerts"
_TABLES: Final = Base.metadata.tables  # plain rows: ten thousand are written in a moment
_states: Final = _TABLES[AlertRow.__tablename__]
_flips: Final = _TABLES[FlipRow.__tablename__]
_KEY: Final = [column.name for column in _states.primary_key]
_MINUTE: Final = select(Evaluated.minute_ns).where(Evaluated.what == _WHAT)


@dataclass(frozen=True)
class Standing:
    """The states of alerts at the end of a minute; inactive ones are left out."""

    minute_ns: int | None  # None: nothing was ever evaluated
    states: dict[AlertKey, State]


class Alerts:
    """States are those of `minute_ns`, never of a later or an earlier one, however a write ends."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def standing(self) -> Standing:
        """What was written last."""
        with self._database.reading() as session:
            return Standing(evaluated_ns(session), standing_in(session))

    def evaluated_ns(self) -> int | None:
        """Up to which minute all is written; None: nothing was ever evaluated."""
        with self._database.reading() as session:
            return evaluated_ns(session)

    def write(
        self,
        minute_ns: int,
        before: Mapping[AlertKey, State],
        states: Mapping[AlertKey, State],
        flips: Iterable[Flip],
        covered_since_ns: int | None = None,
        *,
        is_again: bool = False,
    ) -> None:
        """One evaluation: `states` in the place of `before`, and what changed between them.

        `covered_since_ns`: since then the service has counted without a break. Durable before it
        returns, or nothing of it is there. Raises `DBAPIError`. After one it is asked anew with
        `is_again`: where a server went away in between, all of it may be there already.
        """
        with self._database.writing() as session:
            if is_again and evaluated_ns(session) == minute_ns:
                return
            _remove(session, before.keys() - states.keys())
            changed = [_row(k, s) for k, s in states.items() if before.get(k) != s]
            if changed:
                told = upsert(session, _states)
                news = {n: told.excluded[n] for n in changed[0] if n not in _KEY}
                key = key_of(session, _states)
                told = told.on_conflict_do_update(index_elements=key, set_=news)
                session.connection().execute(told, changed)
            rows = [_flip_row(flip) for flip in flips]
            if rows:
                session.connection().execute(insert(_flips), rows)
            session.merge(Evaluated(what=_WHAT, minute_ns=minute_ns))
            if covered_since_ns is not None and covered_since_ns < minute_ns:
                session.merge(Covered(begin_ns=covered_since_ns, end_ns=minute_ns))

    def flips(self, since_ns: int, most: int | None = None) -> list[Flip]:
        """The newest changes at or after a time, oldest first."""
        asked = select(FlipRow).where(FlipRow.at_ns >= since_ns)
        asked = asked.order_by(FlipRow.at_ns.desc(), FlipRow.id.desc()).limit(most)
        with self._database.reading() as session:
            return [flip_of(row) for row in session.scalars(asked)][::-1]

    def covered(self, since_ns: int) -> list[tuple[int, int]]:
        """Begin and end of the stretches after a time in which the service counted."""
        asked = select(Covered).where(Covered.end_ns > since_ns).order_by(Covered.begin_ns)
        with self._database.reading() as session:
            return [(row.begin_ns, row.end_ns) for row in session.scalars(asked)]


def evaluated_ns(session: Session) -> int | None:
    """Up to which minute the alerts are evaluated; None: nothing ever was."""
    minute_ns: int | None = session.scalar(_MINUTE)
    return minute_ns


def standing_in(session: Session) -> dict[AlertKey, State]:
    """The states as they were written last."""
    return {alert_key(row): _state(row) for row in session.scalars(select(AlertRow))}


def _remove(session: Session, keys: Iterable[AlertKey]) -> None:
    old = [{f"old_{name}": value for name, value in named(key).items()} for key in keys]
    if old:
        same = (getattr(AlertRow, name) == bindparam(f"old_{name}") for name in _KEY)
        session.connection().execute(delete(AlertRow).where(*same), old)


def named(key: AlertKey) -> dict[str, str]:
    """The columns that tell an alert from all others."""
    return {**key._asdict(), "by": json.dumps(dict(key.by))}


def _row(key: AlertKey, state: State) -> dict[str, Any]:
    return {
        **named(key),
        "status": str(state.status),
        "since_ns": state.since_ns,
        "active_since_ns": state.active_since_ns,
        "value": state.value,
        "why": state.why,
    }


def _flip_row(flip: Flip) -> dict[str, Any]:
    return {
        **named(flip.key),
        "old": str(flip.old),
        "new": str(flip.new),
        "at_ns": flip.at_ns,
        "value": flip.value,
        "reason": flip.reason,
    }


def alert_key(row: AlertRow | FlipRow | IncidentAlert) -> AlertKey:
    return AlertKey(
        alertname=row.alertname,
        slo=row.slo,
        objective=row.objective,
        severity=row.severity,
        long=row.long,
        short=row.short,
        by=tuple(json.loads(row.by).items()),
    )


def _state(row: AlertRow) -> State:
    return State(Status(row.status), row.since_ns, row.active_since_ns, row.value, row.why)


def flip_of(row: FlipRow) -> Flip:
    return Flip(alert_key(row), Status(row.old), Status(row.new), row.at_ns, row.value, row.reason)
