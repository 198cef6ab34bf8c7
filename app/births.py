"""New series are shown at 0 first: a counter that is born above 0 has no increase.

Every scraper sees a new series at 0 once, if it comes within `SETTLED_S` of the first that did.
A scrape that times out takes its 0 with it, and its connection: on another connection the same
scraper sees 0 once more. That a series is shown as it counts is written down before it is, so a
kill can't make it begin at 0 again, which Prometheus would take for a reset and count everything
twice. A kill that takes the first 0 with it leaves nothing written: the next life shows 0 again.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from sqlalchemy.exc import DBAPIError

from tailburn.engine.store.state.database import reason_of
from tailburn.engine.store.state.shown import SeriesKey

log = logging.getLogger(__name__)

SETTLED_S: Final = 300.0
"""The longest interval between scrapes that is waited for; Prometheus' own default is 60 s."""


_CONNECTIONS: Final = 2
"""On so many connections of a scraper: one that opens a new one for each scrape must end too."""


@dataclass(frozen=True)
class Scraper:
    """Who scrapes, over which of its connections: what came over an open one has arrived."""

    name: str
    connection: int = 0


class Record(Protocol):
    """Where it is written down; `engine.store.state.shown.Shown`."""

    def all(self) -> set[SeriesKey]: ...
    def add(self, keys: Iterable[SeriesKey], now_ns: int) -> None: ...


@dataclass
class _Birth:
    first_shown_s: float
    seen: dict[str, set[int]] = field(default_factory=dict)
    """Connections of each scraper over which it was shown at 0."""
    counts: bool = False  # was shown as it counts


class Births:
    """Who has seen which new series. Callers serialise their calls."""

    def __init__(self, record: Record, now_s: Callable[[], float]) -> None:
        """`now_s` only ever rises."""
        self._record = record
        self._now_s = now_s
        self._settled = record.all()
        self._births: dict[SeriesKey, _Birth] = {}
        self._fresh: list[SeriesKey] = []

    def shows_zero(self, key: SeriesKey, scraper: Scraper) -> bool:
        """Whether this scrape has to see the series at 0; the next over its connection has not."""
        if key in self._settled:
            return False
        now_s = self._now_s()
        if key not in self._births:
            self._births[key] = _Birth(now_s)
        birth = self._births[key]
        if now_s - birth.first_shown_s > SETTLED_S:
            self._settled.add(key)
            self._counts(key, self._births.pop(key))
            return False
        connections = birth.seen.setdefault(scraper.name, set())
        if scraper.connection in connections or len(connections) == _CONNECTIONS:
            self._counts(key, birth)
            return False
        connections.add(scraper.connection)
        return True

    def _counts(self, key: SeriesKey, birth: _Birth) -> None:
        if not birth.counts:
            birth.counts = True
            self._fresh.append(key)

    def write_down(self, now_ns: int) -> None:
        """Make it durable that series are shown as they count, before the scrape is answered."""
        if not self._fresh:
            return
        try:
            self._record.add(self._fresh, now_ns)
        except DBAPIError as error:
            # They are shown all the same: an alert matters more than a count after a kill.
            log.warning("what was shown of new series can't be written down: %s", reason_of(error))
            return
        self._fresh.clear()
