"""Who tells people, of several services on one database: the holder of a lease that runs out.

All times are by the clock of the database, so clocks of hosts that are off do no harm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, cast, delete, func, select
from sqlalchemy.orm import Session

from tailburn.engine.store.state.conflict import upsert
from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.models import SHARED_TABLES, Base, LeaseRow, ServiceRow

LASTS_S: Final = 12.0
"""So long it holds without a word of its holder."""
KEPT_S: Final = 86_400.0
"""So long a service is shown that says nothing any more."""

_NS: Final = 1_000_000_000
_PAGING: Final = "paging"
_TABLES: Final = Base.metadata.tables
_leases: Final = _TABLES[f"{SHARED_TABLES}.{LeaseRow.__tablename__}"]
_services: Final = _TABLES[f"{SHARED_TABLES}.{ServiceRow.__tablename__}"]
_now_unix_ns: Final = cast(func.extract("epoch", func.clock_timestamp()) * _NS, BigInteger)


@dataclass(frozen=True)
class Standing:
    """A service as it says that it stands. `covered_ratio`: of 24 h, in which it counted."""

    name: str
    evaluated_ns: int | None
    covered_ratio: float

    @property
    def has(self) -> str:
        """How complete its store is, in words."""
        return f"its store has {100 * self.covered_ratio:.0f} % of the last 24 h"


@dataclass(frozen=True)
class Service:
    """A service that was seen of late. `term`: what it holds the lease with; None: it stands by."""

    id: str
    standing: Standing
    began_unix_ns: int
    silent_s: float
    term: int | None

    @property
    def stands_by(self) -> bool:
        return self.term is None and self.silent_s < LASTS_S


class Lease:
    """The lease as one life of a service has it."""

    def __init__(self, state: State, holder: str) -> None:
        """`holder`: never the same for two lives of any service."""
        self._state = state
        self.holder = holder

    def renew(self, standing: Standing) -> int | None:
        """Say that it lives; take the lease where it is free. Its term, None: another has it.

        Raises `DBAPIError`.
        """
        with self._state.writing() as session:
            now_ns = _now_ns(session)
            _say(session, self.holder, standing, now_ns)
            return _take(session, self.holder, now_ns)

    def let_go(self) -> None:
        """Another may have it at once. Raises `DBAPIError`."""
        with self._state.writing() as session:
            row = session.get(LeaseRow, _PAGING, with_for_update=True)
            if row is not None and row.holder == self.holder:
                row.until_unix_ns = 0
            session.execute(delete(ServiceRow).where(ServiceRow.id == self.holder))


def is_held(session: Session, holder: str) -> LeaseRow | None:
    """The lease, where it is this holder's; nobody else gets it before the session ends."""
    row = session.get(LeaseRow, _PAGING, with_for_update={"read": True}, populate_existing=True)
    if row is None or row.holder != holder or row.until_unix_ns <= _now_ns(session):
        return None
    return row


def services(state: State) -> Sequence[Service]:
    """Those seen of late, who began first comes first. Raises `DBAPIError`."""
    with state.reading() as session:
        now_ns = _now_ns(session)
        lease = session.get(LeaseRow, _PAGING)
        rows = list(session.scalars(select(ServiceRow).order_by(ServiceRow.began_unix_ns)))
        is_valid = lease is not None and lease.until_unix_ns > now_ns
        return [
            Service(
                id=row.id,
                standing=Standing(row.name, row.evaluated_ns, row.covered_ratio),
                began_unix_ns=row.began_unix_ns,
                silent_s=(now_ns - row.seen_unix_ns) / _NS,
                term=lease.term if lease and is_valid and lease.holder == row.id else None,
            )
            for row in rows
        ]


def _now_ns(session: Session) -> int:
    now_ns = session.scalar(select(_now_unix_ns))
    assert now_ns is not None
    return now_ns


def _say(session: Session, holder: str, standing: Standing, now_ns: int) -> None:
    said = {
        "name": standing.name[:256],
        "seen_unix_ns": now_ns,
        "evaluated_ns": standing.evaluated_ns,
        "covered_ratio": standing.covered_ratio,
    }
    row = upsert(session, _services).values(id=holder, began_unix_ns=now_ns, **said)
    session.execute(row.on_conflict_do_update(index_elements=["id"], set_=said))
    old_ns = now_ns - round(KEPT_S * _NS)
    session.execute(delete(ServiceRow).where(ServiceRow.seen_unix_ns < old_ns))


def _take(session: Session, holder: str, now_ns: int) -> int | None:
    first = {"what": _PAGING, "holder": "", "term": 0, "taken_up_term": 0, "until_unix_ns": 0}
    session.execute(upsert(session, _leases).values(**first).on_conflict_do_nothing())
    row = session.get(LeaseRow, _PAGING, with_for_update=True)
    assert row is not None
    if row.holder != holder:
        if row.until_unix_ns > now_ns:
            return None
        row.holder, row.term = holder, row.term + 1
    row.until_unix_ns = now_ns + round(LASTS_S * _NS)
    return row.term
