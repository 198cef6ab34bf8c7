"""What must be so for an alert to fire, for all values of an SLO's `by` at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tailburn.engine.baseline.incidents import Incident
from tailburn.engine.evaluation.history import History, Needs
from tailburn.engine.grouping import F64
from tailburn.engine.slo.model import Slo

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Moment:
    """When and over what a condition is judged."""

    history: History
    now: int  # minutes since the epoch
    incidents: Mapping[str, Sequence[Incident]]  # by SLO: their hours are no baseline


@dataclass(frozen=True)
class Seen:
    """What a condition sees, one row for each combination of the values of `by`."""

    by: Sequence[tuple[str, ...]]
    in_trouble: Bools
    value: F64  # nan: not measured
    alive: Bools  # there are data now
    was_alive: Callable[[int], bool]  # of a row: within `FROZEN_AT_MOST_S`


class Condition(Protocol):
    """One kind of trouble."""

    @property
    def needs(self) -> Needs:
        """What it looks back over."""
        ...

    @property
    def freezes(self) -> bool:
        """Whether its alert outlives the data."""
        ...

    def look(self, slo: Slo, at: Moment) -> Seen:
        """Everything the history knows of it."""
        ...

    def told(self, value: float | None) -> str:
        """What was measured and what is too much, in words."""
        ...


def nothing(count: int) -> Bools:
    """So many times no."""
    return np.zeros(count, np.bool_)


def never(row: int) -> bool:
    """An alert that doesn't outlive its data asks for none."""
    return False
