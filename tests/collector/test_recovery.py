"""After any end, rows are those of a run without one."""

import asyncio
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tailburn.collector import recovery
from tailburn.collector.accept import Encoding, Signal
from tailburn.collector.intake import Intake
from tailburn.collector.keeper import Cadence
from tailburn.collector.log import Bounds, Entry, Kind, LogReader, open_log
from tailburn.collector.recovery import Collected, Recovered, Unanchored, recover
from tailburn.engine.store.parquet import ParquetStore
from tests.collector.support import (
    MS,
    START_NS,
    ClosingPipeline,
    body,
    convert,
    decoder,
    points,
    rows_in,
)

BOUNDS = Bounds(4_000, 1_000_000)
BODIES = 60
OFTEN = Cadence(
    publish_s=0.0, publish_rows=3, snapshot_s=0.0, snapshot_bytes=2_000, snapshot_rest=0
)
NEVER = Cadence(publish_s=1e9, publish_rows=10**9, snapshot_s=1e9, snapshot_bytes=10**12)


def open_at(folder: Path, cadence: Cadence = OFTEN) -> Collected:
    store = ParquetStore(folder)
    return recover(folder, store, ClosingPipeline.restore, points, BOUNDS, cadence)


def run(
    folder: Path, bodies: Sequence[int], cadence: Cadence = OFTEN, end: bool = False
) -> Recovered:
    """One life that takes some bodies, and ends in good order or just stops being there."""
    collected = open_at(folder, cadence)
    intake = Intake(collected.writer, collected.decoder, convert, points)

    async def send() -> None:
        for n in bodies:
            ids = [10 * n + i for i in range(1, 1 + n % 5)]
            at_ns = START_NS + n * 700 * MS
            await intake(Signal.TRACES, Encoding.PROTOBUF, body(ids, n), "acme", at_ns)

    asyncio.run(send())
    if end:
        intake.tick(START_NS + 10**12, closes_all=True)
    intake.close()
    while (delivery := intake.deliveries.get_nowait()) is not None:
        collected.keeper.take(delivery)
    if end:
        collected.keeper.finish()
    collected.writer.close()
    return collected.recovered


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, float]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    run(folder, range(BODIES), end=True)
    rows = rows_in(folder)
    assert len(rows) == sum(n % 5 for n in range(BODIES))
    return rows


@pytest.mark.parametrize("cadence", [OFTEN, NEVER], ids=["often", "never"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_after_many_ends_are_those_of_one_run(
    seed: int, cadence: Cadence, undisturbed: list[tuple[int, float]], tmp_path: Path
) -> None:
    cuts = sorted(random.Random(seed).sample(range(1, BODIES), 4))
    for first, after in zip([0, *cuts], [*cuts, BODIES], strict=True):
        run(tmp_path, range(first, after), cadence, end=after == BODIES)
    assert rows_in(tmp_path) == undisturbed


def test_the_same_log_worked_through_twice_gives_the_same_rows(
    undisturbed: list[tuple[int, float]], tmp_path: Path
) -> None:
    run(tmp_path / "a", range(BODIES), NEVER)
    shutil.copytree(tmp_path / "a" / "log", tmp_path / "b" / "log")
    for name in ("a", "b"):
        run(tmp_path / name, [], OFTEN, end=True)
        assert rows_in(tmp_path / name) == undisturbed


@pytest.mark.parametrize("group_bytes", [1, 700, 1 << 20])
def test_rows_do_not_depend_on_how_records_are_grouped(
    group_bytes: int,
    undisturbed: list[tuple[int, float]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recovery, "_GROUP_BYTES", group_bytes)
    run(tmp_path, range(BODIES), NEVER)
    run(tmp_path, [], OFTEN, end=True)
    assert rows_in(tmp_path) == undisturbed


def test_only_what_lies_past_the_snapshot_is_worked_through_again(tmp_path: Path) -> None:
    run(tmp_path, range(20), OFTEN)
    run(tmp_path, range(20, 25), NEVER)

    recovered = run(tmp_path, [])

    assert recovered.snapshot_position > 20
    assert 5 <= recovered.records < 15
    assert recovered.missing_records == recovered.damaged_bytes == recovered.torn_bytes == 0


def test_an_older_snapshot_stands_in_for_a_damaged_one(
    undisturbed: list[tuple[int, float]], tmp_path: Path
) -> None:
    run(tmp_path, range(40), OFTEN)
    newest = max((tmp_path / "snapshots").glob("*.snapshot"))
    newest.write_bytes(newest.read_bytes()[:-5])

    recovered = run(tmp_path, range(40, BODIES), end=True)

    assert recovered.snapshot_damaged
    assert recovered.discarded_segments > 0
    assert rows_in(tmp_path) == undisturbed


def test_without_any_snapshot_rows_older_than_the_log_stay(
    undisturbed: list[tuple[int, float]], tmp_path: Path
) -> None:
    run(tmp_path, range(BODIES), OFTEN, end=True)
    run(tmp_path, [], OFTEN)
    first = min(int(p.stem) for p in (tmp_path / "log").glob("*.log"))
    assert first > 1
    shutil.rmtree(tmp_path / "snapshots")

    recovered = run(tmp_path, [], end=True)

    assert recovered.snapshot_position == 0
    left = [n for n, _ in rows_in(tmp_path)]
    assert len(set(left)) == len(left)
    assert len(left) > 0.8 * len(undisturbed)


def test_a_store_whose_log_and_snapshots_are_gone_is_not_emptied(tmp_path: Path) -> None:
    run(tmp_path, range(20), end=True)
    rows = rows_in(tmp_path)
    shutil.rmtree(tmp_path / "snapshots")
    shutil.rmtree(tmp_path / "log")

    with pytest.raises(Unanchored, match="bring them back"):
        open_at(tmp_path)
    assert rows_in(tmp_path) == rows


def test_a_log_whose_tail_is_gone_never_gives_a_position_twice(tmp_path: Path) -> None:
    run(tmp_path, range(30), end=True)
    shutil.rmtree(tmp_path / "log")
    run(tmp_path, range(30, BODIES), NEVER)

    recovered = run(tmp_path, [], end=True)

    assert recovered.missing_records == 0
    assert len(rows_in(tmp_path)) == sum(n % 5 for n in range(BODIES))


def test_a_torn_tail_and_damage_in_the_midst_are_told(tmp_path: Path) -> None:
    run(tmp_path, range(10), NEVER)
    (path,) = (tmp_path / "log").glob("*.log")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data[:-3])

    recovered = run(tmp_path, [])

    assert recovered.missing_records == 1
    assert recovered.damaged_bytes > 0
    assert recovered.torn_bytes > 0
    assert recovered.torn_reason is not None


def test_a_record_this_version_cannot_decode_is_counted(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log").writer
    writer.append(
        [
            Entry(Kind.TRACES, START_NS, "acme", bytes(body([1]))),
            Entry(Kind.TRACES, START_NS, "acme", b"\xff" * 9),
            Entry(Kind.TRACES, START_NS, "acme", bytes(body([2]))),
        ]
    )
    writer.close()

    recovered = run(tmp_path, [], end=True)

    assert (recovered.records, recovered.undecodable_records) == (3, 1)
    assert [n for n, _ in rows_in(tmp_path)] == [1, 2]


def test_spans_rejected_before_the_log_are_counted_again(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log").writer
    writer.append([Entry(Kind.TRACES, START_NS, "acme", bytes(body([1])), rejected=3)])
    writer.close()
    reader = LogReader(tmp_path / "log")
    (found,) = recovery.Replay(reader, decoder(), points)
    assert found.rejected == [(0, "json", 3)]
