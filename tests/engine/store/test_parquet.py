"""The Parquet store: what every store must do, and what only files can go through."""

import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tailburn.engine.schema import SPANS
from tailburn.engine.store import Damaged, Keeping, LogRange, Store
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.reading import damage
from tests.engine.store import samples
from tests.engine.store.conformance import Open, StoreConformance, ids
from tests.engine.store.conformance_keeping import KeepingConformance
from tests.engine.store.samples import HOUR_NS, T0, trace_hex

LATER = T0 + 3 * HOUR_NS


class TestParquetStore(StoreConformance, KeepingConformance):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[Open]:
        def open_it(keeping: Keeping) -> Store:
            return ParquetStore(tmp_path / "store", keeping)

        yield open_it


def filled(root: Path, segments: int = 3, rows: int = 20) -> ParquetStore:
    """A store of requests and spans, `rows` traces in each of `segments` segments."""
    store = ParquetStore(root)
    for part in range(segments):
        numbers = range(part * rows, part * rows + rows)
        log = LogRange(part + 1, part + 1)
        requests = [samples.request(i, ttft_client_s=i / 7) for i in numbers]
        store.publish("requests", samples.requests(*requests), log)
        store.publish("spans", samples.spans(*(samples.span(i, 0) for i in numbers)), log)
    return store


def files(root: Path) -> list[Path]:
    return sorted(p for p in root.rglob("*") if p.is_file())


# Damage


def flipped_again_and_again(root: Path, table: str, flips: int) -> None:
    """Flip a random bit at a time; each time the segment is skipped by name, or reads the same."""
    store = filled(root, segments=1)
    [path] = (root / table).rglob("*.parquet")
    traces = store.closed_traces()
    raw = path.read_bytes()
    chance = random.Random(7)
    outcomes: Counter[str] = Counter()

    def answers(opened: ParquetStore) -> list[str]:
        sql = f"SELECT * FROM {'request_versions' if table == 'requests' else 'spans'}"
        by_trace = opened.requests_of(traces) if table == "requests" else opened.spans_of(traces)
        return sorted(map(str, opened.query(sql).to_pylist())) + sorted(
            map(str, by_trace.to_pylist())
        )

    whole = answers(store)
    for _ in range(flips):
        flipped = bytearray(raw)
        flipped[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        opened = ParquetStore(root)
        found = answers(opened)
        skipped = [d.path for d in opened.damaged()] == [str(path)]
        assert found == ([] if skipped else whole)
        outcomes["skipped" if skipped else "unharmed"] += 1
    assert outcomes["skipped"] > flips / 3


@pytest.mark.parametrize("table", ["requests", "spans"])
def test_a_flipped_bit_skips_the_segment_or_changes_nothing(tmp_path: Path, table: str) -> None:
    flipped_again_and_again(tmp_path, table, flips=25)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("table", ["requests", "spans"])
def test_many_flipped_bits(tmp_path: Path, table: str) -> None:
    flipped_again_and_again(tmp_path, table, flips=3000)


def test_a_dictionary_that_lost_its_values_is_damage(tmp_path: Path) -> None:
    """No checksum is over a page's own header: what it says of its size is tried for itself."""
    filled(tmp_path, segments=1)
    [path] = (tmp_path / "spans").rglob("*.parquet")
    raw = path.read_bytes()
    reasons = []
    for at in range(len(raw) // 20):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 0x20]) + raw[at + 1 :])
        reasons.append(damage(path, SPANS) or "")
    assert any("Dictionary indices invalid" in reason for reason in reasons)


def test_damage_is_named_and_other_segments_are_still_read(tmp_path: Path) -> None:
    filled(tmp_path)
    path = sorted((tmp_path / "requests").rglob("*.parquet"))[1]
    path.write_bytes(path.read_bytes()[:-100])
    store = ParquetStore(tmp_path)
    assert len(store.requests()) == 40
    [damage] = store.damaged()
    assert isinstance(damage, Damaged)
    assert (damage.table, damage.path) == ("requests", str(path))
    assert damage.reason
    assert store.usage()["requests"].rows == 40


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 3, b"\0" * 1000])
def test_a_file_that_is_no_parquet_is_skipped(tmp_path: Path, content: bytes) -> None:
    filled(tmp_path, segments=1)
    [path] = (tmp_path / "spans").rglob("*.parquet")
    path.write_bytes(content)
    store = ParquetStore(tmp_path)
    assert len(store.trace(trace_hex(3)).spans) == 0
    assert len(store.trace(trace_hex(3)).requests) == 1
    assert [d.path for d in store.damaged()] == [str(path)]


def test_compaction_sets_a_damaged_segment_aside_and_merges_the_rest_next_time(
    tmp_path: Path,
) -> None:
    filled(tmp_path)
    path = sorted((tmp_path / "spans").rglob("*.parquet"))[1]
    raw = bytearray(path.read_bytes())
    raw[100] ^= 255
    path.write_bytes(raw)
    store = ParquetStore(tmp_path)
    assert store.compact(LATER, durable_position=9).hours == 1  # the requests
    assert [d.path for d in store.damaged()] == [f"{path}.damaged"]
    assert store.compact(LATER, durable_position=9).hours == 1
    assert len(store.query("SELECT * FROM spans")) == 40
    assert Path(f"{path}.damaged").exists()


# Crashes


