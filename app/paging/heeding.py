"""What people do in an Alertmanager is heeded here, and an acknowledgement here is there.

A silence that keeps an incident back there keeps its messages back here as well, for as long. One
whose comment begins with `ACK` acknowledges it. An incident that is acknowledged here is repeated
by nobody there, until it is over or gets worse.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tailburn.alerts.incidents.acting import Act, Action, ActionError
from tailburn.alerts.pager.text import clock
from tailburn.alerts.silences.matching import INCIDENT_LABEL
from tailburn.alerts.silences.theirs import Theirs, TheirSilences
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.incidents import Incident, Life
from tailburn.engine.silences import Silence

log = logging.getLogger(__name__)

LOOKS_NS: Final = MINUTE_NS // 4
ACK_LASTS_NS: Final = 60 * MINUTE_NS
"""So long an acknowledgement holds there that is not renewed: a service that dies mutes nobody."""
_RENEWED_NS: Final = 10 * MINUTE_NS
_HANDLED: Final = (Life.ACKNOWLEDGED, Life.MITIGATED)


@dataclass
class Heeding:
    """One Alertmanager's silences; `step` is called by one thread."""

    theirs: TheirSilences
    keeping: IncidentKeeping
    now_ns: Callable[[], int]
    _heard: int = 0
    _due_unix_ns: int = 0

    def step(self, wall_ns: int) -> None:
        """Raises DeliveryError and `DBAPIError`; it is looked again when that is due."""
        heard = self.keeping.heard
        if wall_ns < self._due_unix_ns and heard == self._heard:
            return
        self._heard, self._due_unix_ns = heard, wall_ns + LOOKS_NS
        incidents = {i.id or 0: i for i in self.keeping.incidents.all(is_open=True)}
        active = self.theirs.active()
        if incidents:
            self._heed(incidents, active)
        self._let_end(active, wall_ns)
        self._tell(incidents, active, wall_ns)

    def _heed(self, incidents: Mapping[int, Incident], active: Mapping[str, Theirs]) -> None:
        known = {silence.origin for silence in self.keeping.silences.all(0)}
        for number, ids in self.theirs.muted().items():
            incident = incidents.get(number)
            for one in (active[id] for id in ids if id in active):
                if incident is None or one.is_ours:
                    continue
                if one.is_ack:
                    if incident.life is Life.OPEN:
                        self._act(number, Action.ACK, one.who, f"in Alertmanager: {one.why}")
                elif (origin := self._origin(one, number)) not in known:
                    self.keeping.silences.add(_mirrored(one, number, origin))
                    until = clock(one.ends_unix_ns)
                    text = f"silenced in Alertmanager until {until}: {one.why}"
                    self._act(number, Action.NOTE, one.who, text)

    def _act(self, number: int, action: Action, who: str, text: str) -> None:
        try:
            self.keeping.act(number, Act(action, who, self.now_ns(), text))
        except ActionError as error:  # somebody was quicker
            log.info("incident %d: %s", number, error)

    def _let_end(self, active: Mapping[str, Theirs], wall_ns: int) -> None:
        """What ended there ends here, and what lasts longer there lasts longer here."""
        for silence in self.keeping.silences.all(wall_ns):
            name, _, id = silence.origin.partition("#")
            if name != self.theirs.name or silence.id is None:
                continue
            one = active.get(id.partition("/")[0])
            if one is None:
                self.keeping.silences.end(silence.id, wall_ns)
            elif one.ends_unix_ns != silence.ends_unix_ns:
                self.keeping.silences.lasts(silence.id, one.ends_unix_ns)

    def _tell(
        self, incidents: Mapping[int, Incident], active: Mapping[str, Theirs], wall_ns: int
    ) -> None:
        """Acknowledgements of here."""
        ours = {one.of: one for one in active.values() if one.is_ours}
        handled = {
            (str(number), str(incident.severity)): incident
            for number, incident in incidents.items()
            if incident.life in _HANDLED
        }
        for of, one in ours.items():
            if of not in handled:
                self.theirs.end(one.id)
        for of, incident in handled.items():
            known = ours.get(of)
            if known is None or known.ends_unix_ns - wall_ns < _RENEWED_NS:
                ends_ns = wall_ns + ACK_LASTS_NS
                id = known.id if known else ""
                self.theirs.acknowledge(of, incident.owner, ends_ns, wall_ns, id)

    def _origin(self, one: Theirs, number: int) -> str:
        return f"{self.theirs.name}#{one.id}/{number}"


def _mirrored(one: Theirs, number: int, origin: str) -> Silence:
    return Silence(
        (f'{INCIDENT_LABEL}="{number}"',), one.starts_unix_ns, one.ends_unix_ns, one.who, one.why,
        origin=origin,
    )  # fmt: skip
