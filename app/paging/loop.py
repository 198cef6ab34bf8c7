"""Messages go out: each channel and each Alertmanager has a thread, so none waits for another."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy.exc import DBAPIError

from tailburn.alerts.pager.alertmanager import ALERTNAME, ENDED_NS, RESEND_NS, Alertmanager, Sent
from tailburn.alerts.pager.http import Poster
from tailburn.alerts.pager.page import DeliveryError, Page
from tailburn.alerts.pager.pager import Pager
from tailburn.alerts.pager.text import text, title
from tailburn.alerts.silences.matching import INCIDENT_LABEL
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.paging.channels import People
from tailburn.app.paging.facts import Facts
from tailburn.app.paging.heeding import Heeding
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.incidents import Incident, What
from tailburn.engine.names import SEVERITY_LABEL, SLO_LABEL, TEAM_LABEL
from tailburn.engine.slo.burn import Severity
from tailburn.engine.store.state.deliveries import Delivery

log = logging.getLogger(__name__)

BEAT_NS: Final = MINUTE_NS
_STEP_S: Final = 0.5


class Wording:
    """Pages in words, by what is known at the time."""

    def __init__(self, keeping: IncidentKeeping, facts: Facts, now_ns: Callable[[], int]) -> None:
        self._keeping = keeping
        self._facts = facts
        self._now_ns = now_ns

    def page(self, delivery: Delivery) -> Page:
        """What a message says. Raises LookupError where its incident is forgotten."""
        incident = self._keeping.incidents.one(delivery.incident)
        if incident is None:
            raise LookupError(f"incident {delivery.incident} is not there any more")
        told = self._facts.told(incident, delivery.what, self._now_ns())
        return Page(
            key=incident.key,
            id=delivery.message,
            what=delivery.what,
            severity=delivery.severity,
            title=title(told),
            text=text(told),
            began_ns=told.began_ns,
            at_ns=delivery.at_ns,
            labels=labels(incident),
            links=told.links,
        )

    def annotations(self, incident: Incident) -> dict[str, str]:
        """As Alertmanager shows them."""
        what = What.RESOLVE if incident.is_over else What.TRIGGER
        told = self._facts.told(incident, what, self._now_ns())
        links = {f"{name}_url": url for name, url in told.links.items()}
        return {"summary": title(told), "description": text(told), **links}


def labels(incident: Incident) -> dict[str, str]:
    """What tells it from others for receivers: as it was when it opened, whatever joins it."""
    first = incident.members[0].key
    return {
        "alertname": ALERTNAME,
        INCIDENT_LABEL: str(incident.id),
        SLO_LABEL: first.slo,
        TEAM_LABEL: incident.where.get(TEAM_LABEL, ""),
        **dict(first.by),
    }


@dataclass
class Refreshing:
    """One Alertmanager, told of all that is open each half minute, and of what changes at once."""

    alertmanager: Alertmanager
    keeping: IncidentKeeping
    wording: Wording
    _told: dict[str, tuple[object, dict[str, str]]] = field(default_factory=dict)
    _before: object = None
    _due_unix_ns: int = 0

    def step(self, wall_ns: int) -> None:
        """Raises DeliveryError; it is tried again at the next step that is due."""
        found = self.keeping.incidents.all(wall_ns - ENDED_NS)
        incidents = self.keeping.silencing.not_silenced(found, wall_ns)
        now = [_stands(incident) for incident in incidents]
        if not incidents or (now == self._before and wall_ns < self._due_unix_ns):
            self._before = now
            return
        self._due_unix_ns = wall_ns + RESEND_NS // 3  # where it fails
        keys = {incident.key for incident in incidents}
        self._told = {key: told for key, told in self._told.items() if key in keys}
        sent = [alert for incident in incidents for alert in self._alerts(incident)]
        self.alertmanager.post(sent, wall_ns)
        self._before, self._due_unix_ns = now, wall_ns + RESEND_NS

    def _alerts(self, incident: Incident) -> list[Sent]:
        """The incident; and where it got worse, the end of what it was before."""
        known, annotations = self._told.get(incident.key, (None, {}))
        if known != _stands(incident):
            annotations = self.wording.annotations(incident)
            self._told[incident.key] = _stands(incident), annotations
        ends_ns = incident.resolved_ns if incident.is_over else None
        named = labels(incident)
        found = [
            Sent({**named, SEVERITY_LABEL: str(incident.severity)}, annotations,
                 incident.opened_ns, ends_ns)
        ]  # fmt: skip
        pages = [m.began_ns for m in incident.members if m.key.severity == Severity.PAGE]
        if incident.severity is Severity.PAGE and min(pages, default=0) > incident.opened_ns:
            ticket = {**named, SEVERITY_LABEL: str(Severity.TICKET)}
            found.append(Sent(ticket, annotations, incident.opened_ns, min(pages)))
        return found


@dataclass
class Beating:
    """Calls an outside receiver while all is well, for it to page where the calls end."""

    poster: Poster
    is_well: Callable[[], bool]
    _due_unix_ns: int = 0

    def step(self, wall_ns: int) -> None:
        """Raises DeliveryError; the next one is due as if it had come through."""
        if wall_ns < self._due_unix_ns or not self.is_well():
            return
        self._due_unix_ns = wall_ns + BEAT_NS
        self.poster.post({})


def _stands(incident: Incident) -> object:
    """What a new message would be due for."""
    return incident.key, incident.life, incident.severity, len(incident.members), incident.reopened


class Paging:
    """The threads of a service."""

    def __init__(
        self,
        keeping: IncidentKeeping,
        people: People,
        facts: Facts,
        now_ns: Callable[[], int],
        is_well: Callable[[], bool],
    ) -> None:
        """`is_well`: whether alerts are evaluated, and written down."""
        self._keeping = keeping
        self._is_well = is_well
        self._people = people
        self._wording = Wording(keeping, facts, now_ns)
        self._now_ns = now_ns
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Send from now on, until `close`."""
        self._give_up_strays()
        for name, step in self._steps():
            thread = threading.Thread(
                target=self._run, args=(name, step), name=f"to {name}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Ends once what is being sent is sent; what is left is sent by the next life."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._people.close()

    def _steps(self) -> Iterator[tuple[str, Callable[[int], object]]]:
        for channel in self._people.channels:
            deliveries, word = self._keeping.deliveries, self._wording.page
            wanted = self._keeping.silencing.wanted
            leads = self._keeping.leads
            yield channel.name, Pager(channel, deliveries, word, self._now_ns, wanted, leads).step
        for one in self._people.alertmanagers:
            yield one.name, Refreshing(one, self._keeping, self._wording).step
        for theirs in self._people.silences:
            heeding = Heeding(theirs, self._keeping, self._now_ns)
            yield f"{theirs.name}, silences", heeding.step
        if self._people.heartbeat is not None:
            yield "heartbeat", Beating(self._people.heartbeat, self._is_well).step

    def _give_up_strays(self) -> None:
        """Messages by a way that is no more in the settings."""
        names = [channel.name for channel in self._people.channels]
        for delivery in self._keeping.deliveries.strayed(names):
            error = f"{delivery.channel} is not in the settings any more"
            self._keeping.deliveries.failed(delivery, error, None, self._now_ns())

    def _run(self, name: str, step: Callable[[int], object]) -> None:
        said = ""
        while not self._stopped.wait(_STEP_S):
            if not self._keeping.leads():
                continue
            try:
                step(time.time_ns())
            except (DeliveryError, DBAPIError) as error:
                if str(error) != said:
                    log.error("incidents are not told to %s: %s; it is tried again", name, error)
                said = str(error)
            except Exception:
                if said != name:
                    log.exception("incidents can't be told to %s; it is tried again", name)
                said = name
            else:
                said = ""
