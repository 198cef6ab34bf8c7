"""Nothing comes: requests that wait and never finish, and budgets whose data have ended."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tailburn.engine.evaluation.conditions import Moment, Seen, never, nothing
from tailburn.engine.evaluation.history import Needs
from tailburn.engine.evaluation.windows import DAY_S, MINUTE_S, SAMPLED_S
from tailburn.engine.slo.model import Slo

SEEN_RATIO: Final = 0.8
"""Of a window's minutes: so many must have told what is in flight, or it is not known to wait."""
_SAMPLED: Final = SAMPLED_S // MINUTE_S
_DAY: Final = DAY_S // MINUTE_S


@dataclass(frozen=True)
class Stalled:
    """Requests are in flight at every minute of a window, and none gets on."""

    window_s: int

    freezes = False

    @property
    def needs(self) -> Needs:
        return Needs(in_flight_s=self.window_s)

    def look(self, slo: Slo, at: Moment) -> Seen:
        window = self.window_s // MINUTE_S
        by, in_flight = at.history.in_flight.window(slo.name, at.now - window, at.now)
        told = ~np.isnan(in_flight)
        least = np.where(told, in_flight, np.inf).min(axis=0, initial=np.inf)
        waited = (told.sum(axis=0) >= seen_least(self.window_s)) & (least > 0)
        if waited.any():
            moved = self._moved(slo, at)
            waited &= [values not in moved for values in by]
        return Seen(by, waited, least, told.sum(axis=0) > 0, never)

    def told(self, value: float | None) -> str:
        waiting = "requests" if value is None else f"{value:g} requests or more"
        return f"{waiting} in flight for {self.window_s // MINUTE_S} min, and none got on"

    def _moved(self, slo: Slo, at: Moment) -> set[tuple[str, ...]]:
        """The values of `by` of which some request ended within the window."""
        ended = at.history.counts.ended(self.window_s, at.now) > 0
        groups = at.history.counts.of_slo(slo.name)
        return {group.by[i] for group in groups for i in np.flatnonzero(ended[group.columns])}


@dataclass(frozen=True)
class Gone:
    """A budget's data have ended within a day; or it has none at all, of any series."""

    objective: str
    definition: str

    freezes = False

    @property
    def needs(self) -> Needs:
        return Needs(budgets=((self.objective, self.definition),))

    def look(self, slo: Slo, at: Moment) -> Seen:
        counts, coverage = at.history.counts, at.history.coverage
        group = counts.group((slo.name, self.objective, self.definition))
        births = counts.births[group.columns]
        ever = coverage.sampled(at.now - _DAY, at.now, births) > 0
        alive = coverage.is_rated(_SAMPLED, at.now, births)
        if ever.any() or alive.any():
            value = np.full(len(ever), np.nan)
            return Seen(group.by, ever & ~alive, value, alive, never)
        return Seen([()], ~nothing(1), np.full(1, np.nan), nothing(1), never)

    def told(self, value: float | None) -> str:
        return f"{self.objective} has no data"


def seen_least(window_s: int) -> int:
    """How many minutes of a window must have told what is in flight."""
    return int(SEEN_RATIO * window_s / MINUTE_S)
