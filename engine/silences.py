"""A silence: for a time nobody is told of what its matchers name. Times are of the wall clock."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Silence:
    """`matchers`: as Alertmanager writes them, `name="value"`; all of them have to match."""

    matchers: tuple[str, ...]
    starts_unix_ns: int
    ends_unix_ns: int
    who: str
    why: str
    id: int | None = None
    """As people call it; none before it is written down."""
    origin: str = ""
    """Where else it was made, and what that calls it; empty: here."""

    def is_active(self, now_unix_ns: int) -> bool:
        return self.starts_unix_ns <= now_unix_ns < self.ends_unix_ns
