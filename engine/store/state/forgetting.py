"""What the state database lets go of: changes of alerts, and stretches of counting, that are old.

Removed in pieces, each a short transaction of its own: a kill between two loses nothing but time,
and no evaluation waits long for its turn to write.
"""

from typing import Final

from sqlalchemy import and_, delete, func, select

from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.models import AlertRow, Covered, FlipRow

KEPT_NS: Final = 400 * 86_400_000_000_000
"""As long as verdicts are kept, where no setting says otherwise."""

PIECE: Final = 1_000
PIECES: Final = 50
"""So many at a time: what a year left behind is gone within hours, beside evaluation."""

_SAME: Final = and_(
    *(getattr(FlipRow, column.name) == column for column in AlertRow.__table__.primary_key)
)


class Forgetting:
    """`kept_ns`: for so long it stays; longer than anything looks back."""

    def __init__(
        self, database: State, kept_ns: int = KEPT_NS, piece: int = PIECE, pieces: int = PIECES
    ) -> None:
        self._database = database
        self._kept_ns = kept_ns
        self._piece = piece
        self._pieces = pieces

    def forget(self, now_ns: int) -> None:
        """Remove what is too old, or a bounded part of it: the next call goes on.

        Of an alert that is in trouble still, the first change to each status stays for as long
        as it is: when it began to fire is in them alone. Raises `DBAPIError`.
        """
        before_ns = now_ns - self._kept_ns
        self._forget_flips(before_ns)
        with self._database.reading() as session:
            oldest = session.scalar(select(Covered.begin_ns).where(Covered.end_ns < before_ns))
        if oldest is not None:
            with self._database.writing() as session:
                session.execute(delete(Covered).where(Covered.end_ns < before_ns))

    def _forget_flips(self, before_ns: int) -> None:
        is_old = FlipRow.at_ns < before_ns
        asked = select(FlipRow.id).where(is_old).order_by(FlipRow.at_ns, FlipRow.id)
        with self._database.reading() as session:
            if session.scalar(asked.limit(1)) is None:
                return
        kept = self._begun(before_ns)
        with self._database.reading() as session:
            found = session.scalars(asked.limit(self._piece * self._pieces + len(kept)))
            old = [number for number in found if number not in kept]
        for begin in range(0, len(old), self._piece):
            piece = old[begin : begin + self._piece]
            with self._database.writing() as session:
                session.execute(delete(FlipRow).where(FlipRow.id.in_(piece)))

    def _begun(self, before_ns: int) -> frozenset[int]:
        """Old changes of alerts that are in trouble since: the first to each status."""
        with self._database.reading() as session:
            since_ns = session.scalar(select(func.min(AlertRow.active_since_ns)))
            if since_ns is None or since_ns >= before_ns:
                return frozenset()
            first = (
                select(func.min(FlipRow.id))
                .join(AlertRow, _SAME)
                .where(FlipRow.at_ns >= since_ns, FlipRow.at_ns < before_ns)
                .where(FlipRow.at_ns >= AlertRow.active_since_ns)
                .group_by(*AlertRow.__table__.primary_key, FlipRow.new)
            )
            return frozenset(session.scalars(first))
