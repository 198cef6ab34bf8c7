"""A body is acknowledged when it is durable, and what is handed on is just what is durable."""

import asyncio
import errno
import os
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailburn.collector.accept import Accepted, Encoding, Signal
from tailburn.collector.errors import BadBody, Busy, NoRoom
from tailburn.collector.group import Delivery, Group, Tick, add_record
from tailburn.collector.intake import TICK_NS, Intake
from tailburn.collector.log import Bounds, Disk, Entry, Kind, LogReader, open_log
from tailburn.collector.packing import packed, unpacked
from tailburn.engine.schema import SIGNALS
from tests.collector.support import (
    MS,
    START_NS,
    body,
    convert,
    decoder,
    delivered,
    ids_in_log,
    ids_of,
    points,
)

SMALL_LOG = Bounds(segment_bytes=2_000, max_bytes=8_000)


@contextmanager
def intake_at(
    folder: Path,
    disk: Disk | None = None,
    bounds: Bounds | None = None,
    backlog_bytes: int = 1 << 24,
) -> Iterator[Intake]:
    writer = open_log(folder, bounds=bounds, disk=disk).writer
    intake = Intake(writer, decoder(), convert, points, backlog_bytes)
    yield intake
    intake.close()
    writer.close()


async def send(
    intake: Intake, data: bytearray, received_ns: int = START_NS, tenant: str = "acme"
) -> Accepted:
    return await intake(Signal.TRACES, Encoding.PROTOBUF, data, tenant, received_ns)


def ids_delivered(deliveries: Sequence[Delivery]) -> list[int]:
    return [int(n) for d in deliveries for n in d.batch.span]


class Gate:
    """A disk whose syncs wait to be let through."""

    def __init__(self) -> None:
        self.reached = threading.Semaphore(0)
        self.open = threading.Semaphore(0)
        self.fail_with: int | None = None

    def disk(self) -> Disk:
        return Disk(fdatasync=self._fdatasync)

    def _fdatasync(self, fd: int) -> None:
        self.reached.release()
        self.open.acquire()
        if self.fail_with is not None:
            raise OSError(self.fail_with, os.strerror(self.fail_with))
        os.fdatasync(fd)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@contextmanager
def gated(gate: Gate, folder: Path) -> Iterator[Intake]:
    gate.open.release()  # the header of the first segment
    with intake_at(folder, gate.disk()) as intake:
        gate.reached.acquire()
        yield intake
        gate.open.release(1_000)


async def waits_at(gate: Gate) -> None:
    """Until the log's writer has come to a sync."""
    await asyncio.to_thread(gate.reached.acquire)


