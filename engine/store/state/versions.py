"""Which definitions of budgets have been in force, and since when."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select

from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Objective, Slo, objectives
from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.models import SloVersion


@dataclass(frozen=True)
class Edit:
    """What became of one objective since it was last loaded; `old` or `new` is None for none."""

    slo: str
    objective: str
    old: str | None
    new: str | None


class Versions:
    """Rows handed out are copies: changing one changes nothing in the database."""

    def __init__(self, state: State) -> None:
        self._state = state

    def all(self) -> list[SloVersion]:
        """Oldest first, those no longer in force too."""
        order = (SloVersion.first_seen_ns, SloVersion.slo, SloVersion.objective)
        with self._state.reading() as session:
            return list(session.scalars(select(SloVersion).order_by(*order)))

    def load(self, slos: Iterable[Slo], now_ns: int) -> list[Edit]:
        """Write down that these SLOs are in force from `now_ns` on, and no others.

        Returns what that changes; nothing where they are those of the last call. A definition
        that comes back is in force again under its first date.
        """
        loaded = {
            (slo.name, objective.name): (definition_of(slo, objective), slo, objective)
            for slo in slos
            for objective in objectives(slo)
        }
        with self._state.writing() as session:
            known = {(r.slo, r.objective, r.definition): r for r in session.scalars(_everything)}
            before = {key[:2]: key[2] for key, row in known.items() if row.retired_ns is None}
            for (slo_name, objective_name), definition in before.items():
                new = loaded.get((slo_name, objective_name), (None,))[0]
                if new != definition:
                    known[slo_name, objective_name, definition].retired_ns = now_ns
            for (slo_name, objective_name), (definition, slo, objective) in loaded.items():
                key = slo_name, objective_name, definition
                if key in known:
                    known[key].retired_ns = None
                else:
                    session.add(_row(slo, objective, definition, now_ns))
        after = {key: definition for key, (definition, *_) in loaded.items()}
        return [
            Edit(*key, before.get(key), after.get(key))
            for key in sorted(before.keys() | after.keys())
            if before.get(key) != after.get(key)
        ]


_everything = select(SloVersion)


def _row(slo: Slo, objective: Objective, definition: str, now_ns: int) -> SloVersion:
    document: dict[str, Any] = {"slo": asdict(slo), "objective": asdict(objective)}
    return SloVersion(
        slo=slo.name,
        objective=objective.name,
        definition=definition,
        document=json.dumps(document, sort_keys=True),
        first_seen_ns=now_ns,
        retired_ns=None,
    )