def test_what_an_interrupted_write_leaves_is_never_read_and_cleared_at_the_start(
    tmp_path: Path,
) -> None:
    store = filled(tmp_path)
    before = files(tmp_path)
    folder = next((tmp_path / "requests").rglob("*.parquet")).parent
    (folder / ".7-7-9.parquet.tmp").write_bytes(b"PAR1 half a segm")
    (tmp_path / "tmp").mkdir(exist_ok=True)
    (tmp_path / "tmp" / "spans-1").write_bytes(b"spilt")
    assert len(store.requests()) == 60
    assert store.discard_after(9) == 0
    assert files(tmp_path) == before


def test_a_crash_between_a_merge_and_the_removal_of_its_inputs_counts_nothing_twice(
    tmp_path: Path,
) -> None:
    store = filled(tmp_path / "store")
    shutil.copytree(tmp_path / "store", tmp_path / "inputs")
    store.compact(LATER, durable_position=9)
    merged = files(tmp_path / "store")
    shutil.copytree(tmp_path / "inputs", tmp_path / "store", dirs_exist_ok=True)
    assert len(files(tmp_path / "store")) > len(merged)
    again = ParquetStore(tmp_path / "store")
    assert len(again.requests()) == 60
    assert again.usage()["spans"].rows == 60
    assert again.discard_after(9) == 0
    assert files(tmp_path / "store") == merged
    again.publish("requests", samples.requests(samples.request(99)), LogRange(10, 10))
    assert len(again.requests()) == 61


WRITER = """
import sys
from pathlib import Path
from tailburn.engine.store import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.reading import damage
from tests.engine.store import samples
store, first = ParquetStore(Path(sys.argv[1])), int(sys.argv[2])
store.discard_after(first - 1)
for i in range(first, first + 1000):
    store.publish("requests", samples.requests(samples.request(i, received_ns=samples.T0)),
                  LogRange(i, i))
    store.publish("spans", samples.spans(samples.span(i, 0, received_ns=samples.T0)),
                  LogRange(i, i))
    print(i, flush=True)
    if i % 4 == 3:
        store.compact(samples.T0 + samples.HOUR_NS, durable_position=i)
        print(i, flush=True)
"""


def killed_again_and_again(root: Path, kills: int, seed: int) -> None:
    """Kill a writer at random instants; each time what it acknowledged is there, once."""
    chance = random.Random(seed)
    acknowledged = 0
    for _ in range(kills):
        command = [sys.executable, "-c", WRITER, str(root), str(acknowledged + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(chance.randrange(1, 12)):
                acknowledged = int(writer.stdout.readline())
            try:
                writer.wait(chance.random() / 50)
            except subprocess.TimeoutExpired:
                writer.send_signal(signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
        expected = sorted(trace_hex(i) for i in range(1, acknowledged + 1))
        store = ParquetStore(root)
        store.discard_after(acknowledged)
        assert ids(store.requests(latest=False)) == expected
        assert ids(store.spans_of(store.closed_traces())) == expected
        assert not store.damaged()


def test_kill_9_loses_nothing_acknowledged_and_counts_nothing_twice(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, kills=3, seed=1)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_kill_9_many_times(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, kills=100, seed=2)


# Files


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    store = filled(tmp_path / "store", segments=1)
    folder = next((tmp_path / "store" / "requests").rglob("*.parquet")).parent
    shutil.rmtree(folder)
    folder.write_bytes(b"")  # no folder can be made here, for root neither
    with pytest.raises(OSError):
        store.publish("requests", samples.requests(samples.request(1)), LogRange(2, 2))
    assert files(tmp_path / "store" / "requests") == [folder]


def test_an_hour_that_runs_gathers_its_small_segments(tmp_path: Path) -> None:
    store = filled(tmp_path, segments=33, rows=1)
    assert store.compact(T0 + 1, durable_position=32).segments == 64
    assert store.usage()["requests"].segments == 2
    assert len(store.requests()) == 33
    for i in range(33, 41):
        store.publish("requests", samples.requests(samples.request(i)), LogRange(i, i))
    assert store.compact(LATER, durable_position=40).segments == 10
    assert store.usage()["requests"].segments == 1
    assert len(store.requests()) == 41


def test_merged_segments_are_sorted_by_trace(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.compact(LATER, durable_position=9)
    for table, column in (("requests", "trace_id"), ("spans", "trace_id_hex")):
        view = "request_versions" if table == "requests" else table
        found = store.query(f"SELECT {column} FROM {view}").column(0).to_pylist()
        assert found == sorted(found)


def test_a_trace_is_found_among_traces_that_begin_alike(tmp_path: Path) -> None:
    store = ParquetStore(tmp_path)
    chosen = [b"collide!" + i.to_bytes(8, "big") for i in range(500)]
    store.publish(
        "spans", samples.spans(*(samples.span(1, 1, trace_id=x) for x in chosen)), LogRange(1, 1)
    )
    store.compact(LATER, durable_position=1)
    assert ids(store.trace(chosen[250].hex()).spans) == [chosen[250].hex()]
    assert len(store.spans_of(np.array(chosen[100:103], "S16"))) == 3


def test_files_that_are_no_segments_are_left_alone(tmp_path: Path) -> None:
    store = filled(tmp_path, segments=1)
    folder = next((tmp_path / "requests").rglob("*.parquet")).parent
    for name in ("notes.txt", "1-2.parquet", "x-y-z.parquet"):
        (folder / name).write_text("mine")
    (tmp_path / "requests" / "not a day").mkdir()
    assert len(store.requests()) == 20
    store.compact(LATER, durable_position=9)
    assert len(store.requests()) == 20
    assert (folder / "notes.txt").read_text() == "mine"
