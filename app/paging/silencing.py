"""Messages that nobody wants: held while a silence lasts, and dropped where it was over before."""

from collections.abc import Sequence
from typing import Final

from tailburn.alerts.incidents.places import PlaceOf
from tailburn.alerts.pager.pager import NOW, Answer
from tailburn.alerts.silences.matching import silenced_until_ns
from tailburn.engine.incidents import Incident, What
from tailburn.engine.silences import Silence
from tailburn.engine.store.state.deliveries import SILENCED, Deliveries, Delivery
from tailburn.engine.store.state.incidents import Incidents
from tailburn.engine.store.state.silences import Silences

OVER: Final = "it was silenced, and over before anybody was told"


class Silencing:
    """By the silences that are written down."""

    def __init__(
        self, incidents: Incidents, deliveries: Deliveries, silences: Silences, place_of: PlaceOf
    ) -> None:
        self._incidents = incidents
        self._deliveries = deliveries
        self._silences = silences
        self._place_of = place_of

    def not_silenced(self, incidents: Sequence[Incident], wall_ns: int) -> list[Incident]:
        """Those of which people are to be told now."""
        silences = self._silences.all(wall_ns) if incidents else []
        return [i for i in incidents if self._until_ns(i, silences, wall_ns) is None]

    def wanted(self, delivery: Delivery, wall_ns: int) -> Answer:
        """Of an end only those are told who know of the begin."""
        incident = self._incidents.one(delivery.incident)
        if incident is None:
            return Answer(drop="its incident is forgotten")
        if delivery.what is What.RESOLVE:
            return NOW if self._is_known(delivery) else Answer(drop=OVER)
        if incident.is_over and delivery.error == SILENCED:
            return Answer(drop=OVER)
        silences = [] if incident.is_over else self._silences.all(wall_ns)
        until_ns = self._until_ns(incident, silences, wall_ns)
        return NOW if until_ns is None else Answer(hold_until_unix_ns=until_ns)

    def _until_ns(
        self, incident: Incident, silences: Sequence[Silence], wall_ns: int
    ) -> int | None:
        return silenced_until_ns(incident, silences, self._place_of, wall_ns)

    def _is_known(self, resolve: Delivery) -> bool:
        """Whether the begin came through by the same channel, or failed for another reason."""
        return any(
            each.channel == resolve.channel and each.what is What.TRIGGER and each.error != OVER
            for each in self._deliveries.of(resolve.incident)
        )
