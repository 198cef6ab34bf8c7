"""Everything between the doors and the store of one folder, put together and taken apart."""

import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailburn.app.answers.balance import balance_rows
from tailburn.app.errors import UserError
from tailburn.app.evaluating import Evaluating, Progress
from tailburn.app.exposition import RequestSeries
from tailburn.app.learning import Learning
from tailburn.app.opening import keeping_of, refuse_foreign
from tailburn.app.parts import bounds_of
from tailburn.app.settings import Settings
from tailburn.app.slo_series import SloSeries
from tailburn.collector.hops.classify import Classifier
from tailburn.collector.hops.rules import Rules
from tailburn.collector.intake import Intake
from tailburn.collector.keeper import Keeper
from tailburn.collector.log import LogWriter, StoreInUse, StoreLock, lock_store
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.otlp.dictionary import Dictionary
from tailburn.collector.otlp.json import to_protobuf
from tailburn.collector.otlp.metrics import decode_points
from tailburn.collector.otlp.resources import Resources
from tailburn.collector.past import Past
from tailburn.collector.pipeline import Counts, Pipeline
from tailburn.collector.recovery import Recovered, Unanchored, recover
from tailburn.collector.renewal import renewed
from tailburn.collector.snapshot import OtherForm, Snapshot
from tailburn.collector.stitch.rows import PromptClasses
from tailburn.engine.store.api import LogRange, NotDurable, Window
from tailburn.engine.store.parquet import ParquetStore

log = logging.getLogger(__name__)


class ShownStore(ParquetStore):
    """A store that also counts the requests published into it, and hands on what is published."""

    series: RequestSeries
    evaluating: Evaluating | None = None  # from the end of the recovery on

    def publish(self, table: str, rows: pa.Table, log: LogRange) -> None:
        super().publish(table, rows, log)
        if table == "requests":
            self.series.observe(rows)
        if self.evaluating is not None:
            self.evaluating.take(table, rows)


@dataclass
class Collecting:
    """A store that is being written. `close` publishes everything and lets go of it."""

    store: ShownStore
    intake: Intake
    keeper: Keeper
    pipeline: Pipeline
    decoder: Decoder
    writer: LogWriter
    recovered: Recovered
    lock: StoreLock
    _upkeep: threading.Lock = field(default_factory=threading.Lock)

    @property
    def trouble(self) -> str | None:
        """Why nothing is taken, or nothing gets into the store; None when all is well."""
        return self.intake.trouble or self.keeper.trouble

    def is_busy(self) -> bool:
        """Whether a request is open, or a row on its way into the store. Waits for the keeper."""
        told_of = self.writer.last_position
        with self.keeper.lock:
            if self.pipeline.has_open or self.pipeline.pending_rows() > 0:
                return True
        return self.keeper.published_position < told_of

    def balance_rows(self) -> list[dict[str, Any]]:
        """Received and each fate, per resource."""
        with self.keeper.lock:
            return balance_rows(self.pipeline.balance, self.pipeline.resources)

    def compact(self, now_ns: int) -> None:
        """Merge past hours, thin their spans, drop what is too old."""
        with self._upkeep:
            done = self.store.compact(now_ns, self.keeper.durable_position)
            with self.keeper.lock:
                for resource, count in done.sampled_out.items():
                    self.pipeline.balance.sample_out(self._resource_code(resource), count)
            self.store.retain(now_ns)

    def close(self) -> None:
        """Write what was taken, publish every row, snapshot, and release the store."""
        self.intake.close()
        self.keeper.wait()
        self.writer.close()
        with self._upkeep:
            self.lock.release()

    def _resource_code(self, resource: str) -> int:
        resources = self.pipeline.resources
        codes = (c for c in range(len(resources)) if resources.json(c) == resource)
        return next(codes, 0)


def collect(
    settings: Settings,
    rules: Rules,
    now_ns: Callable[[], int],
    series: RequestSeries,
    slo_series: SloSeries | None = None,
    evaluating: Evaluating | None = None,
    resume: Callable[[int], None] | None = None,
) -> Collecting:
    """Lock the store, go on where the last run ended, and begin to take bodies.

    `slo_series` are shown from then on: they are what they were when the last run ended, as are
    the alerts that `evaluating` goes on with. `resume` is told the time, in ns, at which that run
    ended, before anything is taken.
    Raises UserError where the store is in use, can't be written or can't be gone on with.
    """
    lock = take_lock(settings.store)
    try:
        return _open(settings, rules, now_ns, series, slo_series, evaluating, resume, lock)
    except (Unanchored, NotDurable, OtherForm) as error:
        lock.release()
        raise UserError(f"store {settings.store}: {error}") from None
    except BaseException:
        lock.release()
        raise


