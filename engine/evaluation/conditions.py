"""What must be so for an alert to fire, for all values of an SLO's `by` at once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tailburn.engine.grouping import F64
from tailburn.engine.slo.model import Clock, Slo

if TYPE_CHECKING:
    from tailburn.engine.evaluation.history import History

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Seen:
    """What a condition sees, one row for each combination of the values of `by`."""

    by: list[tuple[str, ...]]
    in_trouble: Bools
    value: F64  # nan: not measured
    alive: Bools  # there are data now
    remembered: Bools  # there were some within `FROZEN_AT_MOST_S`


class Condition(Protocol):
    """One kind of trouble."""

    def look(self, history: "History", slo: Slo, now_ns: int) -> Seen:
        """All that the history knows of it at `now_ns`, a whole minute."""
        ...

    def told(self, value: float | None) -> str:
        """Why it is trouble, in words."""
        ...


@dataclass(frozen=True)
class Share:
    """More than this share of a window's requests is bad, of so many at least."""

    window_s: int
    threshold_ratio: float
    at_least: bool = False  # the threshold itself is too much
    least_requests: float = 0.0
    least_bad: float = 0.0


@dataclass(frozen=True)
class Shares:
    """Too large a share of bad requests over every one of some windows: burn, tier, deadline."""

    objective: str
    definition: str  # empty: any
    shares: tuple[Share, ...]
    healthy_ratio: float = 0.0  # chance is judged against this share over the first window; 0: not


@dataclass(frozen=True)
class QuantileOver:
    """A percentile of 5 min above a threshold: critical tier, scale-out."""

    clock: Clock
    percentile: str
    threshold_s: float
    least: int


@dataclass(frozen=True)
class OverBaseline:
    """p99 of 5 min over this hour's on the days before."""

    clock: Clock
    ratio: float
    days: int


@dataclass(frozen=True)
class Consistency:
    """p99 over p50 of an hour."""

    clock: Clock
    ratio: float


@dataclass(frozen=True)
class Stalled:
    """Requests in flight all the time, and none gets on."""

    window_s: int


@dataclass(frozen=True)
class Gone:
    """A budget's data have ended, or never were."""

    objective: str
    definition: str


@dataclass(frozen=True)
class UnmeasuredShare:
    """Too many requests can't be judged."""

    objective: str
    definition: str
    window_s: int
    threshold_ratio: float
