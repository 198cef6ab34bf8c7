"""Alerts that fired, as spans of time, from the changes of their states."""

from collections.abc import Iterable
from dataclasses import dataclass

from tailburn.engine.evaluation import AlertKey, Flip


@dataclass(frozen=True)
class Fired:
    """One alert from when until when. `end_ns` None: it still fired at the end of the time."""

    key: AlertKey
    start_ns: int
    end_ns: int | None
    why: str  # as it began

    def span(self, until_ns: int) -> tuple[int, int]:
        """From when until when, no later than the end of the time."""
        return self.start_ns, until_ns if self.end_ns is None else self.end_ns


def fired(flips: Iterable[Flip]) -> list[Fired]:
    """In order of time. A freeze is no end: the alert goes on."""
    begun: dict[AlertKey, Flip] = {}
    found: list[Fired] = []
    for flip in flips:
        if flip.new.fires:
            begun.setdefault(flip.key, flip)
        elif (first := begun.pop(flip.key, None)) is not None:
            found.append(Fired(first.key, first.at_ns, flip.at_ns, first.reason))
    found += [Fired(flip.key, flip.at_ns, None, flip.reason) for flip in begun.values()]
    return sorted(found, key=lambda one: (one.start_ns, one.key))
