"""What the log says of targets: once what is wrong with each, once that it is over, no storm."""

import logging
from dataclasses import dataclass, field
from typing import Final

from tailburn.collector.scrape.errors import Reason
from tailburn.collector.signals.targets import Target

log = logging.getLogger(__name__)

WELL_AGAIN: Final = 3
"""So many good answers in a row end a trouble: one that comes and goes is told once."""

MOST_LINES: Final = 20
"""Of a minute; the others are counted."""

_MINUTE_S: Final = 60.0


@dataclass
class _Trouble:
    """Of one target, until it is over."""

    told: set[tuple[Reason, bool]] = field(default_factory=set)
    well: int = 0  # good answers since


class Telling:
    """Remembers what was told of which target."""

    def __init__(self) -> None:
        self._troubles: dict[str, _Trouble] = {}
        self._minute_s = float("-inf")
        self._lines = 0

    def tell(self, target: Target, reason: Reason, message: str, now_s: float) -> None:
        """How it was read: `message` is what is wrong, or what was left out."""
        trouble = self._troubles.get(target.key)
        if reason is Reason.UP and not message:
            if trouble is not None:
                trouble.well += 1
                if trouble.well >= WELL_AGAIN:
                    del self._troubles[target.key]
                    self._say(logging.INFO, f"target {_name(target)} is read again", now_s)
            return
        if trouble is None:
            trouble = self._troubles[target.key] = _Trouble()
        trouble.well = 0
        kind = reason, bool(message)
        if kind in trouble.told:
            return
        trouble.told.add(kind)
        but = " is read, but" if reason is Reason.UP else ":"
        self._say(logging.WARNING, f"target {_name(target)}{but} {message}", now_s)

    def tick(self, now_s: float) -> None:
        """Tell how many lines were kept back, once their minute is over."""
        if now_s - self._minute_s >= _MINUTE_S:
            kept_back, self._lines = self._lines - MOST_LINES, 0
            self._minute_s = now_s
            if kept_back > 0:
                log.warning(
                    "%d more targets changed in a minute: `tailburn signals check` shows each",
                    kept_back,
                )

    def forget(self, keys: set[str]) -> None:
        for key in keys & self._troubles.keys():
            del self._troubles[key]

    def _say(self, level: int, line: str, now_s: float) -> None:
        self.tick(now_s)
        self._lines += 1
        if self._lines <= MOST_LINES:
            log.log(level, "%s", line)


def _name(target: Target) -> str:
    return f"{target.instance} ({target.via})" if target.via else target.instance
