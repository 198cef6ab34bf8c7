"""Changes of alerts become incidents, on a thread of its own, as soon as they are written down.

A kill between two steps loses nothing: changes that nobody took in are taken in by the next life.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sqlalchemy.exc import DBAPIError

from tailburn.alerts.incidents.acting import Act, acted
from tailburn.alerts.incidents.deciding import Deciding
from tailburn.alerts.incidents.grouping import REOPENS_NS, SETTLES_NS
from tailburn.alerts.incidents.places import places_of
from tailburn.alerts.incidents.telling import Ways, told
from tailburn.app.paging.silencing import Silencing
from tailburn.app.pairing import Pairing
from tailburn.engine.incidents import Event, Happened, Incident, Step
from tailburn.engine.slo.model import Slo
from tailburn.engine.store.state.changes import Changes
from tailburn.engine.store.state.database import State, reason_of
from tailburn.engine.store.state.deliveries import Deliveries, Delivery
from tailburn.engine.store.state.forgetting import KEPT_NS
from tailburn.engine.store.state.incidents import Decided, Incidents
from tailburn.engine.store.state.lease import Service, services
from tailburn.engine.store.state.silences import Silences

log = logging.getLogger(__name__)

STEP_S: Final = 0.5
FORGETS_NS: Final = 3_600_000_000_000
_LOUD: Final = (Happened.OPENED, Happened.ESCALATED, Happened.REOPENED, Happened.RESOLVED)


class IncidentKeeping:
    """The incidents of a service. Everything may be asked from any thread."""

    def __init__(
        self,
        slos: Iterable[Slo],
        database: State,
        ways: Ways,
        wall_ns: Callable[[], int],
        kept_ns: int = KEPT_NS,
        pairing: Pairing | None = None,
    ) -> None:
        """`ways`: the channels that each severity is told by; `wall_ns`: when messages are due.

        `kept_ns`: how long incidents and silences are, once they are over; `pairing`: which of
        several services takes in changes.
        """
        place_of = places_of(slos)
        self.incidents = Incidents(database, pairing.holder if pairing else None)
        self._database = database
        self._pairing = pairing
        self.deliveries = Deliveries(database)
        self.silences = Silences(database)
        self.changes = Changes(database)
        self.silencing = Silencing(self.incidents, self.deliveries, self.silences, place_of)
        self.heard = 0
        """Counts up with each word of an Alertmanager: somebody may have done something there."""
        self._ways = ways
        self._wall_ns = wall_ns
        self._kept_ns = kept_ns
        self._forgets_unix_ns = 0
        self._decide = Deciding(place_of, ways)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_failing = False

    def start(self) -> None:
        """Take in changes from now on, until `close`."""
        self._thread = threading.Thread(target=self._run, name="incidents", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def leads(self) -> bool:
        """Whether this service tells people, and no other does."""
        return self._pairing is None or self._pairing.leads()

    def services(self) -> Sequence[Service]:
        """Those of which one tells people; none where there is no other."""
        return services(self._database) if self._pairing else []

    def act(self, number: int, act: Act) -> Incident | None:
        """Write down what a person does; None where there is no such incident.

        Raises ActionError where the incident does not allow it, and `DBAPIError`.
        """

        def decide(incident: Incident) -> Decided:
            step = acted(incident, act)
            after, messages = told(step, self._ways)
            return [Step(after, step.event)], messages

        return self.incidents.change(number, decide, self._wall_ns())

    def hear(self, number: int, text: str, at_ns: int) -> None:
        """Note whom an Alertmanager told of an incident; the same words in a row are one."""
        self.heard += 1
        told = [e for e in self.incidents.timeline(number) if e.what is Happened.TOLD]
        if told and told[-1].text == text:
            return
        event = Event(at_ns, Happened.TOLD, text)
        self.incidents.change(number, lambda i: ([Step(i, event)], []), self._wall_ns())

    def of(self, number: int) -> Sequence[Delivery]:
        """The messages that tell of an incident."""
        return self.deliveries.of(number)

    def step(self) -> None:
        """Take in all that is waiting."""
        while self.leads() and not self._stopped.is_set():
            decided = self.incidents.advance(REOPENS_NS, SETTLES_NS, self._decide, self._wall_ns())
            if decided is None or not decided[0]:
                return
            for step in decided[0]:
                _log(step)

    def forget(self) -> None:
        """Remove what was over long ago, once an hour."""
        now_ns = self._wall_ns()
        if now_ns < self._forgets_unix_ns:
            return
        self.incidents.forget(now_ns - self._kept_ns)
        self.silences.forget(now_ns - self._kept_ns)
        self.changes.forget(now_ns - self._kept_ns)
        self._forgets_unix_ns = now_ns + FORGETS_NS

    def _run(self) -> None:
        while not self._stopped.wait(STEP_S):
            try:
                self.step()
                self.forget()
            except DBAPIError as error:
                if not self._is_failing:
                    log.error("incidents can't be written down: %s", reason_of(error))
                self._is_failing = True
            except Exception:
                if not self._is_failing:
                    log.exception("changes of alerts can't be taken in; it is tried again")
                self._is_failing = True
            else:
                self._is_failing = False


def _log(step: Step) -> None:
    if step.what in _LOUD:
        incident = step.incident
        slos = ", ".join(incident.slos)
        log.warning("incident of %s (%s) %s: %s", slos, incident.severity, step.what,
                    step.event.text)  # fmt: skip
