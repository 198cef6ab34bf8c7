"""Messages that nobody wants: held while a silence lasts, and dropped where it was over before."""

from tailburn.alerts.incidents.places import PlaceOf
from tailburn.alerts.pager.pager import NOW, Answer
from tailburn.alerts.silences.matching import silenced_until_ns
from tailburn.engine.incidents import Incident, What
from tailburn.engine.store.state.deliveries import SILENCED, Deliveries, Delivery
from tailburn.engine.store.state.incidents import Incidents
from tailburn.engine.store.state.silences import Silences

OVER: str = "it was silenced, and over before anybody was told"


class Silencing:
    """By the silences that are written down."""

    def __init__(
        self, incidents: Incidents, deliveries: Deliveries, silences: Silences, place_of: PlaceOf
    ) -> None:
        self._incidents = incidents
        self._deliveries = deliveries
        self._silences = silences
        self._place_of = place_of

    def until_ns(self, incident: Incident, wall_ns: int) -> int | None:
        """Until when nobody is told of an incident (wall clock); None: it is not silenced."""
        silences = self._silences.all(wall_ns)
        return silenced_until_ns(incident, silences, self._place_of, wall_ns) if silences else None

    def wanted(self, delivery: Delivery, wall_ns: int) -> Answer:
        """Of an end only those are told who know of the begin."""
        incident = self._incidents.one(delivery.incident)
        if incident is None:
            return Answer(drop="its incident is forgotten")
        if delivery.what is What.RESOLVE:
            return NOW if self._is_known(delivery) else Answer(drop=OVER)
        if incident.is_over and delivery.error == SILENCED:
            return Answer(drop=OVER)
        until_ns = None if incident.is_over else self.until_ns(incident, wall_ns)
        return NOW if until_ns is None else Answer(hold_until_unix_ns=until_ns)

    def _is_known(self, resolve: Delivery) -> bool:
        """Whether the begin came through by the same channel, or failed for another reason."""
        return any(
            each.channel == resolve.channel and each.what is What.TRIGGER and each.error != OVER
            for each in self._deliveries.of(resolve.incident)
        )
