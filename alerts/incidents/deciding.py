"""Changes of alerts in; what happened to incidents, and who is told of it, out."""

from collections.abc import Sequence
from dataclasses import replace

from tailburn.alerts.incidents.grouping import Grouping
from tailburn.alerts.incidents.places import PlaceOf
from tailburn.alerts.incidents.telling import Ways, told
from tailburn.engine.evaluation.alerts import Flip
from tailburn.engine.incidents import Incident, Message, Step


class Deciding:
    """Called with incidents that are not long over, changes, and up to when all is known (ns)."""

    def __init__(self, place_of: PlaceOf, ways: Ways) -> None:
        self._place_of = place_of
        self._ways = ways

    def __call__(
        self, incidents: Sequence[Incident], flips: Sequence[Flip], known_ns: int
    ) -> tuple[list[Step], list[Message]]:
        group = Grouping(incidents, self._place_of)
        known_by = {incident.key: incident.told for incident in incidents}
        steps, messages = [], []
        for step in [*group.take(flips), *group.settle(known_ns)]:
            key = step.incident.key
            before = replace(step.incident, told=known_by.get(key, frozenset()))
            after, some = told(replace(step, incident=before), self._ways)
            known_by[key] = after.told
            steps.append(replace(step, incident=after))
            messages += some
        return steps, messages
