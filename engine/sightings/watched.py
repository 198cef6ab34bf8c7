"""All that is known of a fleet, minute by minute, and what moved in each."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from tailburn.engine.changes import Kind
from tailburn.engine.sightings.moves import (
    FORGOTTEN_NS,
    Known,
    Move,
    moves_of_minute,
    order_of,
    rewound,
)
from tailburn.engine.sightings.replicas import READ as REPLICAS_READ
from tailburn.engine.sightings.replicas import Fleet, counted, replicas_seen, unseen
from tailburn.engine.sightings.sightings import Sighting, Thing
from tailburn.engine.sightings.signals import READ as VALUES_READ
from tailburn.engine.sightings.signals import seen_in_signals
from tailburn.engine.sightings.spans import seen_in_spans

MOST_THINGS: Final = 4_096
"""Those that come after are not watched."""

SIGNALS_READ: Final = (*VALUES_READ, *REPLICAS_READ)
"""Names of the signals that are looked at."""


@dataclass(frozen=True)
class Watched:
    """Values of things, and the replicas of engines."""

    things: Mapping[Thing, Known] = field(default_factory=dict)
    fleets: Mapping[Thing, Fleet] = field(default_factory=dict)


def seen_in(table: str, rows: pa.Table) -> list[Sighting]:
    """The sightings in rows of SPANS or SIGNALS."""
    if table == "spans":
        return seen_in_spans(rows)
    return [*seen_in_signals(rows), *replicas_seen(rows)]


def after_minute(
    watched: Watched, sightings: Iterable[Sighting], minute_ns: int
) -> tuple[Watched, list[Move]]:
    """What is known at the end of a minute, and what moved in it, oldest first."""
    seen: dict[bool, list[Sighting]] = {False: [], True: []}
    for sighting in sightings:
        seen[sighting.thing.kind is Kind.SCALE].append(sighting)
    room = MOST_THINGS - len(watched.things)
    of_values = _within(seen[False], watched.things, room)
    things, moves = moves_of_minute(watched.things, of_values, minute_ns)
    fleets, scaled = _fleets(watched.fleets, seen[True], minute_ns)
    return Watched(things, fleets), sorted([*moves, *scaled], key=order_of)


def set_back(watched: Watched, now_ns: int) -> Watched:
    """The same under a clock that was set back to `now_ns`."""
    things = {thing: rewound(known, now_ns) for thing, known in watched.things.items()}
    return Watched(things, {thing: unseen(fleet) for thing, fleet in watched.fleets.items()})


def without_old(watched: Watched, now_ns: int) -> Watched:
    """Without what was not seen for `FORGOTTEN_NS`."""
    since_ns = now_ns - FORGOTTEN_NS
    things = {
        thing: known
        for thing, known in watched.things.items()
        if any(member.last_ns > since_ns for member in known.members.values())
    }
    return Watched(things, watched.fleets)


def _within(sightings: Iterable[Sighting], known: Mapping[Thing, Any], room: int) -> list[Sighting]:
    """Those of things that are known, and of so many new ones."""
    found = sorted(sightings)
    new = dict.fromkeys(s.thing for s in found if s.thing not in known)
    taken = set(list(new)[: max(room, 0)])
    return [s for s in found if s.thing in known or s.thing in taken]


def _fleets(
    fleets: Mapping[Thing, Fleet], sightings: Iterable[Sighting], minute_ns: int
) -> tuple[dict[Thing, Fleet], list[Move]]:
    seen: dict[Thing, list[Sighting]] = defaultdict(list)
    for sighting in _within(sightings, fleets, MOST_THINGS - len(fleets)):
        seen[sighting.thing].append(sighting)
    if not seen:
        return {thing: unseen(fleet) for thing, fleet in fleets.items()}, []
    after, moves = dict[Thing, Fleet](), list[Move]()
    for thing in (*fleets, *(thing for thing in seen if thing not in fleets)):
        before = fleets.get(thing, Fleet())
        after[thing], found = counted(thing, before, seen.get(thing, ()), minute_ns)
        moves += found
    return after, moves
