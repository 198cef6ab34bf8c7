"""How many replicas an engine has, by who tells its metrics: scaling up and down.

There are more where more than before are read at a time, and fewer where fewer were read in five
minutes: a target that flaps is no change, and another one in its place is none either. What is
counted anew, after a start or where nothing at all was read, is not judged before those five
minutes are over.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from tailburn.engine.changes import Kind
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.gauges import RUNNING, WAITING
from tailburn.engine.sightings.moves import Move
from tailburn.engine.sightings.sightings import Sighting, Thing, cut
from tailburn.engine.sightings.signals import rows_of

ABSENT_NS: Final = 5 * MINUTE_NS
AT_A_TIME_NS: Final = 90_000_000_000
STEADY_MINUTES: Final = 2
"""In so many minutes a number must be the same before it is told."""

READ: Final = (RUNNING, WAITING)


@dataclass(frozen=True)
class Seen:
    """A replica, from its first reading to its last."""

    first_ns: int
    last_ns: int


@dataclass(frozen=True)
class Fleet:
    """Replicas as they were told last; None: never counted. The rest is of this life alone."""

    told: tuple[str, ...] | None = None
    seen: Mapping[str, Seen] = field(default_factory=dict)
    since_ns: int | None = None
    waiting: tuple[int, int] = (0, 0)  # a number, and the minutes in which it was there


def replicas_seen(signals: pa.Table) -> list[Sighting]:
    """The replicas that tell of requests in them."""
    found: dict[Sighting, None] = {}
    for row in rows_of(signals, READ):
        told = [row.service, row.labels.get("model"), row.labels.get("pool")]
        what = ", ".join(part for part in told if part) or "engine"
        thing = Thing(row.tenant, Kind.SCALE, cut(what), row.place)
        found[Sighting(row.at_ns, row.at_ns, thing, "replica", row.replica, "")] = None
    return list(found)


def counted(
    thing: Thing, fleet: Fleet, sightings: Iterable[Sighting], minute_ns: int
) -> tuple[Fleet, list[Move]]:
    """A fleet at the end of a minute, and who came or went."""
    end_ns = minute_ns + MINUTE_NS
    seen = _seen(fleet, sightings)
    since_ns = fleet.since_ns
    if since_ns is None and seen:
        since_ns = min(one.first_ns for one in seen.values())
    lately = _read_since(seen, end_ns - ABSENT_NS)
    at_a_time = _read_since(seen, end_ns - AT_A_TIME_NS)
    seen = {n: one for n, one in seen.items() if n in lately or n in (fleet.told or ())}
    if since_ns is None or end_ns - since_ns < ABSENT_NS:
        return Fleet(fleet.told, seen, since_ns), []
    if fleet.told is None:
        return Fleet(tuple(lately), seen, since_ns), []
    there = at_a_time if len(at_a_time) > len(fleet.told) else lately
    if len(at_a_time) <= len(fleet.told) <= len(lately):
        return Fleet(_kept(fleet.told, at_a_time, lately), seen, since_ns), []
    number, minutes = fleet.waiting
    minutes = minutes + 1 if number == len(there) else 1
    if minutes < STEADY_MINUTES:
        return Fleet(fleet.told, seen, since_ns, (len(there), minutes)), []
    moves = _moves(thing, fleet.told, there, seen, minute_ns)
    return Fleet(tuple(there), seen, since_ns), moves


def _read_since(seen: Mapping[str, Seen], since_ns: int) -> list[str]:
    return sorted(name for name, one in seen.items() if one.last_ns > since_ns)


def _kept(told: Sequence[str], at_a_time: Sequence[str], lately: Sequence[str]) -> tuple[str, ...]:
    """As many as were told: those that are read, and of the others who was told before."""
    still = [name for name in told if name in lately]
    ordered = dict.fromkeys([*at_a_time, *still, *lately])
    return tuple(sorted(list(ordered)[: len(told)]))


def unseen(fleet: Fleet) -> Fleet:
    """After a time in which nothing was read: to be counted anew."""
    return Fleet(fleet.told)


def _seen(fleet: Fleet, sightings: Iterable[Sighting]) -> dict[str, Seen]:
    seen = dict(fleet.seen)
    for sighting in sightings:
        before = seen.get(sighting.member, Seen(sighting.at_ns, sighting.until_ns))
        first_ns = min(before.first_ns, sighting.at_ns)
        seen[sighting.member] = Seen(first_ns, max(before.last_ns, sighting.until_ns))
    return seen


def _moves(
    thing: Thing,
    told: Sequence[str],
    there: Sequence[str],
    seen: Mapping[str, Seen],
    minute_ns: int,
) -> list[Move]:
    """Those that came where there are more now, those that went where there are fewer."""
    grew = len(there) > len(told)
    names = sorted(set(there) - set(told)) if grew else sorted(set(told) - set(there))
    times = {
        name: (one.first_ns if grew else one.last_ns)
        for name in names
        if (one := seen.get(name)) is not None
    }
    old, new = str(len(told)), str(len(there))
    return [
        Move(times.get(name, minute_ns), thing, "replica", name, old, new, ()) for name in names
    ]