async def is_waiting(task: "asyncio.Task[Any]") -> bool:
    """Whether a task has nothing left to do but wait."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not task.done()


@pytest.mark.parametrize("padding", [0, 200_000], ids=["small", "large"])
def test_no_body_is_acknowledged_before_its_sync(gate: Gate, tmp_path: Path, padding: int) -> None:
    async def run(intake: Intake) -> Accepted:
        task = asyncio.create_task(send(intake, body([1, 2], padding)))
        await waits_at(gate)
        assert await is_waiting(task)
        gate.open.release()
        return await task

    with gated(gate, tmp_path / "log") as intake:
        assert asyncio.run(run(intake)) == Accepted()
        assert ids_in_log(tmp_path / "log") == [1, 2]


def test_bodies_that_come_during_a_sync_share_the_next(gate: Gate, tmp_path: Path) -> None:
    async def run(intake: Intake) -> None:
        first = asyncio.create_task(send(intake, body([1])))
        await waits_at(gate)
        others = [asyncio.create_task(send(intake, body([n]))) for n in range(2, 30)]
        await is_waiting(others[-1])
        gate.open.release()
        await first
        await waits_at(gate)
        gate.open.release()
        await asyncio.gather(*others)

    with gated(gate, tmp_path / "log") as intake:
        asyncio.run(run(intake))
        found = delivered(intake)
    assert [len(d.batch) for d in found] == [1, 28]


def test_rows_and_log_agree_in_order_and_position(tmp_path: Path) -> None:
    rng = random.Random(5)
    bodies = [body(range(100 * n, 100 * n + rng.randrange(1, 9))) for n in range(1, 301)]
    for n in range(0, 300, 17):
        bodies[n] = body([100 * n + 100], padding=90_000)

    async def run(intake: Intake) -> None:
        await asyncio.gather(*(send(intake, bytearray(b)) for b in bodies))

    with intake_at(tmp_path / "log") as intake:
        asyncio.run(run(intake))
        found = delivered(intake)

    records = {r.position: r for r in LogReader(tmp_path / "log")}
    assert sorted(ids_delivered(found)) == sorted(n for b in bodies for n in ids_of(b))
    assert [d.first_position for d in found] == [1, *(d.last_position + 1 for d in found[:-1])]
    for delivery in found:
        own = [records[p] for p in range(delivery.first_position, delivery.last_position + 1)]
        assert ids_delivered([delivery]) == [
            n for r in own if r.kind is Kind.TRACES for n in ids_of(r.body)
        ]


def test_every_body_of_a_failed_group_is_refused_and_none_of_its_rows_is_left(
    gate: Gate, tmp_path: Path
) -> None:
    async def run(intake: Intake) -> None:
        gate.fail_with = errno.ENOSPC
        tasks = [asyncio.create_task(send(intake, body([n]))) for n in (1, 2, 3)]
        await waits_at(gate)
        gate.open.release(2)  # the first alone, and then both others
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(o) for o in outcomes] == [NoRoom, NoRoom, NoRoom]
        assert intake.trouble == "the disk of the log is full"
        gate.fail_with = None
        gate.open.release(2)  # a new segment, and the group
        await send(intake, body([4]))
        assert intake.trouble is None

    with gated(gate, tmp_path / "log") as intake:
        asyncio.run(run(intake))
        (found,) = delivered(intake)
        assert intake.backlog.bytes == found.body_bytes == len(body([4]))
    assert ids_delivered([found]) == ids_in_log(tmp_path / "log") == [4]
    assert (found.first_position, found.last_position) == (1, 2)
    assert found.ticks == [Tick(0, START_NS)]


def test_a_body_that_cannot_be_decoded_leaves_nothing(tmp_path: Path) -> None:
    async def run(intake: Intake) -> None:
        for bad in (bytearray(b"\xff" * 50), bytearray(b"\xff" * 100_000)):
            with pytest.raises(BadBody):
                await send(intake, bad)
        with pytest.raises(BadBody, match="not JSON"):
            await intake(Signal.TRACES, Encoding.JSON, bytearray(b"<"), "acme", START_NS)

    with intake_at(tmp_path / "log") as intake:
        asyncio.run(run(intake))
        assert intake.backlog.bytes == 0
        assert ids_delivered(delivered(intake)) == []
    assert {r.kind for r in LogReader(tmp_path / "log")} <= {Kind.TICK}


def test_json_is_logged_as_protobuf_and_both_complaints_are_told(tmp_path: Path) -> None:
    async def run(intake: Intake) -> Accepted:
        data = bytearray(b"{") + body([7, 8])
        return await intake(Signal.TRACES, Encoding.JSON, data, "acme", START_NS)

    with intake_at(tmp_path / "log") as intake:
        assert asyncio.run(run(intake)) == Accepted(2, "two spans had odd ids")
        (found,) = delivered(intake)
    assert found.rejected == [(0, "json", 2)]
    assert ids_in_log(tmp_path / "log") == [7, 8]


def test_metrics_are_logged_as_they_came_and_delivered_as_rows(tmp_path: Path) -> None:
    async def run(intake: Intake) -> None:
        await intake(Signal.METRICS, Encoding.JSON, bytearray(b"up"), "acme", START_NS + 3)
        await intake(Signal.METRICS, Encoding.PROTOBUF, bytearray(b"down"), "acme", START_NS + 4)

    with intake_at(tmp_path / "log") as intake:
        asyncio.run(run(intake))
        rows = [row for d in delivered(intake) for t in d.signals for row in t.to_pylist()]

    assert [(r["name"], r["received_ns"] - START_NS) for r in rows] == [("up", 3), ("down", 4)]
    bodies = [(r.kind, bytes(r.body)) for r in LogReader(tmp_path / "log") if r.body]
    assert bodies == [(Kind.METRICS_JSON, b"up"), (Kind.METRICS, b"down")]


def test_rows_read_here_are_as_durable_as_what_is_sent(tmp_path: Path) -> None:
    row = {"received_ns": START_NS + 7, "name": "up", "labels": "{}", "value": 1.0}
    table = pa.Table.from_pylist([row], schema=SIGNALS)

    async def run(intake: Intake) -> None:
        await intake.take_rows(table, "acme", START_NS + 7)

    with intake_at(tmp_path / "log") as intake:
        asyncio.run(run(intake))
        (found,) = (t for d in delivered(intake) for t in d.signals)
    assert found.equals(table)

    (record,) = (r for r in LogReader(tmp_path / "log") if r.kind is Kind.SIGNALS)
    again = Group()
    add_record(again, decoder(), points, record)
    assert (record.tenant, record.received_ns) == ("acme", START_NS + 7)
    assert again.signals[0].equals(table)


def test_rows_of_another_version_are_refused_as_a_whole() -> None:
    for damaged in (b"", b"noise", packed(pa.table({"name": ["up"]}))):
        with pytest.raises(BadBody, match="no stream of signals"):
            unpacked(damaged)


def test_a_consumer_that_lags_makes_senders_wait(tmp_path: Path) -> None:
    async def run(intake: Intake) -> None:
        await send(intake, body([1]))
        await send(intake, body([2]))
        with pytest.raises(Busy, match=r"bytes are waiting to be worked through"):
            await send(intake, body([3]))
        intake.consumed(intake.deliveries.get_nowait() or pytest.fail("nothing delivered"))
        await send(intake, body([3]))

    with intake_at(tmp_path / "log", backlog_bytes=2 * len(body([1])) + 1) as intake:
        asyncio.run(run(intake))
    assert ids_in_log(tmp_path / "log") == [1, 2, 3]


def test_one_body_larger_than_the_backlog_may_pass_alone(tmp_path: Path) -> None:
    with intake_at(tmp_path / "log", backlog_bytes=10) as intake:
        asyncio.run(send(intake, body([1, 2, 3])))
    assert ids_in_log(tmp_path / "log") == [1, 2, 3]


def test_a_log_at_its_bound_refuses_until_it_is_trimmed(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log", bounds=SMALL_LOG).writer
    noise = random.Random(2).randbytes(1_900)
    while not writer.is_full:
        writer.append([Entry(Kind.METRICS, START_NS, "acme", noise)])

    async def run(intake: Intake) -> None:
        with pytest.raises(Busy, match="the log is at its bound"):
            await send(intake, body([1]))
        writer.trim(writer.next_position)
        await send(intake, body([1]))

    intake = Intake(writer, decoder(), convert, points)
    asyncio.run(run(intake))
    assert ids_delivered(delivered(intake)) == [1]


def test_time_lies_in_the_log_twice_a_second_and_before_what_it_brings(tmp_path: Path) -> None:
    async def run(intake: Intake) -> None:
        for n, ms in enumerate([0, 300, 499, 501, 900, 1_000, 1_600], 1):
            await send(intake, body([n]), START_NS + ms * MS)

    with intake_at(tmp_path / "log") as intake:
        asyncio.run(run(intake))
        found = delivered(intake)

    kinds = [(r.kind.name, (r.received_ns - START_NS) // MS) for r in LogReader(tmp_path / "log")]
    assert [ms for kind, ms in kinds if kind == "TICK"] == [0, 501, 1_600]
    assert kinds[kinds.index(("TICK", 501)) + 1] == ("TRACES", 501)
    ticks = [t for d in found for t in d.ticks]
    assert [(t.row, (t.now_ns - START_NS) // MS) for t in ticks] == [(0, 0), (0, 501), (0, 1_600)]


def test_ticks_stand_between_the_rows_of_a_group(gate: Gate, tmp_path: Path) -> None:
    async def run(intake: Intake) -> None:
        tasks = [asyncio.create_task(send(intake, body([1])))]
        await waits_at(gate)
        for n in (2, 3, 4):
            late_ns = START_NS + (n - 2) * TICK_NS
            tasks.append(asyncio.create_task(send(intake, body([n, n + 10]), late_ns)))
        await is_waiting(tasks[-1])
        intake.tick(START_NS + 9 * TICK_NS, closes_all=True)
        gate.open.release(2)
        await asyncio.gather(*tasks)

    with gated(gate, tmp_path / "log") as intake:
        asyncio.run(run(intake))
        found = delivered(intake)

    assert [t.row for t in found[1].ticks] == [2, 4, 6]
    assert [t.closes_all for t in found[1].ticks] == [False, False, True]
    assert ids_delivered(found[1:]) == [2, 12, 3, 13, 4, 14]


def test_receive_times_rise_however_bodies_overtake_each_other(tmp_path: Path) -> None:
    async def run(intake: Intake) -> None:
        for n, ms in enumerate([0, 80, 30, 90], 1):
            await send(intake, body([n]), START_NS + ms * MS)

    with intake_at(tmp_path / "log") as intake:
        asyncio.run(run(intake))
        found = delivered(intake)

    received = [int(ns - START_NS) // MS for d in found for ns in d.batch.received_ns]
    logged = [r.received_ns for r in LogReader(tmp_path / "log") if r.kind is Kind.TRACES]
    assert received == [0, 80, 80, 90]
    assert [(ns - START_NS) // MS for ns in logged] == received


def test_a_clock_set_back_is_followed(tmp_path: Path) -> None:
    hour_ns = 3_600_000_000_000

    async def run(intake: Intake) -> None:
        await send(intake, body([1]), START_NS)
        await send(intake, body([2]), START_NS - hour_ns)

    with intake_at(tmp_path / "log") as intake:
        asyncio.run(run(intake))
    times = [(r.kind, r.received_ns) for r in LogReader(tmp_path / "log")]
    assert times[2:] == [(Kind.TICK, START_NS - hour_ns), (Kind.TRACES, START_NS - hour_ns)]


@pytest.mark.parametrize("padding", [0, 200_000], ids=["small", "large"])
def test_a_sender_that_goes_away_takes_nobody_along(
    gate: Gate, tmp_path: Path, padding: int
) -> None:
    async def run(intake: Intake) -> None:
        gone = asyncio.create_task(send(intake, body([1], padding)))
        await waits_at(gate)
        stays = asyncio.create_task(send(intake, body([2])))
        await is_waiting(stays)
        gone.cancel()
        gate.open.release(2)
        await stays
        with pytest.raises(asyncio.CancelledError):
            await gone

    with gated(gate, tmp_path / "log") as intake:
        asyncio.run(run(intake))
        found = delivered(intake)
        assert intake.backlog.bytes == sum(d.body_bytes for d in found)
    assert ids_delivered(found) == [1, 2]


def test_closing_writes_what_was_taken_and_takes_no_more(gate: Gate, tmp_path: Path) -> None:
    async def run(intake: Intake) -> None:
        tasks = [
            asyncio.create_task(send(intake, body([n], 70_000 * (n % 2)))) for n in range(1, 10)
        ]
        await waits_at(gate)
        closing = asyncio.create_task(asyncio.to_thread(intake.close))
        gate.open.release(100)
        await asyncio.gather(*tasks)
        await closing
        for padding in (0, 200_000):
            with pytest.raises(Busy, match="the service is stopping"):
                await send(intake, body([99], padding))
        intake.tick(START_NS)

    with gated(gate, tmp_path / "log") as intake:
        asyncio.run(run(intake))
        found = delivered(intake)
        assert intake.backlog.bytes == sum(d.body_bytes for d in found)
    assert sorted(ids_delivered(found)) == list(range(1, 10))


def test_a_writer_that_breaks_leaves_nobody_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(fd: int, pieces: Sequence[bytes]) -> int:
        if len(pieces) > 1:
            raise RuntimeError("a fault of ours")
        return os.writev(fd, pieces)

    with intake_at(tmp_path / "log", Disk(writev=broken)) as intake:
        with pytest.raises(Busy, match="the log failed"):
            asyncio.run(send(intake, body([1])))
        intake.close()
        assert intake.trouble == "the log writer has stopped"
    assert "nothing more is taken" in caplog.text
    assert "a fault of ours" in caplog.text