def take_lock(folder: Path) -> StoreLock:
    """The lock of a store, which is made if it isn't there.

    Raises UserError where another process has it, for a folder of other people's files, and
    where it can't be written.
    """
    refuse_foreign(folder)
    try:
        return lock_store(folder, time.time_ns())
    except StoreInUse as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"store {folder}: {error.strerror}") from None


def _open(
    settings: Settings,
    rules: Rules,
    now_ns: Callable[[], int],
    series: RequestSeries,
    slo_series: SloSeries | None,
    evaluating: Evaluating | None,
    resume: Callable[[int], None] | None,
    lock: StoreLock,
) -> Collecting:
    store = ShownStore(settings.store, keeping_of(settings), settings.query_memory_bytes)
    store.series = series
    parts: tuple[Pipeline, Decoder] | None = None

    def restore(found: Snapshot | None) -> tuple[Pipeline, Decoder]:
        nonlocal parts
        learning = Learning(lambda since_ns: store.usual(Window(since_ns)), slo_series)
        parts = restored(settings, rules, found, store, learning)
        return parts

    collected = recover(settings.store, store, restore, decode_points)
    assert parts is not None, "recover restores before it returns"
    _say(collected.recovered)
    if slo_series is not None:
        slo_series.caught_up = True
    if resume is not None and parts[0].time_ns:
        resume(parts[0].time_ns)
    intake = Intake(collected.writer, collected.decoder, to_protobuf, decode_points)
    if evaluating is not None:
        evaluating.begin(store)
        store.evaluating = evaluating
        evaluating.start(_progress(collected.writer, collected.keeper))
    collected.keeper.start(intake, now_ns)
    pipeline, decoder = parts
    return Collecting(
        store=store,
        intake=intake,
        keeper=collected.keeper,
        pipeline=pipeline,
        decoder=decoder,
        writer=collected.writer,
        recovered=collected.recovered,
        lock=lock,
    )


def _progress(writer: LogWriter, keeper: Keeper) -> Progress:
    return Progress(lambda: writer.last_position, lambda: keeper.published_position)


def restored(
    settings: Settings,
    rules: Rules,
    found: Snapshot | None,
    past: Past | None = None,
    counts: Counts | None = None,
) -> tuple[Pipeline, Decoder]:
    """A pipeline and its decoder as a snapshot left them, or new ones."""
    found = renewed(found) if found else None
    dictionary = Dictionary.load(found.meta["dictionary"]) if found else Dictionary()
    resources = Resources.load(found.meta["resources"]) if found else Resources()
    decoder = Decoder(rules.wanted, dictionary=dictionary, resources=resources)
    pipeline = Pipeline(
        Classifier(rules, dictionary, resources),
        dictionary,
        resources,
        past=past,
        bounds=bounds_of(settings),
        classes=PromptClasses(rules.dimensions.prompt_bounds, rules.dimensions.prompt_classes),
        seed=secrets.randbits(62),
        counts=counts,
    )
    if found:
        pipeline.restore(found.arrays, found.meta)
    return pipeline, decoder


def _say(recovered: Recovered) -> None:
    """Tell the log of the service what was found; damage at a level that is always shown."""
    if recovered.records:
        log.info("%d records of the log worked through again", recovered.records)
    if recovered.torn_reason is not None:
        log.warning(
            "the log's end was torn (%s): %d bytes cut off, none of them acknowledged",
            recovered.torn_reason, recovered.torn_bytes,
        )  # fmt: skip
    if recovered.snapshot_damaged:
        log.warning(
            "a snapshot was damaged and set aside; begun from %s",
            "an older one" if recovered.snapshot_position else "the start of the log",
        )
    if recovered.missing_records or recovered.damaged_bytes:
        log.error(
            "the log is damaged: %d records are missing, %d bytes unreadable",
            recovered.missing_records, recovered.damaged_bytes,
        )  # fmt: skip
    if recovered.undecodable_records:
        log.error("%d records can't be decoded by this version", recovered.undecodable_records)
