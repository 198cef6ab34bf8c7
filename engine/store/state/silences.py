"""Silences: what nobody wants to be told of for a time."""

import json
from dataclasses import replace

from sqlalchemy import delete, select, update

from tailburn.engine.silences import Silence
from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.deliveries import SILENCED
from tailburn.engine.store.state.models import DeliveryRow, SilenceRow

MOST_KEPT = 10_000


class Silences:
    """Times are of the wall clock."""

    def __init__(self, state: State) -> None:
        self._state = state

    def add(self, silence: Silence) -> Silence:
        """Write it down; the same with its number."""
        with self._state.writing(shared=True) as session:
            row = SilenceRow(
                matchers=json.dumps(silence.matchers),
                starts_unix_ns=silence.starts_unix_ns,
                ends_unix_ns=silence.ends_unix_ns,
                who=silence.who,
                why=silence.why,
                origin=silence.origin or None,
            )
            session.add(row)
            session.flush()
            return replace(silence, id=row.id)

    def all(self, ended_since_unix_ns: int) -> list[Silence]:
        """The newest that had not ended by then, oldest first."""
        asked = select(SilenceRow).where(SilenceRow.ends_unix_ns > ended_since_unix_ns)
        with self._state.reading() as session:
            rows = session.scalars(asked.order_by(SilenceRow.id.desc()).limit(MOST_KEPT))
            return [_silence(row) for row in rows][::-1]

    def lasts(self, number: int, ends_unix_ns: int) -> None:
        """It was made longer, or shorter, where it was made."""
        with self._state.writing(shared=True) as session:
            row = session.get(SilenceRow, number)
            if row is not None:
                row.ends_unix_ns = ends_unix_ns

    def end(self, number: int, now_unix_ns: int) -> Silence | None:
        """It holds no longer than now, and what it held is due; None: none of this number."""
        with self._state.writing(shared=True) as session:
            row = session.get(SilenceRow, number)
            if row is None:
                return None
            row.ends_unix_ns = min(row.ends_unix_ns, now_unix_ns)
            held = (DeliveryRow.due_unix_ns > now_unix_ns) & (DeliveryRow.error == SILENCED)
            session.execute(update(DeliveryRow).where(held).values(due_unix_ns=now_unix_ns))
            return _silence(row)

    def forget(self, before_unix_ns: int) -> None:
        """Remove those that ended before a time."""
        with self._state.writing(shared=True) as session:
            session.execute(delete(SilenceRow).where(SilenceRow.ends_unix_ns < before_unix_ns))


def _silence(row: SilenceRow) -> Silence:
    matchers = tuple(json.loads(row.matchers))
    return Silence(
        matchers, row.starts_unix_ns, row.ends_unix_ns, row.who, row.why, row.id, row.origin or ""
    )
