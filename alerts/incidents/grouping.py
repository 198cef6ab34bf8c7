"""Which incident an alert belongs to: changes of alerts in, incidents out.

Alerts are of one incident where nothing says that different things serve them, and where they
begin at the same time: what breaks two models in one minute stands before both. What a page is
about ends with its pages: a ticket that goes on for hours neither holds an incident open nor
swallows the next page.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from tailburn.alerts.incidents.places import Place, PlaceOf, are_apart, shared
from tailburn.engine.evaluation.alerts import AlertKey, Flip
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.incidents import Event, Happened, Incident, Life, Member, Step
from tailburn.engine.names import TEAM_LABEL
from tailburn.engine.slo.burn import Severity

SETTLES_NS: Final = 15 * MINUTE_NS
"""So long nothing of an incident fires before it is resolved: what flaps is one incident.

Of a service 1.5 times slower for 45 minutes people were told twice at 5 minutes, once at 15
(docs/lab-truth.md, "Told").
"""
TOGETHER_NS: Final = 5 * MINUTE_NS
"""What begins so soon after an incident has one cause with it, whatever serves it."""
REOPENS_NS: Final = 30 * MINUTE_NS
"""What fires again so soon after it was resolved is the same trouble."""
_QUIET: Final = "none of its alerts fires any more"


def new_key() -> str:
    return uuid.uuid4().hex


class Grouping:
    """Incidents as alerts change. `steps` of the same changes in the same order are the same."""

    def __init__(
        self,
        incidents: Iterable[Incident],
        place_of: PlaceOf,
        key: Callable[[], str] = new_key,
    ) -> None:
        """`incidents`: those that are not over, and those that were until `REOPENS_NS` ago."""
        self._incidents = {incident.key: incident for incident in incidents}
        self._place_of = place_of
        self._new_key = key

    @property
    def incidents(self) -> tuple[Incident, ...]:
        return tuple(self._incidents.values())

    def take(self, flips: Sequence[Flip]) -> list[Step]:
        """What changed, oldest first. An alert without data fires still."""
        steps: list[Step] = []
        for flip in flips:
            steps += self.settle(flip.at_ns)
            if flip.new.fires and not flip.old.fires:
                steps += self._began(flip)
            elif flip.old.fires and not flip.new.fires:
                steps += self._ended(flip)
        return steps

    def settle(self, now_ns: int) -> list[Step]:
        """Resolve what has been quiet for long enough, and forget what was resolved long ago."""
        steps = []
        for incident in self.incidents:
            if incident.is_over or incident.quiet_ns is None:
                continue
            if (at_ns := incident.quiet_ns + SETTLES_NS) <= now_ns:
                after = replace(incident, life=Life.RESOLVED, resolved_ns=at_ns)
                steps.append(self._put(after, Event(at_ns, Happened.RESOLVED, _QUIET)))
        for incident in self.incidents:
            if incident.resolved_ns is not None and now_ns - incident.resolved_ns > REOPENS_NS:
                del self._incidents[incident.key]
        return steps

    def _began(self, flip: Flip) -> list[Step]:
        place = self._place_of(flip.key)
        severity = Severity(flip.key.severity)
        incident = self._of(place, flip.at_ns)
        if incident is None:
            incident = Incident(self._new_key(), flip.at_ns, severity, dict(place))
            return [self._put(_joined(incident, flip, place), _event(flip, Happened.OPENED))]
        after = _joined(incident, flip, place)
        if severity is Severity.PAGE and incident.severity is not Severity.PAGE:
            after = replace(_opened_again(after), severity=severity)
            return [self._put(after, _event(flip, Happened.ESCALATED))]
        if incident.is_over and severity is incident.severity:
            after = replace(_opened_again(after), reopened=incident.reopened + 1)
            return [self._put(after, _event(flip, Happened.REOPENED))]
        return [self._put(after, _event(flip, Happened.JOINED))]

    def _ended(self, flip: Flip) -> list[Step]:
        for incident in self.incidents:
            if any(member.key == flip.key for member in incident.firing):
                after = _quiet_or_not(_left(incident, flip), flip.at_ns)
                return [self._put(after, _event(flip, Happened.ENDED))]
        return []

    def _of(self, place: Place, at_ns: int) -> Incident | None:
        """The incident whose place says most of the same; of equal ones the newest."""
        near = [i for i in self.incidents if self._belongs(i, place, at_ns)]
        return max(near, key=lambda i: (len(shared(i.where, place)), i.opened_ns), default=None)

    def _belongs(self, incident: Incident, place: Place, at_ns: int) -> bool:
        places = {member.key: self._place_of(member.key) for member in incident.members}
        if not all(are_apart(one, place) for one in places.values()):
            return True
        is_ours = incident.where.get(TEAM_LABEL) == place.get(TEAM_LABEL)
        return is_ours and not incident.is_over and at_ns - incident.opened_ns <= TOGETHER_NS

    def _put(self, incident: Incident, event: Event) -> Step:
        self._incidents[incident.key] = incident
        return Step(incident, event)


def _event(flip: Flip, what: Happened) -> Event:
    return Event(flip.at_ns, what, f"{named(flip.key)}: {flip.reason}")


def named(key: AlertKey) -> str:
    """An alert in one line: `page TailburnBudgetBurn of chat ttft_p95, model llama`."""
    by = "".join(f", {name} {value}" for name, value in key.by)
    return f"{key.severity} {key.alertname} of {f'{key.slo} {key.objective}'.strip()}{by}"


def _joined(incident: Incident, flip: Flip, place: Place) -> Incident:
    member = Member(flip.key, flip.at_ns)
    after = replace(
        incident,
        where=shared(incident.where, place),
        members=(*incident.members, member),
    )
    return _quiet_or_not(after, flip.at_ns)


def _left(incident: Incident, flip: Flip) -> Incident:
    members = tuple(
        replace(m, ended_ns=flip.at_ns) if m.key == flip.key and m.ended_ns is None else m
        for m in incident.members
    )
    return replace(incident, members=members)


def _quiet_or_not(incident: Incident, at_ns: int) -> Incident:
    """Note since when nothing fires that is as grave as the incident."""
    if any(m.key.severity == incident.severity for m in incident.firing):
        return replace(incident, quiet_ns=None)
    return replace(incident, quiet_ns=at_ns if incident.quiet_ns is None else incident.quiet_ns)


def _opened_again(incident: Incident) -> Incident:
    return replace(incident, life=Life.OPEN, quiet_ns=None, resolved_ns=None)
