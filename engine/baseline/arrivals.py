"""How many requests each place gets, in slots of 10 s, as they close."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tailburn.engine.grouping import F64

SLOT_NS: Final = 10_000_000_000
SLOTS: Final = 30
"""So many the load looks back: 5 min."""
MAX_PLACES: Final = 5_000
_SLOT_S: Final = 10
_WINDOWS: Final = (1, 6, SLOTS)
_ENOUGH: Final = 20  # in a window shorter than the longest: its rate is off by a quarter at most
_FIRST: Final = 6  # slots until the load of anything is known

Place = tuple[str, ...]


@dataclass
class Arrivals:
    """Requests of the slot that runs and of the 30 before it, by place.

    The load that a request meets is that of the slots before its own, so it is the same whenever
    the request is seen: requests a second over 5 min, the last minute or the last 10 s, whichever
    is most, of those with enough. A sudden rise is matched 10 s after it began, and a fall not
    before 5 min. Until a minute after a beginning it is not known.
    """

    slot: int = 0  # that runs, since the epoch
    begun: int = 0  # the first slot, which may have been seen in part
    _counts: dict[Place, list[int]] = field(default_factory=dict)  # the slot that runs is last

    def begin(self, slot: int) -> None:
        """Go on to a slot; anew where none came for longer than the load looks back."""
        passed = slot - self.slot
        if not 0 <= passed <= SLOTS:
            self._counts, self.begun = {}, slot
        elif passed:
            nothing = [0] * passed
            moved = {place: [*seen[passed:], *nothing] for place, seen in self._counts.items()}
            self._counts = {place: seen for place, seen in moved.items() if any(seen)}
        self.slot = slot

    def rates_per_s(self, places: Sequence[Place]) -> F64:
        """The load that the slot that runs meets; nan where it isn't known."""
        whole = min(self.slot - self.begun - 1, SLOTS)
        if whole < _FIRST:
            return np.full(len(places), np.nan)
        nothing = [0] * (SLOTS + 1)
        seen = np.array([self._counts.get(place, nothing) for place in places], np.float64)
        before = seen.reshape(len(places), SLOTS + 1)[:, :-1]
        rate = np.maximum(before.sum(axis=1), 1) / (whole * _SLOT_S)
        for slots in _WINDOWS[:-1]:
            count = before[:, SLOTS - slots :].sum(axis=1)
            rate = np.maximum(rate, np.where(count >= _ENOUGH, count / (slots * _SLOT_S), 0))
        return rate

    def add(self, place: Place, count: int) -> None:
        """Count requests of the slot that runs; of more places than there is room for none."""
        if place not in self._counts:
            if len(self._counts) >= MAX_PLACES:
                return
            self._counts[place] = [0] * (SLOTS + 1)
        self._counts[place][-1] += count

    def state(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        counts = [[list(place), seen] for place, seen in sorted(self._counts.items())]
        return {"slot": self.slot, "begun": self.begun, "counts": counts}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "Arrivals":
        """What `state` gave."""
        counts = {tuple(place): list(seen) for place, seen in state["counts"]}
        return cls(state["slot"], state["begun"], counts)
