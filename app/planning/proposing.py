"""From what was seen of classes to SLOs that fire nothing in the time they are tried on."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa

from tailburn.app.planning.replaying import Past, replay
from tailburn.engine.backtest.burning import Spans, burning
from tailburn.engine.backtest.fired import Fired
from tailburn.engine.backtest.lasting import Waiting, lasting
from tailburn.engine.backtest.minutes import Counts
from tailburn.engine.evaluation.shares import Shares
from tailburn.engine.names import UNKNOWN
from tailburn.engine.slo.model import Slo
from tailburn.engine.suggest import quiet
from tailburn.engine.suggest.proposal import Thin, names_of, thin
from tailburn.engine.suggest.quiet import Alerts, Chosen, Quiet, Wanted
from tailburn.engine.suggest.seen import Class, Seen
from tailburn.rules.alerting import Kind
from tailburn.rules.alerts import tier

RAISED_BY: Final = (Kind.BURN, Kind.TIER)


class Time(quiet.Time, Protocol):
    """A time whose percentiles by minute can be read too."""

    def rollups(self, since_ns: int, until_ns: int, clocks: Sequence[str]) -> pa.Table:
        """ROLLUPS of some clocks."""


@dataclass(frozen=True)
class Proposed:
    """Proposals and what fires in spite of their room, and the classes too thin for one."""

    quiet: Quiet
    thin: tuple[tuple[Mapping[str, str], Thin], ...]


def proposed(
    seen: Seen,
    time: Time,
    wanted: Wanted,
    where: Mapping[str, str],
    alerts: Alerts,
) -> Proposed:
    """An SLO for every class that is not too thin, that fires nothing in the time if it can.

    `where`: dimensions that all requests share. `alerts`: what tells of alerts that minutes of
    counts do not; room is given for those of `RAISED_BY` alone.
    """
    classes = list(seen.classes())
    told = _told(wanted.by, classes)
    names = names_of([tuple(_select(wanted.by, told, c).values()) for c in classes], UNKNOWN)
    enough, too_thin = [], []
    for one, name in zip(classes, names, strict=True):
        select = {**where, **_select(wanted.by, told, one)}
        why = thin(one)
        if why is None:
            enough.append(Chosen(one, name, select))
        else:
            too_thin.append((select, why))
    found = quiet.quiet(time, wanted, enough, told_by_minutes, alerts, RAISED_BY)
    return Proposed(found, tuple(too_thin))


def _told(by: Sequence[str], classes: Sequence[Class]) -> set[str]:
    """Dimensions of which any class has a value that is known."""
    return {name for i, name in enumerate(by) if any(c.values[i] != UNKNOWN for c in classes)}


def _select(by: Sequence[str], told: set[str], one: Class) -> dict[str, str]:
    return {name: value for name, value in zip(by, one.values, strict=True) if name in told}


def waiting_of(slos: Iterable[Slo]) -> dict[tuple[str, str], Waiting]:
    """The tickets past acceptable, which minutes of counts tell, by SLO and objective."""
    return {
        (slo.name, alert.objective): Waiting(alert.in_process.shares[0], alert.for_s)
        for slo in slos
        for alert in tier.alerts(slo)
        if isinstance(alert.in_process, Shares)
    }


def told_by_minutes(counts: Sequence[Counts], left_out: Spans) -> set[tuple[str, str]]:
    """Budgets that burn, and those past acceptable for as long as the ticket waits."""
    waiting = waiting_of(one.slo for one in counts)
    return burning(counts, left_out) | lasting(counts, waiting, left_out)


def told_by_replay(time: Time, doing: str, kinds: Collection[Kind] = tuple(Kind)) -> Alerts:
    """What those alerts would have told in that time, evaluated minute by minute.

    `doing`: told to whoever waits; "" to nobody.
    """

    def fired(slos: Sequence[Slo], minutes: pa.Table) -> tuple[Fired, ...]:
        if not slos:
            return ()
        past = Past(minutes, time.rollups, time.since_ns, time.until_ns, time.left_out)
        return replay(slos, past, doing, kinds)

    return fired
