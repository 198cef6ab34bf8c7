"""The one consumer of the log: deliveries become rows, rows are published, state is kept."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol

import pyarrow as pa
from numpy.typing import NDArray

from tailburn.collector import snapshot
from tailburn.collector.group import Delivery, Rejected, joined
from tailburn.collector.intake import Intake
from tailburn.collector.log import LogWriter
from tailburn.collector.publisher import Publisher
from tailburn.collector.spans import SpanBatch
from tailburn.engine.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cadence:
    """How often rows are published and state is kept, whichever comes first of each pair."""

    publish_s: float = 2.0
    publish_rows: int = 200_000
    snapshot_s: float = 15.0
    # What lies behind the last snapshot must be worked through before the service is ready
    # again after a kill: at 4,000 spans a second a quarter of a minute takes under a second, at
    # full load this much takes several. The state to be written is about half as large.
    snapshot_bytes: int = 1024 * 1024 * 1024
    # Of a state so large that keeping it takes long, at most a thirtieth of the time goes there.
    snapshot_rest: int = 30


_IDLE_S: Final = 0.5

# What a delivery costs beside its spans is that of some hundreds of them.
_SPANS_AT_ONCE: Final = 8_192
_RETRY_S: Final = 1.0


class Pipeline(Protocol):
    """What turns spans into rows. Equal calls give equal rows."""

    def add(self, batch: SpanBatch, rejected: Sequence[Rejected]) -> None:
        """Spans in log order."""

    def signals(self, table: pa.Table) -> None:
        """Rows of engine.schema.SIGNALS, to be passed on."""

    def due(self, now_ns: int) -> bool:
        """Whether `advance(now_ns)` would close anything."""

    def advance(self, now_ns: int) -> None:
        """Closes what is due at `now_ns`."""

    def close_all(self, now_ns: int) -> None:
        """Closes what is open, due or not."""

    def pending_rows(self) -> int:
        """Rows that `take_rows` would give."""

    def take_rows(self) -> dict[str, pa.Table]:
        """Finished rows per table since the last call."""

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """All that is needed to go on from here, rows taken so far left out."""


class Keeper:
    """Works through deliveries in order and owns the pipeline meanwhile.

    Rows become visible about two seconds after their request closed. A snapshot is taken of the
    state between two deliveries, when all rows up to there are published; then the log is
    trimmed to what the older of the two kept snapshots needs.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        store: Store,
        writer: LogWriter,
        snapshots: Path,
        position: int,
        now_s: Callable[[], float],
        cadence: Cadence | None = None,
    ) -> None:
        """`position` is that of the last record in `pipeline`; `now_s` only ever rises."""
        self.pipeline = pipeline
        self.lock = threading.Lock()  # held while the pipeline changes
        self._publisher = Publisher(store, position)
        self._writer = writer
        self._snapshots = snapshots
        self._position = self._published = position
        self._now_s = now_s
        self._cadence = cadence or Cadence()
        self._published_s = self._snapshot_s = now_s()
        self._needed_after = snapshot.needed_after(snapshots)
        self._bytes_since_snapshot = 0
        self._snapshot_cost_s = 0.0
        self._problems: dict[str, str] = {}
        self._hurry = threading.Event()
        self._stopped = threading.Event()

    @property
    def position(self) -> int:
        """Of the last record worked through."""
        return self._position

    @property
    def published_position(self) -> int:
        """All rows that records up to this one finished are visible."""
        return self._published

    @property
    def durable_position(self) -> int:
        """No restart begins before this one; rows up to it may be merged with others."""
        return self._needed_after

    @property
    def trouble(self) -> str | None:
        """What keeps rows from becoming visible or safe; None when all is well."""
        return "; ".join(list(self._problems.values())) or None

    def start(self, intake: Intake, now_ns: Callable[[], int]) -> None:
        """Begins to work through the deliveries of an intake, until it is closed."""
        arguments = (intake, now_ns)
        threading.Thread(target=self._run, args=arguments, name="keeper", daemon=True).start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until all deliveries of a closed intake are worked through and safe.

        False: it took too long. A disk that takes no rows ends it at once: what is not
        published is worked through again after the next start.
        """
        self._hurry.set()
        return self._stopped.wait(timeout_s)

    def take(self, delivery: Delivery) -> None:
        """Works a delivery into the pipeline; publishes and snapshots what is due."""
        self._take_in(delivery)
        self.settle()

    def replay(self, delivery: Delivery) -> None:
        """As `take`, but publishes in large parts only: nobody sees the rows in between."""
        self._take_in(delivery)
        if self.pipeline.pending_rows() >= self._cadence.publish_rows:
            self.settle()

    def settle(self) -> None:
        """Publishes and snapshots what is due. What the disk refuses is tried again later."""
        now_s = self._now_s()
        rows = self.pipeline.pending_rows()
        waiting = rows > 0 or self._publisher.is_behind
        if rows >= self._cadence.publish_rows or (
            waiting and now_s - self._published_s >= self._cadence.publish_s
        ):
            self.publish()
        elif not waiting:
            self._published = self._position
        if not self._publisher.is_behind and self._snapshot_due(now_s):
            self._snapshot()

    def finish(self) -> None:
        """Publishes and snapshots everything, due or not."""
        self.publish()
        if not self._publisher.is_behind:
            self._snapshot()

    def _run(self, intake: Intake, now_ns: Callable[[], int]) -> None:
        try:
            while self._step(intake, now_ns):
                pass
            self.finish()
        except Exception as error:
            # The log has everything: the next start works it through again.
            log.exception("the keeper failed at position %d", self._position)
            self._problems["keeper"] = f"the keeper has stopped: {error!r}"
        finally:
            self._stopped.set()

    def _step(self, intake: Intake, now_ns: Callable[[], int]) -> bool:
        if self._publisher.is_behind:
            # Taking more would only fill memory: senders are told to wait instead.
            if self._hurry.wait(_RETRY_S):
                return False
            self.settle()
            return True
        try:
            delivery = intake.deliveries.get(timeout=_IDLE_S)
        except Empty:
            self.settle()
            now = now_ns()
            if self.pipeline.due(now):
                intake.tick(now)
            return True
        if delivery is None:
            return False
        delivery = _with_those_behind(delivery, intake.deliveries)
        self.take(delivery)
        intake.consumed(delivery)
        return True

    def _take_in(self, delivery: Delivery) -> None:
        with self.lock:
            self._work_in(delivery)
        self._position = delivery.last_position
        self._bytes_since_snapshot += delivery.body_bytes

    def _work_in(self, delivery: Delivery) -> None:
        batch, row = delivery.batch, 0
        for tick in delivery.ticks:
            if tick.row > row:
                self.pipeline.add(batch.part(row, tick.row), ())
                row = tick.row
            if tick.closes_all:
                self.pipeline.close_all(tick.now_ns)
            else:
                self.pipeline.advance(tick.now_ns)
        self.pipeline.add(batch.part(row, len(batch)) if row else batch, delivery.rejected)
        for table in delivery.signals:
            self.pipeline.signals(table)

    def publish(self) -> None:
        """Publishes what is finished, due or not."""
        with self.lock:
            rows = self.pipeline.take_rows()
        self._publisher.take(rows, self._position)
        self._published_s = self._now_s()
        try:
            self._publisher.publish()
        except OSError as error:
            self._say("publish", f"rows can't be published: {error}")
        else:
            self._published = self._position
            self._say("publish", None)

    def _snapshot_due(self, now_s: float) -> bool:
        since_s = now_s - self._snapshot_s
        if since_s < self._cadence.snapshot_rest * self._snapshot_cost_s:
            return False
        if self._bytes_since_snapshot >= self._cadence.snapshot_bytes:
            return True
        # Also once more at the same position: only then may the log go up to there.
        return since_s >= self._cadence.snapshot_s and self._needed_after < self._position

    def _snapshot(self) -> None:
        self.publish()
        if self._publisher.is_behind:
            return
        began_s = self._now_s()
        with self.lock:
            arrays, meta = self.pipeline.state()
        try:
            snapshot.save(self._snapshots, self._position, arrays, meta)
            self._needed_after = snapshot.needed_after(self._snapshots)
            self._writer.trim(self._needed_after + 1)
        except OSError as error:
            self._say("snapshot", f"no snapshot can be taken: {error}")
        else:
            self._say("snapshot", None)
        self._snapshot_s = self._now_s()
        self._snapshot_cost_s = self._snapshot_s - began_s
        self._bytes_since_snapshot = 0

    def _say(self, what: str, problem: str | None) -> None:
        before = self._problems.get(what)
        if problem is None:
            if self._problems.pop(what, None):
                log.warning("%s: all is well again", what)
            return
        self._problems[what] = problem
        if before is None:
            log.error("%s; it is tried again until it succeeds", problem)


def _with_those_behind(first: Delivery, waiting: SimpleQueue[Delivery | None]) -> Delivery:
    """A delivery and those that wait already, as one of about `_SPANS_AT_ONCE`."""
    found, spans = [first], len(first.batch)
    while spans < _SPANS_AT_ONCE and not waiting.empty():
        following = waiting.get()
        if following is None:
            waiting.put(None)  # the end stays the last of the queue
            break
        found.append(following)
        spans += len(following.batch)
    return joined(found)
