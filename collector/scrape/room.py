"""Room for answers: how many bytes of all that are being read may be held at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from tailburn.collector.scrape.errors import Reason, ScrapeError


class Room:
    """A bound over all answers together, so that many large ones cost no more than a few.

    Where it would be passed, the largest gives way, whichever grows: what it holds is let go of.
    `held_bytes` never is more than `most_bytes`.
    """

    def __init__(self, most_bytes: int) -> None:
        self.held_bytes = 0
        self._most_bytes = most_bytes
        self._places: set[Place] = set()

    @contextmanager
    def place(self) -> Iterator["Place"]:
        """For one answer, until it is worked through."""
        place = Place(self)
        self._places.add(place)
        try:
            yield place
        finally:
            place.let_go()
            self._places.remove(place)

    def grow(self, place: "Place", more_bytes: int) -> None:
        """Raises ScrapeError where this one gives way itself."""
        while self.held_bytes + more_bytes > self._most_bytes:
            others = [one for one in self._places if one is not place and one.may_give_way]
            largest = max(others, key=lambda one: one.held_bytes, default=place)
            if largest.held_bytes <= place.held_bytes + more_bytes:
                largest = place
            refusal = self._refusal(largest)
            largest.give_way(refusal)
            if largest is place:
                raise refusal
        self.held_bytes += more_bytes

    def _refusal(self, place: "Place") -> ScrapeError:
        return ScrapeError(
            Reason.TOO_LARGE,
            f"answers more than {place.held_bytes / 1e6:,.1f} MB, the most of the "
            f"{len(self._places)} that are read at once: together they may hold "
            f"{self._most_bytes / 1e6:,.0f} MB",
        )


class Place:
    """An answer as it grows in a room, held until it is worked through."""

    def __init__(self, room: Room) -> None:
        self.held_bytes = 0
        self.may_give_way = True
        self._room = room
        self._parts: list[bytes] = []
        self._refusal: ScrapeError | None = None

    def add(self, piece: bytes) -> None:
        """Raises ScrapeError where it has to give way, or gave way before."""
        self._raise_refusal()
        self._room.grow(self, len(piece))
        self._parts.append(piece)
        self.held_bytes += len(piece)

    def whole(self) -> bytes:
        """All of it, to be worked through: it gives way no more. Raises ScrapeError as `add`."""
        self._raise_refusal()
        self.may_give_way = False
        body = b"".join(self._parts)
        self._parts.clear()
        return body

    def give_way(self, refusal: ScrapeError) -> None:
        self._refusal = refusal
        self.may_give_way = False
        self.let_go()

    def _raise_refusal(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def let_go(self) -> None:
        """Hold nothing any more."""
        self._parts.clear()
        self._room.held_bytes -= self.held_bytes
        self.held_bytes = 0
