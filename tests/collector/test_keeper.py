"""Rows are published in order with their stretch of the log, and the log is kept as needed."""

import errno
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailburn.collector import snapshot
from tailburn.collector.group import Delivery, Group, Tick
from tailburn.collector.intake import Intake
from tailburn.collector.keeper import Cadence, Keeper
from tailburn.collector.log import Bounds, LogWriter, open_log
from tailburn.engine.store import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tests.collector.support import (
    MS,
    QUIET_NS,
    START_NS,
    ClosingPipeline,
    body,
    convert,
    decoder,
    points,
)

S = 1_000_000_000
CADENCE = Cadence(publish_s=2.0, publish_rows=7, snapshot_s=31.0, snapshot_bytes=1_000_000)


class NotingStore(ParquetStore):
    """A store that remembers ranges, and refuses while `full`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.published: list[tuple[str, int, LogRange]] = []
        self.full = False

    def publish(self, table: str, rows: pa.Table, log: LogRange) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().publish(table, rows, log)
        self.published.append((table, rows.num_rows, log))


@dataclass
class Bench:
    """A keeper whose clock is turned by hand."""

    folder: Path
    store: NotingStore
    writer: LogWriter
    pipeline: ClosingPipeline = field(default_factory=ClosingPipeline)
    now_s: float = 100.0

    def __post_init__(self) -> None:
        self.keeper = Keeper(
            self.pipeline,
            self.store,
            self.writer,
            self.folder / "snapshots",
            0,
            lambda: self.now_s,
            CADENCE,
        )
        self._decoder = decoder()

    def take(
        self, ids: Sequence[int], at_s: float, ticks: Sequence[Tick] = (), padding: int = 0
    ) -> Delivery:
        """Works in one body, logged and decoded, behind the given ticks."""
        group, received_ns = Group(), START_NS + int(at_s * S)
        for tick in ticks:
            group.add_tick(tick.now_ns, tick.closes_all)
        if ids:
            data = body(ids, padding)
            size = len(data)
            decoded = self._decoder.add(data, received_ns=received_ns, tenant="acme")
            group.add_spans(decoded, received_ns, "acme", size)
        first = self.writer.append(group.entries)
        delivery = group.delivery(first, self.writer.last_position, self._decoder)
        self.keeper.take(delivery)
        return delivery


def tick(at_s: float, closes_all: bool = False) -> Tick:
    return Tick(0, START_NS + int(at_s * S), closes_all)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    writer = open_log(tmp_path / "log", bounds=Bounds(2_000, 1_000_000)).writer
    return Bench(tmp_path, NotingStore(tmp_path), writer)


def test_rows_are_published_two_seconds_after_those_before(bench: Bench) -> None:
    bench.take([1, 2], 0)
    bench.take([3], 2, [tick(2)])
    bench.now_s += 1
    bench.take([], 5, [tick(5)])
    assert bench.store.published == []
    bench.now_s += 1
    bench.keeper.settle()
    bench.now_s += 2
    bench.take([], 7, [tick(7)])

    assert bench.store.published == [
        ("signals", 2, LogRange(1, 4)),
        ("signals", 1, LogRange(5, 5)),
    ]


def test_many_rows_are_published_at_once(bench: Bench) -> None:
    bench.take(range(1, 7), 0)
    bench.take([], 5, [tick(5)])
    assert bench.store.published == []
    bench.take([7], 6)
    bench.take([], 11, [tick(11)])
    assert bench.store.published == [("signals", 7, LogRange(1, 4))]


def test_time_comes_between_the_spans_it_came_between(bench: Bench) -> None:
    seen: list[object] = []

    class Noting(ClosingPipeline):
        def add(self, batch: Any, rejected: Any) -> None:
            seen.append(batch.span.tolist())
            super().add(batch, rejected)

        def advance(self, now_ns: int) -> None:
            seen.append((now_ns - START_NS) // S)

        def close_all(self, now_ns: int) -> None:
            seen.append(f"close at {(now_ns - START_NS) // S}")

    bench.keeper.pipeline = Noting()
    source = decoder()
    source.add(body([1, 2, 3, 4, 5]), received_ns=START_NS, tenant="acme")
    ticks = [
        tick(0),
        Tick(2, START_NS + S),
        Tick(2, START_NS + 2 * S),
        Tick(5, START_NS + 3 * S, True),
    ]
    bench.keeper.take(Delivery(1, 6, source.take(), [], [], ticks, 0))

    assert seen == [0, [1, 2], 1, 2, [3, 4, 5], "close at 3", []]


def test_a_snapshot_waits_for_its_time_and_trims_the_log_to_the_older(bench: Bench) -> None:
    for n in range(1, 40):
        bench.take([n], 0, padding=200)
    full = bench.writer.total_bytes
    snapshots = bench.folder / "snapshots"
    bench.now_s += 30
    bench.keeper.settle()
    assert snapshot.load_latest(snapshots) is None

    bench.now_s += 1
    bench.keeper.settle()
    found = snapshot.load_latest(snapshots)
    assert found is not None and found.position == 39
    assert (bench.keeper.durable_position, bench.writer.total_bytes) == (0, full)

    bench.now_s += 31
    bench.keeper.settle()
    assert bench.keeper.durable_position == 39
    assert bench.writer.total_bytes < 2_500


def test_a_snapshot_is_taken_after_many_bytes(bench: Bench) -> None:
    bench.take([1], 0, padding=990_000)
    assert snapshot.load_latest(bench.folder / "snapshots") is None
    bench.take([2], 0, padding=20_000)
    found = snapshot.load_latest(bench.folder / "snapshots")
    assert found is not None and found.position == 2


def test_a_snapshot_that_took_long_is_followed_by_a_long_rest(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = bench.pipeline.state

    def slow() -> tuple[dict[str, Any], dict[str, Any]]:
        bench.now_s += 2
        return state()

    monkeypatch.setattr(bench.pipeline, "state", slow)
    bench.take([1], 0, padding=1_010_000)
    for seconds, position in ((59, 1), (1, 3)):
        bench.now_s += seconds
        bench.take([2], 0, padding=1_010_000)
        found = snapshot.load_latest(bench.folder / "snapshots")
        assert found is not None and found.position == position


def test_nothing_new_makes_no_third_snapshot(bench: Bench) -> None:
    bench.take([1], 0)
    names = []
    for _ in range(4):
        bench.now_s += 31
        bench.keeper.settle()
        names.append(sorted(p.name for p in (bench.folder / "snapshots").iterdir()))
    assert [len(n) for n in names] == [1, 2, 2, 2]
    assert names[1] == names[2] == names[3]


def test_what_the_disk_refuses_is_published_when_there_is_room(bench: Bench) -> None:
    bench.store.full = True
    bench.take([1], 0)
    bench.now_s += 40
    bench.take([2], 5, [tick(5)])
    assert bench.keeper.trouble is not None and "No space left" in bench.keeper.trouble
    assert snapshot.load_latest(bench.folder / "snapshots") is None

    bench.store.full = False
    bench.now_s += 2
    bench.take([], 10, [tick(10)])

    assert bench.store.published == [
        ("signals", 1, LogRange(1, 3)),
        ("signals", 1, LogRange(4, 4)),
    ]
    assert bench.keeper.trouble is None
    assert snapshot.load_latest(bench.folder / "snapshots") is not None


def test_rows_of_several_hours_are_never_half_published(bench: Bench) -> None:
    class HalfFull(NotingStore):
        def publish(self, table: str, rows: pa.Table, log: LogRange) -> None:
            self.full = len(self.published) == 1
            super().publish(table, rows, log)

    bench.store = HalfFull(bench.folder)
    bench.__post_init__()
    bench.take([1], 0)
    bench.take([2], 3_600)
    bench.take([], 7_200, [tick(7_200)])
    bench.now_s += 2
    bench.keeper.settle()
    bench.store.published.append(("signals", 0, LogRange(0, 0)))
    bench.now_s += 2
    bench.keeper.settle()

    rows = bench.store.query("SELECT name FROM signals ORDER BY name").to_pylist()
    assert rows == [{"name": "1"}, {"name": "2"}]


def test_a_pipeline_that_fails_stops_the_keeper_and_is_told(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(ClosingPipeline):
        def advance(self, now_ns: int) -> None:
            raise ArithmeticError("a fault of ours")

    bench.keeper.pipeline = Broken()
    intake = Intake(bench.writer, decoder(), convert, points)
    bench.keeper.start(intake, lambda: START_NS)
    intake.tick(START_NS)
    assert bench.keeper.wait(60.0)
    intake.close()
    assert bench.keeper.trouble == "the keeper has stopped: ArithmeticError('a fault of ours')"
    assert "the keeper failed at position 0" in caplog.text


def test_an_idle_service_closes_what_is_due_by_its_clock(bench: Bench) -> None:
    advanced = threading.Event()

    class Telling(ClosingPipeline):
        def advance(self, now_ns: int) -> None:
            super().advance(now_ns)
            advanced.set()

    pipeline = bench.keeper.pipeline = Telling()
    bench.take([1], 0)
    intake = Intake(bench.writer, decoder(), convert, points)
    bench.keeper.start(intake, lambda: START_NS + QUIET_NS + 3 * MS)
    assert advanced.wait(60.0)
    intake.close()
    assert bench.keeper.wait(60.0)

    assert pipeline.advanced_ns == [START_NS + QUIET_NS + 3 * MS]
    assert bench.store.published == [("signals", 1, LogRange(1, 2))]


def test_a_disk_that_stays_full_does_not_hold_up_the_end(bench: Bench) -> None:
    bench.store.full = True
    bench.take([1], 0)
    intake = Intake(bench.writer, decoder(), convert, points)
    bench.keeper.start(intake, lambda: START_NS)
    intake.tick(START_NS + S, closes_all=True)
    intake.close()

    assert bench.keeper.wait(60.0)
    assert bench.keeper.trouble is not None
    assert snapshot.load_latest(bench.folder / "snapshots") is None
