"""What a service finds that tells people from now on, in the place of another.

Each has judged the same alerts by a store of its own, and the one before may have told of some
and not of others. So what it is to tell of is the difference between how alerts stand here and
what incidents have: nothing is told twice, and nothing is left out.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from tailburn.engine.evaluation.alerts import AlertKey, Flip, State, Status
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.incidents import Member
from tailburn.engine.store.state.alerts import alert_key, evaluated_ns, standing_in
from tailburn.engine.store.state.models import FlipRow, IncidentAlert

SAME_NS: Final = 10 * MINUTE_NS
"""So far apart two services may see the same trouble begin."""
_BEGAN: Final = "it fires as another service begins to tell of it"
_ENDED: Final = "it does not fire here, where incidents are told from now on"


def taken_up(session: Session) -> list[Flip]:
    """Changes of alerts that lead from what incidents have to how they stand here.

    What nobody took in until now is in it, and is taken in by it.
    """
    known_ns = evaluated_ns(session) or 0
    rows = session.scalars(select(IncidentAlert).where(IncidentAlert.ended_ns.is_(None)))
    members = [Member(alert_key(row), row.began_ns) for row in rows]
    session.execute(
        update(FlipRow).where(FlipRow.delivered_ns.is_(None)).values(delivered_ns=known_ns)
    )
    return differences(standing_in(session), members, known_ns)


def differences(
    states: Mapping[AlertKey, State], members: Iterable[Member], known_ns: int
) -> list[Flip]:
    """`members`: the stretches of alerts without an end, of all incidents.

    Of an alert that has several the last counts: an incident that a person resolved has no end
    of those that fired still.
    """
    last: dict[AlertKey, Member] = {}
    for member in sorted(members, key=lambda m: m.began_ns):
        last[member.key] = member
    flips = []
    for key, state in states.items():
        known = last.get(key)
        is_known = known is not None and known.began_ns >= state.active_since_ns - SAME_NS
        if state.status.fires and not is_known:
            why = f"{_BEGAN}: {state.why}"
            flips.append(Flip(key, Status.INACTIVE, state.status, state.since_ns, state.value, why))
    for key in last:
        here = states.get(key)
        if here is None or not here.status.fires:
            flips.append(Flip(key, Status.FIRING, Status.INACTIVE, known_ns, None, _ENDED))
    return sorted(flips, key=lambda flip: flip.at_ns)
