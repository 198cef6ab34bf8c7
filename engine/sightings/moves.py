"""From what is seen to what moved: a member of a thing that has another value than before.

A new value counts once it was there in several minutes without the one before: of two replicas
behind one name, or a target that answers by turns, nothing is told. The first sight of a thing is
no move.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tailburn.engine.changes import Kind
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.sightings.sightings import Dimensions, Sighting, Thing
from tailburn.engine.sightings.signals import FREE

LIVE_NS: Final = 2 * MINUTE_NS
"""A value that another member had so lately is none that a new member brings."""

MERGED_NS: Final = 30 * MINUTE_NS
"""Moves to one value that are no further apart are one change."""

FORGOTTEN_NS: Final = 7 * 24 * 60 * MINUTE_NS
"""A member that was not seen for so long is one that was never seen."""

MOST_MEMBERS: Final = 2_048
"""Of one thing; those that were seen last are kept."""

DRIFT_S: Final = 5.0
"""Starts so close are one: clients work it out anew from a boot time that clocks correct."""


@dataclass(frozen=True)
class Waiting:
    """A value that is not told yet: since when, and in how many minutes it was seen.

    `after_ns`: when the value before was seen last.
    """

    value: str
    after_ns: int
    at_ns: int
    minutes: int


@dataclass(frozen=True)
class Member:
    """The value that is known of a member."""

    value: str
    last_ns: int
    waiting: Waiting | None = None


@dataclass(frozen=True)
class Known:
    """What is known of a thing. `value` is the newest that any member was seen to move to."""

    value: str
    members: Mapping[str, Member] = field(default_factory=dict)
    moved_ns: int | None = None


@dataclass(frozen=True)
class Move:
    """A member has another value, and since when."""

    at_ns: int
    thing: Thing
    dimension: str
    member: str
    old: str | None
    new: str | None
    also: Dimensions = ()


@dataclass(frozen=True)
class Rule:
    """How the values of a kind are to be read.

    `fresh`: a member that was never seen before can bring a new value, as the pods of a rollout
    do. `minutes`: in so many a value must be there before it is told.
    """

    fresh: bool = False
    minutes: Callable[[str], int] = lambda value: 2
    is_same: Callable[[str, str], bool] = str.__eq__
    is_told: Callable[[str, str], bool] = str.__ne__


def _starts_alike(old: str, new: str) -> bool:
    return abs(float(new) - float(old)) <= DRIFT_S


def _is_later(old: str, new: str) -> bool:
    return float(new) > float(old)


RULES: Final = {
    Kind.DEPLOY: Rule(fresh=True),
    Kind.CONFIG: Rule(fresh=True),
    Kind.DRIVER: Rule(),
    Kind.RESTART: Rule(is_same=_starts_alike, is_told=_is_later),
    Kind.THROTTLE: Rule(minutes=lambda value: 10 if value == FREE else 2),
}


def moves_of_minute(
    known: Mapping[Thing, Known], sightings: Iterable[Sighting], minute_ns: int
) -> tuple[dict[Thing, Known], list[Move]]:
    """What is known after the sightings of a minute, and what moved, oldest first.

    The order of sightings does not matter, and those that were taken before change nothing.
    """
    by_thing: dict[Thing, list[Sighting]] = defaultdict(list)
    for sighting in sightings:
        by_thing[sighting.thing].append(sighting)
    after, moves = dict(known), list[Move]()
    for thing, seen in by_thing.items():
        after[thing], found = _of_thing(thing, known.get(thing), seen, minute_ns)
        moves += found
    return after, sorted(moves, key=order_of)


def rewound(known: Known, now_ns: int) -> Known:
    """The same under a clock that was set back: nothing was seen later than now."""
    members = {
        name: replace(member, last_ns=min(member.last_ns, now_ns), waiting=None)
        for name, member in known.members.items()
    }
    moved_ns = None if known.moved_ns is None else min(known.moved_ns, now_ns)
    return replace(known, members=members, moved_ns=moved_ns)


def _of_thing(
    thing: Thing, known: Known | None, seen: Sequence[Sighting], minute_ns: int
) -> tuple[Known, list[Move]]:
    """1. By member, what is new. 2. Members seen before. 3. New ones, against all others."""
    rule = RULES[thing.kind]
    members = dict(known.members) if known else {}
    moves: list[Move] = []
    fresh: list[Sequence[Sighting]] = []
    for name, rows in _by_member(seen, members).items():
        if name not in members:
            fresh.append(rows)
            continue
        members[name], move = _of_member(members[name], rows, rule)
        moves += [move] if move else []
    fresh.sort(key=_begin)
    if known is None:
        return Known(max(fresh[0], key=_last).value, _joined(members, fresh, minute_ns)), []
    value, moved_ns = _newest(known, moves)
    for rows in fresh:
        last = max(rows, key=_last)
        if rule.fresh and _brings(last, rows[0].at_ns, value, moved_ns, members):
            old = None if last.value == value else value
            moves.append(_move(rows, old, last.value, rows[0].at_ns))
            value, moved_ns = last.value, rows[0].at_ns
        members[last.member] = Member(last.value, last.until_ns)
    return Known(value, _kept(members, minute_ns), moved_ns), moves


def _joined(
    members: dict[str, Member], fresh: Iterable[Sequence[Sighting]], minute_ns: int
) -> dict[str, Member]:
    lasts = (max(rows, key=_last) for rows in fresh)
    return _kept(members | {r.member: Member(r.value, r.until_ns) for r in lasts}, minute_ns)


def _by_member(
    seen: Sequence[Sighting], members: Mapping[str, Member]
) -> dict[str, Sequence[Sighting]]:
    """What is newer than the last sight of each."""
    found: dict[str, list[Sighting]] = {}
    for sighting in sorted(seen):
        member = members.get(sighting.member)
        if member is None or sighting.until_ns > member.last_ns:
            found.setdefault(sighting.member, []).append(sighting)
    return dict(found)


def _of_member(member: Member, rows: Sequence[Sighting], rule: Rule) -> tuple[Member, Move | None]:
    values = {row.value for row in rows}
    last = max(rows, key=_last)
    if any(rule.is_same(member.value, value) for value in values):
        same = len(values) == 1
        return Member(last.value if same else member.value, last.until_ns), None
    if len(values) > 1:
        return replace(member, last_ns=last.until_ns, waiting=None), None
    waiting = member.waiting
    if waiting is None or not rule.is_same(waiting.value, last.value):
        waiting = Waiting(last.value, member.last_ns, rows[0].at_ns, 0)
    waiting = replace(waiting, minutes=waiting.minutes + 1)
    if waiting.minutes < rule.minutes(last.value):
        return replace(member, last_ns=last.until_ns, waiting=waiting), None
    after = Member(last.value, last.until_ns)
    if not rule.is_told(member.value, last.value):
        return after, None
    if last.thing.kind is Kind.RESTART:
        began_ns = round(float(last.value) * 1e9)
        is_between = waiting.after_ns < began_ns < waiting.at_ns
        at_ns = began_ns if is_between else waiting.at_ns
        return after, _move(rows, None, None, at_ns)
    return after, _move(rows, member.value, last.value, waiting.at_ns)


def _newest(known: Known | None, moves: Sequence[Move]) -> tuple[str, int | None]:
    if known is None:
        return "", None
    if not moves:
        return known.value, known.moved_ns
    newest = max(moves, key=order_of)
    return newest.new or known.value, max(newest.at_ns, known.moved_ns or 0)


def _brings(
    row: Sighting,
    at_ns: int,
    value: str,
    moved_ns: int | None,
    members: Mapping[str, Member],
) -> bool:
    """Whether a new member is part of a change: the first of it, or one that came after."""
    if row.value == value:
        return moved_ns is not None and at_ns - moved_ns <= MERGED_NS
    live_ns = at_ns - LIVE_NS
    return not any(m.value == row.value and m.last_ns >= live_ns for m in members.values())


def _move(rows: Sequence[Sighting], old: str | None, new: str | None, at_ns: int) -> Move:
    row = rows[0]
    also = tuple(sorted({pair for row in rows for pair in row.also}))
    return Move(at_ns, row.thing, row.dimension, row.member, old, new, also)


def _kept(members: dict[str, Member], minute_ns: int) -> dict[str, Member]:
    kept = {n: m for n, m in members.items() if m.last_ns > minute_ns - FORGOTTEN_NS}
    if len(kept) <= MOST_MEMBERS:
        return kept
    newest = sorted(kept, key=lambda name: (kept[name].last_ns, name))[-MOST_MEMBERS:]
    return {name: kept[name] for name in sorted(newest)}


def _last(row: Sighting) -> tuple[int, str]:
    return row.until_ns, row.value


def _begin(rows: Sequence[Sighting]) -> tuple[int, str]:
    return rows[0].at_ns, rows[0].member


def order_of(move: Move) -> tuple[int, Thing, str]:
    """Oldest first, always the same."""
    return move.at_ns, move.thing, move.member
