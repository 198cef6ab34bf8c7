"""Changes of the fleet, as people and their pipelines told them."""

import json
from collections.abc import Iterable, Mapping

from sqlalchemy import delete, select

from tailburn.engine.changes import Change, Kind
from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.models import ChangeRow

MOST = 1_000
"""As many are given at once, unless more are asked for."""


class Changes:
    """What is handed out are copies."""

    def __init__(self, state: State) -> None:
        self._state = state

    def add(self, change: Change) -> Change:
        """Write it down, with its number; the one that is there, where it was told before."""
        with self._state.writing(shared=True) as session:
            row = session.scalar(select(ChangeRow).where(ChangeRow.key == change.key))
            if row is None:
                row = _told(None, change)
                session.add(row)
                session.flush()
            return _change(row)

    def put(self, changes: Iterable[Change]) -> None:
        """Write them down as they are now, whether they are there or not."""
        with self._state.writing(shared=True) as session:
            for change in changes:
                known = session.scalar(select(ChangeRow).where(ChangeRow.key == change.key))
                session.add(_told(known, change))

    def all(
        self,
        since_ns: int | None = None,
        until_ns: int | None = None,
        where: Mapping[str, str] | None = None,
        tenant: str | None = None,
        most: int = MOST,
    ) -> list[Change]:
        """The newest of a window (`since_ns <= t < until_ns`) that touch `where`, oldest first."""
        asked = select(ChangeRow).order_by(ChangeRow.at_ns.desc(), ChangeRow.id.desc())
        if since_ns is not None:
            asked = asked.where(ChangeRow.at_ns >= since_ns)
        if until_ns is not None:
            asked = asked.where(ChangeRow.at_ns < until_ns)
        if tenant is not None:
            asked = asked.where(ChangeRow.tenant == tenant)
        found: list[Change] = []
        with self._state.reading() as session:
            for row in session.scalars(asked.execution_options(yield_per=500)):
                change = _change(row)
                if change.touches(where or {}):
                    found.append(change)
                if len(found) >= most:
                    break
        return found[::-1]

    def forget(self, before_ns: int) -> None:
        """Remove those before a time."""
        with self._state.writing(shared=True) as session:
            session.execute(delete(ChangeRow).where(ChangeRow.at_ns < before_ns))


def _told(known: ChangeRow | None, change: Change) -> ChangeRow:
    """The row of a change as it is now."""
    row = known or ChangeRow(key=change.key)
    row.tenant, row.at_ns, row.kind = change.tenant, change.at_ns, str(change.kind)
    row.what, row.old, row.new = change.what, change.old, change.new
    row.where = json.dumps(dict(change.where), ensure_ascii=False)
    row.who, row.link = change.who, change.link
    return row


def _change(row: ChangeRow) -> Change:
    return Change(
        at_ns=row.at_ns,
        kind=Kind(row.kind),
        what=row.what,
        old=row.old,
        new=row.new,
        where=json.loads(row.where),
        who=row.who,
        link=row.link,
        tenant=row.tenant,
        id=row.id,
    )
