"""Moves that belong together are one change: a rolling deploy, and not each of its replicas."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tailburn.engine.changes import Change, Kind, key_of
from tailburn.engine.sightings.moves import MERGED_NS, Move, order_of

MOST_VALUES: Final = 512
"""Of one dimension of a change; more are not named."""

LOOKED_BACK_NS: Final = 2 * MERGED_NS
MOST_IN_AN_HOUR: Final = 6
"""Changes of one thing that come and go all the time are no news: the rest of the hour is left out.
"""
TELEMETRY: Final = "telemetry"
"""Who says so, where nobody told of it."""

Where = Mapping[str, tuple[str, ...]]
_Of = tuple[str, str, str]  # tenant, kind, what


@dataclass(frozen=True)
class Rollout:
    """From `old` to `new`; None where that is not known, or there is nothing to name.

    `until_ns` is when the last of `where` had it; `where` are dimensions, each with its values.
    """

    key: str
    tenant: str
    kind: Kind
    what: str
    at_ns: int
    until_ns: int
    old: str | None
    new: str | None
    where: Where

    def change(self) -> Change:
        """As it is told. It touches all that has a dimension of which it has several values."""
        return Change(
            at_ns=self.at_ns,
            kind=self.kind,
            what=self.what,
            old=self.old or "",
            new=self.new or "",
            where={name: values[0] for name, values in self.where.items() if len(values) == 1},
            who=TELEMETRY,
            tenant=self.tenant or "default",
            told_as=self.key,
        )


def merged(recent: Iterable[Rollout], moves: Iterable[Move]) -> list[Rollout]:
    """Changes that are new, and those of `recent` that grew; the newest version of each.

    `recent` are those told within `LOOKED_BACK_NS`. A move joins the last change of its thing
    where that went to the same value and is no more than half an hour old.
    """
    known: dict[_Of, list[Rollout]] = defaultdict(list)
    for change in sorted(recent, key=_order):
        known[change.tenant, change.kind, change.what].append(change)
    touched: dict[str, Rollout] = {}
    for move in sorted(moves, key=order_of):
        changes = known[move.thing.tenant, move.thing.kind, move.thing.what]
        last = changes[-1] if changes else None
        if last is not None and last.new == move.new and _is_near(last, move):
            changes[-1] = grown = _grown(last, move)
        elif _are_too_many(changes, move.at_ns):
            continue
        else:
            changes.append(grown := _begun(move))
        touched[grown.key] = grown
    return sorted(touched.values(), key=_order)


def _is_near(last: Rollout, move: Move) -> bool:
    return last.at_ns - MERGED_NS <= move.at_ns <= last.until_ns + MERGED_NS


def _are_too_many(changes: Sequence[Rollout], at_ns: int) -> bool:
    lately = [c for c in changes if c.at_ns > at_ns - LOOKED_BACK_NS]
    return len(lately) >= MOST_IN_AN_HOUR


def _begun(move: Move) -> Rollout:
    thing = move.thing
    return Rollout(
        key=key_of(TELEMETRY, thing.tenant, thing.kind, thing.what, move.new, move.at_ns),
        tenant=thing.tenant,
        kind=thing.kind,
        what=thing.what,
        at_ns=move.at_ns,
        until_ns=move.at_ns,
        old=move.old,
        new=move.new,
        where=_where({}, move),
    )


def _grown(change: Rollout, move: Move) -> Rollout:
    """Keeps its key, which is that of its first move."""
    return replace(
        change,
        at_ns=min(change.at_ns, move.at_ns),
        until_ns=max(change.until_ns, move.at_ns),
        old=_also_old(change.old, move.old),
        where=_where(change.where, move),
    )


def _also_old(old: str | None, other: str | None) -> str | None:
    """Replicas that came from different values: all of them."""
    if old is None or other is None:
        return old or other
    return old if other in old.split(", ") else ", ".join(sorted([*old.split(", "), other]))


def _where(where: Where, move: Move) -> dict[str, tuple[str, ...]]:
    """Dimensions in order of their names, each with its values in theirs."""
    values: dict[str, set[str]] = {name: set(known) for name, known in where.items()}
    for name, value in (*move.thing.shared, *move.also, (move.dimension, move.member)):
        told = values.setdefault(name, set())
        if value and (len(told) < MOST_VALUES or value in told):
            told.add(value)
    return {name: tuple(sorted(told)) for name, told in sorted(values.items()) if told}


def _order(change: Rollout) -> tuple[int, str, str, str, str]:
    return change.at_ns, change.tenant, change.kind, change.what, change.key
