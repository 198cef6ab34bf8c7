"""What is written to a log comes back, in order and as it was."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.collector.log import Bounds, Entry, Kind, LogReader, open_log
from tailburn.collector.log.records import SEGMENT_HEADER_BYTES
from tests.collector.log.support import as_entry, entries, entry, only_file, read, written

SMALL = Bounds(segment_bytes=1_000, max_bytes=4_000)

ENTRY = st.builds(
    Entry,
    kind=st.sampled_from(Kind),
    received_ns=st.integers(-(2**63), 2**63 - 1),
    tenant=st.text(max_size=20),
    body=st.binary(max_size=200) | st.binary(max_size=8).map(lambda b: b * 900),
    rejected=st.integers(0, 2**32 - 1),
)
GROUPS = st.lists(st.lists(ENTRY, min_size=1, max_size=5), max_size=5)


@given(groups=GROUPS)
def test_every_entry_comes_back_at_its_position(
    groups: list[list[Entry]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("log") / "log"
    writer = open_log(folder).writer
    firsts = [writer.append(group) for group in groups]
    writer.close()

    records = read(folder)

    flat = [e for group in groups for e in group]
    assert [as_entry(r) for r in records] == flat
    assert [r.position for r in records] == list(range(1, len(flat) + 1))
    assert firsts == [1 + sum(map(len, groups[:i])) for i in range(len(groups))]


def test_a_log_read_twice_gives_equal_bytes_and_positions(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log", bounds=SMALL).writer
    for n in range(0, 60, 3):
        writer.append(entries(n, 3, size=50 + n))
    first = read(tmp_path / "log")

    writer.close()
    open_log(tmp_path / "log").writer.close()

    assert read(tmp_path / "log") == first
    assert len(first) == 60


def test_reading_after_a_position_skips_what_came_before(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log", bounds=SMALL).writer
    for n in range(50):
        writer.append([entry(n)])

    reader = LogReader(tmp_path / "log", after_position=37)

    assert [r.position for r in reader] == list(range(38, 51))
    assert (reader.records, reader.missing_records, reader.damaged_bytes) == (13, 0, 0)


def test_a_body_that_gets_smaller_is_stored_smaller(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log").writer
    blanked = b"gen_ai.prompt" + bytes(40_000)
    noise = random.Random(1).randbytes(40_000)

    writer.append([Entry(Kind.TRACES, 1, "a", blanked)])
    small = writer.total_bytes
    writer.append([Entry(Kind.TRACES, 2, "a", noise)])

    assert small < 500
    assert 40_000 < writer.total_bytes - small < 40_100
    assert [bytes(r.body) for r in read(tmp_path / "log")] == [blanked, noise]


def test_a_group_may_be_stored_as_it_is(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log").writer
    writer.append([Entry(Kind.TRACES, 1, "a", bytes(300_000))] * 3, compress=False)
    assert writer.total_bytes > 900_000
    assert {len(r.body) for r in read(tmp_path / "log")} == {300_000}


def test_positions_go_on_after_reopening(tmp_path: Path) -> None:
    first = open_log(tmp_path / "log").writer
    first.append(entries(0, 4))
    first.close()

    opened = open_log(tmp_path / "log")

    assert opened.writer.last_position == 4
    assert opened.writer.append(entries(4, 2)) == 5
    assert opened.writer.last_position == 6
    assert (opened.torn_bytes, opened.reason) == (0, None)
    assert written(tmp_path / "log") == entries(0, 6)


def test_segments_end_and_follow_each_other(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log", bounds=SMALL).writer
    for n in range(60):
        writer.append([entry(n)])

    files = sorted((tmp_path / "log").glob("*.log"))

    assert len(files) > 4
    assert all(1_000 <= f.stat().st_size < 1_200 for f in files[:-1])
    assert writer.total_bytes == sum(f.stat().st_size for f in files)
    assert written(tmp_path / "log") == entries(0, 60)


def test_trimming_removes_whole_segments_below_a_position(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log", bounds=SMALL).writer
    for n in range(60):
        writer.append([entry(n)])
    before = writer.total_bytes

    freed = writer.trim(before_position=31)

    left = [r.position for r in read(tmp_path / "log")]
    assert writer.total_bytes == before - freed
    assert left == list(range(left[0], 61))
    assert 31 - 14 < left[0] <= 31
    assert writer.trim(before_position=31) == 0


def test_positions_survive_a_log_that_was_trimmed_to_nothing(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log", bounds=SMALL).writer
    for n in range(60):
        writer.append([entry(n)])
    writer.trim(before_position=61)
    writer.close()
    for path in (tmp_path / "log").glob("*.log"):
        path.write_bytes(path.read_bytes()[:32])

    assert open_log(tmp_path / "log").writer.next_position > 50


def test_no_position_is_given_out_twice_when_the_log_is_behind_the_snapshot(
    tmp_path: Path,
) -> None:
    writer = open_log(tmp_path / "log").writer
    writer.append(entries(0, 5))
    writer.close()

    reopened = open_log(tmp_path / "log", snapshot_position=40).writer
    reopened.append(entries(5, 2))

    assert [r.position for r in read(tmp_path / "log", after=40)] == [41, 42]
    assert LogReader(tmp_path / "log", 40).missing_records == 0


def test_a_full_log_says_so_until_it_is_trimmed(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log", bounds=SMALL).writer
    while not writer.is_full:
        writer.append([entry(writer.next_position)])
    assert 4_000 <= writer.total_bytes < 4_200

    writer.trim(writer.next_position)

    assert not writer.is_full


def test_bounds_that_could_never_be_trimmed_are_refused() -> None:
    with pytest.raises(ValueError, match=r"3,999 bytes .* four segments of 1,000 bytes"):
        Bounds(segment_bytes=1_000, max_bytes=3_999)


def test_a_sender_cannot_plant_a_record_in_a_body(tmp_path: Path) -> None:
    other = open_log(tmp_path / "other").writer
    other.append(entries(0, 3))
    planted = only_file(tmp_path / "other").read_bytes()
    writer = open_log(tmp_path / "log").writer
    writer.append([Entry(Kind.TRACES, 1, "a", b"x" + planted), entry(1)])
    path = only_file(tmp_path / "log")
    data = bytearray(path.read_bytes())
    data[SEGMENT_HEADER_BYTES + 8] ^= 1  # in the header of the first record
    path.write_bytes(data)

    assert [r.position for r in read(tmp_path / "log")] == [2]
