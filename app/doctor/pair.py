"""Whether somebody tells people, and somebody else could."""

from collections.abc import Iterator
from typing import Final

from tailburn.app.doctor.finding import Finding, State
from tailburn.app.errors import UserError
from tailburn.app.settings import Settings
from tailburn.app.state import known_state
from tailburn.engine.store.state.lease import services

_SUBJECT: Final = "pair"
_START: Final = "start a service with this setting and a store of its own"


def pair(settings: Settings) -> Iterator[Finding]:
    """One line; none without the setting, or where the state can't be read: that is told above."""
    if not settings.pair:
        return
    try:
        with known_state(settings) as state:
            found = services(state) if state else []
    except UserError:
        return
    leading = [one for one in found if one.term is not None]
    standing_by = [one for one in found if one.stands_by]
    if not leading:
        yield Finding(_SUBJECT, State.BAD, f"{settings.pair}: no service tells people", _START)
        return
    (leader,) = leading
    seen = f"{leader.standing.name} tells people, {leader.standing.has}"
    if not standing_by:
        yield Finding(_SUBJECT, State.WARN, f"{seen}; none stands by", _START)
        return
    others = ", ".join(f"{one.standing.name} stands by, {one.standing.has}" for one in standing_by)
    yield Finding(_SUBJECT, State.OK, f"{seen}; {others}")
