"""What a door holds at most: bytes of one body, bytes of all bodies together, seconds."""

from dataclasses import dataclass

from tailburn.collector.errors import Busy, TooLarge

MAX_RETRY_AFTER_S = 2.0  # exporters give up after 10 s for all their tries together


@dataclass(frozen=True)
class Limits:
    """`body_bytes` binds before and after decompression; OTLP recommends 64 MiB."""

    body_bytes: int = 64 << 20
    in_flight_bytes: int = 256 << 20
    read_timeout_s: float = 30.0


class Budget:
    """Bytes in flight over all requests: from the first byte read until the answer."""

    __slots__ = ("limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0

    def take(self, n_bytes: int) -> None:
        """Raises Busy, and takes nothing, where that would go over the limit."""
        if self.used_bytes + n_bytes > self.limit_bytes:
            raise Busy(
                f"{self.used_bytes} of {self.limit_bytes} bytes are in flight, "
                f"{n_bytes} more don't fit now"
            )
        self.used_bytes += n_bytes

    def give(self, n_bytes: int) -> None:
        self.used_bytes -= n_bytes


class Body:
    """A decompressed body as it grows, charged to the budget until `release`."""

    __slots__ = ("_budget", "_charged_bytes", "_limit_bytes", "data")

    def __init__(self, limit_bytes: int, budget: Budget) -> None:
        self.data = bytearray()
        self._limit_bytes = limit_bytes
        self._budget = budget
        self._charged_bytes = 0

    def append(self, piece: bytes) -> None:
        """Raises TooLarge or Busy before anything is kept of a piece that doesn't fit."""
        n_bytes = len(piece)
        if len(self.data) + n_bytes > self._limit_bytes:
            raise TooLarge(f"the body is over {self._limit_bytes} bytes after decompression")
        self.charge(n_bytes)
        self.data += piece

    def charge(self, n_bytes: int) -> None:
        """Count memory that is needed beside `data`. Raises Busy where there is none."""
        self._budget.take(n_bytes)
        self._charged_bytes += n_bytes

    def release(self) -> None:
        self._budget.give(self._charged_bytes)
        self._charged_bytes = 0
