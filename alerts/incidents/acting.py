"""What people do to an incident: take it, say that it is mitigated or over, note what they saw."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from tailburn.engine.incidents import Event, Happened, Incident, Life, Step

MOST_TEXT: Final = 4_000
MOST_NAME: Final = 128


class Action(StrEnum):
    """As the command line and the API call it."""

    ACK = "ack"
    MITIGATE = "mitigate"
    RESOLVE = "resolve"
    REOPEN = "reopen"
    OWN = "own"
    NOTE = "note"


class ActionError(ValueError):
    """The incident does not allow it, or what was said is not fit to be kept; says why."""


@dataclass(frozen=True)
class Act:
    """What somebody does. `text`: a note, why, or the name of the owner."""

    action: Action
    who: str
    at_ns: int
    text: str = ""

    def __post_init__(self) -> None:
        if len(self.text) > MOST_TEXT:
            raise ActionError(f"text: {len(self.text):,} characters; {MOST_TEXT:,} at most")
        if not 0 < len(self.who) <= MOST_NAME:
            raise ActionError(f"who: {len(self.who)} characters; want 1 to {MOST_NAME}")
        if self.action in (Action.NOTE, Action.OWN) and not self.text.strip():
            raise ActionError(f"{self.action}: says nothing; want a text")


def acted(incident: Incident, act: Act) -> Step:
    """The incident after it. Raises ActionError."""
    after = _ACTIONS[act.action](incident, act)
    return Step(after, Event(act.at_ns, _HAPPENED[act.action], act.text, act.who))


def _to(life: Life, *wanted: Life) -> Callable[[Incident, Act], Incident]:
    def change(incident: Incident, act: Act) -> Incident:
        if incident.life not in wanted:
            raise ActionError(f"it is {incident.life}; {act.action} wants {' or '.join(wanted)}")
        resolved_ns = act.at_ns if life is Life.RESOLVED else None
        reopened = incident.reopened + (act.action is Action.REOPEN)
        owner = incident.owner or (act.who if life is Life.ACKNOWLEDGED else "")
        return replace(incident, life=life, resolved_ns=resolved_ns, reopened=reopened, owner=owner)

    return change


def _owned(incident: Incident, act: Act) -> Incident:
    if len(act.text) > MOST_NAME:
        raise ActionError(f"owner: {len(act.text)} characters; {MOST_NAME} at most")
    return replace(incident, owner=act.text)


def _noted(incident: Incident, act: Act) -> Incident:
    return incident


_ACTIONS: Final[Mapping[Action, Callable[[Incident, Act], Incident]]] = {
    Action.ACK: _to(Life.ACKNOWLEDGED, Life.OPEN),
    Action.MITIGATE: _to(Life.MITIGATED, Life.OPEN, Life.ACKNOWLEDGED),
    Action.RESOLVE: _to(Life.RESOLVED, Life.OPEN, Life.ACKNOWLEDGED, Life.MITIGATED),
    Action.REOPEN: _to(Life.OPEN, Life.RESOLVED, Life.MITIGATED),
    Action.OWN: _owned,
    Action.NOTE: _noted,
}
_HAPPENED: Final[Mapping[Action, Happened]] = {
    Action.ACK: Happened.ACKNOWLEDGED,
    Action.MITIGATE: Happened.MITIGATED,
    Action.RESOLVE: Happened.RESOLVED,
    Action.REOPEN: Happened.REOPENED,
    Action.OWN: Happened.OWNER,
    Action.NOTE: Happened.NOTE,
}
