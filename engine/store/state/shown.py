"""Which series of SLOs Prometheus has had a chance to see at 0."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select

from tailburn.engine.store.state.conflict import key_of, upsert
from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.models import Base, ShownSeries

_SHOWN: Final = Base.metadata.tables[ShownSeries.__tablename__]


@dataclass(frozen=True)
class SeriesKey:
    """What tells one series of an SLO from all others, now and after a restart."""

    slo: str
    objective: str
    definition: str
    by: tuple[tuple[str, str], ...]  # each dimension of the SLO's `by`, and its value


class Shown:
    """A table that is only ever added to."""

    def __init__(self, state: State) -> None:
        self._state = state

    def all(self) -> set[SeriesKey]:
        with self._state.reading() as session:
            rows = session.scalars(select(ShownSeries))
            return {
                SeriesKey(r.slo, r.objective, r.definition, tuple(json.loads(r.by).items()))
                for r in rows
            }

    def add(self, keys: Iterable[SeriesKey], now_ns: int) -> None:
        """Those that are new; durable before it returns. Raises `OperationalError`."""
        rows = [
            {
                "slo": key.slo,
                "objective": key.objective,
                "definition": key.definition,
                "by": json.dumps(dict(key.by)),
                "shown_ns": now_ns,
            }
            for key in keys
        ]
        with self._state.writing() as session:
            key = key_of(session, _SHOWN)
            told = upsert(session, _SHOWN).on_conflict_do_nothing(index_elements=key)
            session.connection().execute(told, rows)
