"""Which definitions of budgets have been in force, and since when."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from sqlalchemy import delete, or_, select

from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Objective, Slo, objectives
from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.forgetting import KEPT_NS
from tailburn.engine.store.state.models import SloVersion


@dataclass(frozen=True)
class Edit:
    """What became of one objective since it was last loaded; `old` or `new` is None for none."""

    slo: str
    objective: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class Begun:
    """The budget of an objective that is in force, and since when: anew where it came back."""

    definition: str
    at_ns: int


class Versions:
    """Rows handed out are copies: changing one changes nothing in the database."""

    def __init__(self, state: State, kept_ns: int = KEPT_NS) -> None:
        """`kept_ns`: for so long after it was in force a definition is kept."""
        self._state = state
        self._kept_ns = kept_ns

    def all(self, since_ns: int | None = None) -> list[SloVersion]:
        """Oldest first, those no longer in force too; or those in force at some time since."""
        asked = select(SloVersion).order_by(*_ORDER)
        if since_ns is not None:
            asked = asked.where(or_(_is_in_force, SloVersion.retired_ns >= since_ns))
        with self._state.reading() as session:
            return list(session.scalars(asked))

    def in_force(self) -> list[SloVersion]:
        """Those of the SLOs that were loaded last, oldest first."""
        with self._state.reading() as session:
            return list(session.scalars(select(SloVersion).where(_is_in_force).order_by(*_ORDER)))

    def begun(self, since_ns: int) -> dict[tuple[str, str], Begun]:
        """By SLO and objective, budgets that took the place of another one after a time."""
        rows = self.all()
        replaced_ns: dict[tuple[str, str], int] = {}
        for row in rows:
            if row.retired_ns is not None:
                key = row.slo, row.objective
                replaced_ns[key] = max(row.retired_ns, replaced_ns.get(key, row.retired_ns))
        return {
            key: Begun(row.definition, at_ns)
            for row in rows
            if row.retired_ns is None and (key := (row.slo, row.objective)) in replaced_ns
            if (at_ns := max(row.first_seen_ns, replaced_ns[key])) > since_ns
        }

    def load(self, slos: Iterable[Slo], now_ns: int) -> list[Edit]:
        """Write down that these SLOs are in force from `now_ns` on, and no others.

        Returns what that changes; nothing where they are those of the last call. A definition
        that comes back is in force again under its first date, unless it was away for so long
        that it is forgotten: whoever edits an SLO every day leaves no more behind than that. What
        is written of an SLO besides, such as its mix, is that of the last call.
        """
        loaded = {
            (slo.name, objective.name): (definition_of(slo, objective), slo, objective)
            for slo in slos
            for objective in objectives(slo)
        }
        with self._state.writing() as session:
            in_force = session.scalars(select(SloVersion).where(_is_in_force)).all()
            before = {(row.slo, row.objective): row.definition for row in in_force}
            for row in in_force:
                if loaded.get((row.slo, row.objective), (None,))[0] != row.definition:
                    row.retired_ns = now_ns
            for key, (definition, slo, objective) in loaded.items():
                known = session.get(SloVersion, (*key, definition))
                if known is None:
                    session.add(_row(slo, objective, definition, now_ns))
                else:
                    known.retired_ns = None
                    known.document = _document(slo, objective)
            session.flush()
            session.execute(
                delete(SloVersion).where(SloVersion.retired_ns < now_ns - self._kept_ns)
            )
        after = {key: definition for key, (definition, *_) in loaded.items()}
        return [
            Edit(*key, before.get(key), after.get(key))
            for key in sorted(before.keys() | after.keys())
            if before.get(key) != after.get(key)
        ]


_is_in_force = SloVersion.retired_ns.is_(None)
_ORDER: Final = (SloVersion.first_seen_ns, SloVersion.slo, SloVersion.objective)


def _row(slo: Slo, objective: Objective, definition: str, now_ns: int) -> SloVersion:
    return SloVersion(
        slo=slo.name,
        objective=objective.name,
        definition=definition,
        document=_document(slo, objective),
        first_seen_ns=now_ns,
        retired_ns=None,
    )


def _document(slo: Slo, objective: Objective) -> str:
    said: dict[str, Any] = {"slo": asdict(slo), "objective": asdict(objective)}
    return json.dumps(said, sort_keys=True)
