"""Whatever happened to the files, a log opens, keeps what is whole and says what is not."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.collector.log import Bounds, Fault, LogReader, open_log
from tailburn.collector.log.records import RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES
from tests.collector.log.support import as_entry, entries, entry, only_file, read, written

COUNT = 8


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """Name and bytes of a segment of eight records, no two of one length."""
    folder = tmp_path_factory.mktemp("whole") / "log"
    writer = open_log(folder).writer
    for n in range(COUNT):
        writer.append([entry(n, size=11 + 7 * n)])
    writer.close()
    return only_file(folder).name, only_file(folder).read_bytes()


def ends() -> list[int]:
    """Where each record of `whole` ends."""
    sizes = [RECORD_HEADER_BYTES + len("tenant-0") + 11 + 7 * n for n in range(COUNT)]
    return [SEGMENT_HEADER_BYTES + sum(sizes[: n + 1]) for n in range(COUNT)]


def restored(folder: Path, name: str, data: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / name).write_bytes(data)
    return folder


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_log_cut_anywhere_opens_to_a_prefix_and_goes_on(
    data: st.DataObject, whole: tuple[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    name, image = whole
    cut = data.draw(st.integers(0, len(image)))
    folder = restored(tmp_path_factory.mktemp("log"), name, image[:cut])
    survivors = sum(end <= cut for end in ends())

    opened = open_log(folder)
    position = opened.writer.append([entry(99)])
    opened.writer.close()

    assert written(folder) == [*entries_of(survivors), entry(99)]
    assert position == survivors + 1
    kept = ends()[survivors - 1] if survivors else SEGMENT_HEADER_BYTES
    assert opened.torn_bytes == (cut - kept if cut >= kept else cut)
    assert (opened.reason is None) == (opened.torn_bytes == 0)


def entries_of(count: int) -> list[object]:
    return [entry(n, size=11 + 7 * n) for n in range(count)]


@given(data=st.data())
@settings(deadline=None)
def test_a_log_with_any_tail_opens_to_what_was_written(
    data: st.DataObject, whole: tuple[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    name, image = whole
    survivors = data.draw(st.integers(0, COUNT))
    end = ends()[survivors - 1] if survivors else SEGMENT_HEADER_BYTES
    tail = data.draw(st.binary(max_size=200) | st.integers(0, 9_000).map(bytes))
    folder = restored(tmp_path_factory.mktemp("log"), name, image[:end] + tail)

    opened = open_log(folder)

    assert written(folder) == entries_of(survivors)
    assert opened.torn_bytes >= len(tail)
    assert opened.writer.next_position == survivors + 1


@given(bit=st.integers(0), flips=st.integers(1, 3))
@settings(max_examples=300, deadline=None)
def test_flipped_bits_cost_the_records_they_are_in_and_no_other(
    bit: int, flips: int, whole: tuple[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    name, image = whole
    data = bytearray(image)
    hit = set()
    for i in range(flips):
        where = (bit + i * 7919) % (len(data) * 8)
        data[where // 8] ^= 1 << where % 8
        hit.add(sum(end <= where // 8 for end in ends()))
    folder = restored(tmp_path_factory.mktemp("log"), name, bytes(data))

    found = read(folder)

    # Bits of the segment's own header may fall on the first record's count: it is read all the
    # same, so only what lies inside records may cost one.
    lost = {p - 1 for p in range(1, COUNT + 1)} - {r.position - 1 for r in found}
    assert lost <= hit
    assert all(as_entry(r) == entry(r.position - 1, 11 + 7 * (r.position - 1)) for r in found)


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        pytest.param(bytes(4096), Fault.ZEROS, id="zeros"),
        pytest.param(b"\xff" * 4096, Fault.CHECKSUM, id="garbage"),
    ],
)
def test_the_reason_of_a_torn_tail_is_told(
    tail: bytes, reason: Fault, whole: tuple[str, bytes], tmp_path: Path
) -> None:
    folder = restored(tmp_path / "log", whole[0], whole[1] + tail)
    opened = open_log(folder)
    assert (opened.torn_bytes, opened.reason) == (4096, reason)
    assert only_file(folder).stat().st_size == len(whole[1])


def test_a_record_cut_short_is_told_from_a_damaged_one(
    whole: tuple[str, bytes], tmp_path: Path
) -> None:
    name, data = whole
    flipped = bytearray(data)
    flipped[-1] ^= 1

    short = open_log(restored(tmp_path / "short", name, data[:-1]))
    damaged = open_log(restored(tmp_path / "damaged", name, bytes(flipped)))

    assert short.reason is Fault.CUT_SHORT
    assert damaged.reason is Fault.CHECKSUM
    assert short.torn_bytes == damaged.torn_bytes - 1


@pytest.mark.parametrize("offset", [0, 4, 20, RECORD_HEADER_BYTES + 9], ids=str)
def test_damage_in_the_midst_is_skipped_and_counted(
    offset: int, whole: tuple[str, bytes], tmp_path: Path
) -> None:
    name, data = whole
    damaged = bytearray(data)
    damaged[ends()[2] + offset] ^= 0x10
    folder = restored(tmp_path / "log", name, bytes(damaged))

    opened = open_log(folder)
    reader = LogReader(folder)

    assert [r.position for r in reader] == [1, 2, 3, 5, 6, 7, 8]
    assert (reader.records, reader.missing_records) == (7, 1)
    assert reader.damaged_bytes == ends()[3] - ends()[2]
    assert opened.torn_bytes == 0


def test_a_damaged_segment_header_costs_nothing(whole: tuple[str, bytes], tmp_path: Path) -> None:
    name, data = whole
    folder = restored(tmp_path / "log", name, bytes(12) + data[12:])
    assert written(folder) == entries_of(COUNT)


def test_a_segment_lost_in_the_midst_is_counted(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    writer = open_log(folder, bounds=Bounds(1_000, 4_000)).writer
    for n in range(60):
        writer.append([entry(n)])
    files = sorted(folder.glob("*.log"))
    lost = int(files[2].stem) - int(files[1].stem)
    files[1].unlink()

    reader = LogReader(folder)

    assert len(list(reader)) == 60 - lost
    assert reader.missing_records == lost


def test_a_new_segment_without_a_whole_header_is_taken_away(
    whole: tuple[str, bytes], tmp_path: Path
) -> None:
    folder = restored(tmp_path / "log", *whole)
    (folder / f"{COUNT + 1:020d}.log").write_bytes(b"tburn")

    opened = open_log(folder)

    assert opened.torn_bytes == 5
    assert opened.writer.append(entries(COUNT, 1)) == COUNT + 1
    assert len(read(folder)) == COUNT + 1
