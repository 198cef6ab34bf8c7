"""Room for answers: how many bytes of all that are being read may be held at once."""

from types import TracebackType
from typing import Self

from tailburn.collector.scrape.errors import Reason, ScrapeError


class Room:
    """A bound over all answers together, so that many large ones cost no more than a few.

    Where it is full, an answer larger than its even share gives way; smaller ones go on.
    """

    def __init__(self, most_bytes: int) -> None:
        self.held_bytes = 0
        self._most_bytes = most_bytes
        self._places = 0

    def place(self) -> "Place":
        return Place(self)

    def enter(self) -> None:
        self._places += 1

    def leave(self, held_bytes: int) -> None:
        self._places -= 1
        self.held_bytes -= held_bytes

    def grow(self, place_bytes: int, more_bytes: int) -> None:
        """Raises ScrapeError where this answer has to give way."""
        is_full = self.held_bytes + more_bytes > self._most_bytes
        if is_full and (place_bytes + more_bytes) * self._places > self._most_bytes:
            raise ScrapeError(
                Reason.TOO_LARGE,
                f"answers more than {place_bytes / 1e6:,.0f} MB, its share of the "
                f"{self._most_bytes / 1e6:,.0f} MB for {self._places} that are read at once",
            )
        self.held_bytes += more_bytes


class Place:
    """What one answer holds of a room, until it is worked through."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._bytes = 0

    def grow(self, more_bytes: int) -> None:
        """Raises ScrapeError where this answer has to give way."""
        self._room.grow(self._bytes, more_bytes)
        self._bytes += more_bytes

    def __enter__(self) -> Self:
        self._room.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._room.leave(self._bytes)
        self._bytes = 0
