"""The state of every alert, minute by minute, as Prometheus would have it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tailburn.engine.baseline.incidents import Incident
from tailburn.engine.evaluation.conditions import Condition
from tailburn.engine.evaluation.history import History
from tailburn.engine.slo.model import Slo


class Status(StrEnum):
    """How an alert stands. Frozen is firing without the data that it rests on."""

    INACTIVE = "inactive"
    PENDING = "pending"  # in trouble, not yet for long enough
    FIRING = "firing"
    FROZEN = "frozen"


class AlertKey(NamedTuple):
    """What tells one alert from all others, now and after a restart: its labels."""

    alertname: str
    slo: str
    objective: str
    severity: str
    long: str  # as the labels say it: `1h`
    short: str
    by: tuple[tuple[str, str], ...] = ()  # each dimension of the SLO's `by`, and its value


@dataclass(frozen=True)
class Watch:
    """One alert of one SLO in process: the other face of its PromQL."""

    key: AlertKey  # `by` left empty
    slo: Slo
    condition: Condition
    for_s: int
    interval_s: int  # QUICK_S or SLOW_S: it is evaluated at multiples of it
    freezes: bool  # whether it outlives its data


@dataclass(frozen=True)
class State:
    """How an alert stands and since when; there is none for an inactive one."""

    status: Status
    since_ns: int  # in this status
    active_since_ns: int  # in trouble without a break
    value: float | None  # what its condition measured last, None: nothing measures it
    why: str


@dataclass(frozen=True)
class Flip:
    """One change of the status of an alert."""

    key: AlertKey
    old: Status
    new: Status
    at_ns: int
    value: float | None
    reason: str


def evaluate(
    watches: Sequence[Watch],
    history: History,
    states: Mapping[AlertKey, State],
    incidents: Iterable[Incident],
    now_ns: int,
) -> tuple[dict[AlertKey, State], list[Flip]]:
    """All states at `now_ns`, a whole minute, and what changed; inactive ones are left out.

    `incidents`: what fired in the last three days and an hour; `where` has `slo` and the values
    of `by`. They are no baseline. States of alerts that are not among `watches` end.
    """
    raise NotImplementedError
