"""Changes of the fleet read off what the store has of its telemetry, minute by minute.

A minute is looked at once its rows have had time to be published. After a start the last minutes
before it are looked at again: what changed meanwhile is told, and what was told before has the same
key and is written once.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
from sqlalchemy.exc import DBAPIError

from tailburn.app.answers.changes import in_words
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.sightings.moves import MERGED_NS
from tailburn.engine.sightings.rollouts import LOOKED_BACK_NS, Rollout, merged
from tailburn.engine.sightings.sightings import Sighting, by_minute
from tailburn.engine.sightings.watched import (
    SIGNALS_READ,
    Watched,
    after_minute,
    seen_in,
    set_back,
    without_old,
)
from tailburn.engine.store.api import Store, StoreError, Window
from tailburn.engine.store.state.changes import Changes
from tailburn.engine.store.state.database import reason_of

log = logging.getLogger(__name__)

EVERY_S: Final = 20.0
DELAY_NS: Final = 45_000_000_000
"""Rows of a minute that are published later than this after its end are not looked at."""

_DAY_NS: Final = 1_440 * MINUTE_NS
_AGAIN_NS: Final = MERGED_NS + 5 * MINUTE_NS
_GAP_NS: Final = 10 * MINUTE_NS
"""Of a longer time in which nothing was seen, one minute stands for all."""

_SPANS: Final = """
SELECT unnest([min(received_ns), max(received_ns)]) AS received_ns, tenant, service, hop, resource
FROM spans
WHERE received_ns >= ? AND received_ns < ? AND contains(resource, 'service.version')
GROUP BY received_ns // 60000000000, tenant, service, hop, resource"""
_SIGNALS: Final = f"""
SELECT received_ns, tenant, service, resource, name, labels, value
FROM signals
WHERE received_ns >= ? AND received_ns < ?
  AND name IN ({", ".join(f"'{name}'" for name in SIGNALS_READ)})"""
_LAST: Final = """
SELECT max(last_ns) AS last_ns FROM (
    SELECT max(received_ns) AS last_ns FROM spans WHERE received_ns >= ? AND received_ns < ?
    UNION ALL
    SELECT max(received_ns) FROM signals WHERE received_ns >= ? AND received_ns < ?)"""


class Changing:
    """`step` is called by one thread at a time."""

    def __init__(
        self,
        store: Store,
        changes: Changes,
        now_ns: Callable[[], int],
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """`leads`: whether this service writes down what it sees, and no other does."""
        self._store = store
        self._changes = changes
        self._now_ns = now_ns
        self._leads = leads
        self._watched = Watched()
        self._told: dict[str, Rollout] = {}
        self._unwritten: dict[str, Rollout] = {}
        self._begun_ns = now_ns()
        self._next_ns: int | None = None
        self._is_failing = False

    def step(self) -> None:
        """Look at the minutes that are over. What can't be read or written is tried again."""
        try:
            self._look()
            self._write()
        except (DBAPIError, StoreError) as error:
            told = reason_of(error) if isinstance(error, DBAPIError) else error
            if not self._is_failing:
                log.error("changes can't be read off telemetry: %s; it is tried again", told)
            self._is_failing = True
        else:
            self._is_failing = False

    def _look(self) -> None:
        until_ns = (self._now_ns() - DELAY_NS) // MINUTE_NS * MINUTE_NS
        if self._next_ns is None:
            self._next_ns = self._begin_ns()
        if until_ns < self._next_ns - MINUTE_NS:  # the clock was set back
            self._watched, self._next_ns = set_back(self._watched, until_ns), until_ns
        if until_ns <= self._next_ns:
            return
        for minute_ns, sightings in self._minutes(self._next_ns, until_ns):
            self._watched, moves = after_minute(self._watched, sightings, minute_ns)
            if minute_ns % (60 * MINUTE_NS) == 0:
                self._watched = without_old(self._watched, minute_ns)
            for rollout in merged(self._told.values(), moves):
                self._told[rollout.key] = self._unwritten[rollout.key] = rollout
            old_ns = minute_ns - LOOKED_BACK_NS - MERGED_NS
            self._told = {k: r for k, r in self._told.items() if r.until_ns > old_ns}
        self._next_ns = until_ns

    def _begin_ns(self) -> int:
        """From there on what was seen last before the start is known again."""
        until_ns = self._begun_ns
        since_ns = until_ns - _DAY_NS
        times = [since_ns, until_ns]
        found = self._store.query(_LAST, times * 2, Window(since_ns, until_ns))
        last_ns: int = found["last_ns"][0].as_py() or until_ns
        return (last_ns - _AGAIN_NS) // MINUTE_NS * MINUTE_NS

    def _minutes(self, since_ns: int, until_ns: int) -> Iterator[tuple[int, list[Sighting]]]:
        """Each minute with what was seen in it."""
        seen: dict[int, list[Sighting]] = {}
        for table, sql in (("spans", _SPANS), ("signals", _SIGNALS)):
            rows = self._rows(sql, since_ns, until_ns)
            for minute_ns, sightings in by_minute(seen_in(table, rows)):
                seen.setdefault(minute_ns, []).extend(sightings)
        last_ns = since_ns - MINUTE_NS
        for minute_ns in [*sorted(seen), until_ns]:
            if minute_ns - last_ns > _GAP_NS:
                last_ns = minute_ns - 2 * MINUTE_NS
            for between_ns in range(last_ns + MINUTE_NS, minute_ns, MINUTE_NS):
                yield between_ns, []
            if minute_ns < until_ns:
                yield minute_ns, seen[minute_ns]
            last_ns = minute_ns

    def _rows(self, sql: str, since_ns: int, until_ns: int) -> pa.Table:
        return self._store.query(sql, [since_ns, until_ns], Window(since_ns, until_ns))

    def _write(self) -> None:
        if not self._unwritten:
            return
        if self._leads():
            changes = [rollout.change() for rollout in self._unwritten.values()]
            self._changes.put(changes)
            for change in changes:
                log.info("change: %s", in_words(change))
        self._unwritten = {}
