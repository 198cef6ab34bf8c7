"""The state of every alert, minute by minute, as Prometheus would have it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from tailburn.engine.baseline.incidents import Incident
from tailburn.engine.evaluation.conditions import Condition, Moment, Seen
from tailburn.engine.evaluation.history import History, Needs
from tailburn.engine.evaluation.windows import MINUTE_NS, MINUTE_S
from tailburn.engine.names import SLO_LABEL
from tailburn.engine.slo.model import Slo

_SECOND_NS: Final = 1_000_000_000


class Status(StrEnum):
    """How an alert stands. Frozen is firing without the data that it rests on."""

    INACTIVE = "inactive"
    PENDING = "pending"  # in trouble, not yet for long enough
    FIRING = "firing"
    FROZEN = "frozen"

    @property
    def fires(self) -> bool:
        """Whether somebody is told: frozen is no end."""
        return self in (Status.FIRING, Status.FROZEN)


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
    interval_s: int  # it is evaluated at multiples of it

    def key_of(self, values: tuple[str, ...]) -> AlertKey:
        """The alert of one combination of the values of `by`; none where nothing tells them."""
        return self.key._replace(by=tuple(zip(self.slo.by, values, strict=False)))


@dataclass(frozen=True)
class State:
    """How an alert stands and since when; there is none for an inactive one."""

    status: Status
    since_ns: int  # in this status
    active_since_ns: int  # in trouble without a break
    value: float | None  # what its condition measured last; None: nothing measures it
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


States = Mapping[AlertKey, State]


def history_of(watches: Iterable[Watch], also: Iterable[tuple[Slo, Needs]] = ()) -> History:
    """An empty history that reaches as far back as these alerts look, and others."""
    return History([*((watch.slo, watch.condition.needs) for watch in watches), *also])


def evaluate(
    watches: Sequence[Watch],
    history: History,
    states: States,
    incidents: Iterable[Incident],
    now_ns: int,
    held: Collection[AlertKey] = (),
) -> tuple[dict[AlertKey, State], list[Flip]]:
    """All states at `now_ns`, a whole minute, and what changed; inactive ones are left out.

    `incidents`: what fired in the last three days and an hour; `where` has `slo` and the values
    of `by`. Their hours are no baseline. States of alerts that are not among `watches` end.
    `held`: alerts that stay as they are where nothing says that they are in trouble.
    Raises `ValueError` where `now_ns` is no whole minute.
    """
    now, rest_ns = divmod(now_ns, MINUTE_NS)
    if rest_ns:
        raise ValueError(f"want a whole minute, got {now_ns} ns, {rest_ns} ns past one")
    history.record(now_ns)
    at = Moment(history, now, _by_slo(incidents))
    active: dict[AlertKey, dict[AlertKey, State]] = defaultdict(dict)
    for key, state in states.items():
        active[key._replace(by=())][key] = state
    new: dict[AlertKey, State] = {}
    flips: list[Flip] = []
    for watch in watches:
        standing = active.pop(watch.key, {})
        if now * MINUTE_S % watch.interval_s:
            new |= standing
            continue
        found = _judged(watch, at, standing, now_ns)
        found |= {k: state for k, state in standing.items() if k in held and k not in found}
        new |= found
        flips += _flips(standing, found, watch, now_ns)
    for standing in active.values():
        flips += _ended(standing, now_ns)
    return new, flips


def _judged(watch: Watch, at: Moment, standing: States, now_ns: int) -> dict[AlertKey, State]:
    """The states of one alert for all values of `by`."""
    seen = watch.condition.look(watch.slo, at)
    found = {}
    for row in np.flatnonzero(seen.in_trouble).tolist():
        key = watch.key_of(seen.by[row])
        found[key] = _in_trouble(watch, standing.get(key), _value(seen, row), now_ns)
    fired = {
        key: state for key, state in standing.items() if key not in found and state.status.fires
    }
    if watch.condition.freezes and fired:
        rows = {values: row for row, values in enumerate(seen.by)}
        for key, state in fired.items():
            at_row = rows.get(tuple(value for _, value in key.by))
            if at_row is not None and not seen.alive[at_row] and seen.was_alive(at_row):
                found[key] = _frozen(state, now_ns)
    return found


def _in_trouble(watch: Watch, before: State | None, value: float | None, now_ns: int) -> State:
    why = watch.condition.told(value)
    active_ns = now_ns if before is None else before.active_since_ns
    fires = before is not None and before.status.fires
    fires = fires or now_ns - active_ns >= watch.for_s * _SECOND_NS
    status = Status.FIRING if fires else Status.PENDING
    since_ns = before.since_ns if before is not None and before.status is status else now_ns
    return State(status, since_ns, active_ns, value, why)


def _frozen(state: State, now_ns: int) -> State:
    if state.status is Status.FROZEN:
        return state
    why = f"no data since it fired: {state.why}"
    return replace(state, status=Status.FROZEN, since_ns=now_ns, why=why)


def _flips(standing: States, found: States, watch: Watch, now_ns: int) -> list[Flip]:
    """What changed of one alert; a pending one that ends says nothing but that."""
    flips = []
    for key in sorted(standing.keys() | found.keys()):
        old, new = standing.get(key), found.get(key)
        before = old.status if old else Status.INACTIVE
        after = new.status if new else Status.INACTIVE
        if before is after:
            continue
        if new is not None:
            flips.append(Flip(key, before, after, now_ns, new.value, new.why))
        else:
            assert old is not None
            flips.append(Flip(key, before, after, now_ns, old.value, _over(old)))
    return flips


def _over(old: State) -> str:
    if old.status is Status.FROZEN:
        return "nothing is known for too long, or what is known is well"
    return f"it is over; last: {old.why}"


def _ended(standing: States, now_ns: int) -> list[Flip]:
    reason = "its alert is not there any more: the SLO has changed"
    return [
        Flip(key, state.status, Status.INACTIVE, now_ns, state.value, reason)
        for key, state in standing.items()
    ]


def _value(seen: Seen, row: int) -> float | None:
    value = float(seen.value[row])
    return None if np.isnan(value) else value


def _by_slo(incidents: Iterable[Incident]) -> dict[str, list[Incident]]:
    found: dict[str, list[Incident]] = defaultdict(list)
    for incident in incidents:
        found[incident.where.get(SLO_LABEL, "")].append(incident)
    return found
