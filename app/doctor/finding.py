"""One thing looked at."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """How it is. `NO_DATA` is never `OK`."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"
    NO_DATA = "no data"


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was seen, and what to do where that is not well."""

    subject: str
    state: State
    seen: str
    todo: str = ""

    def row(self) -> dict[str, Any]:
        return {**asdict(self), "state": self.state.value}
