"""A disk that is full or broken costs no acknowledged record, and is got over."""

import errno
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tailburn.collector.errors import Busy, NoRoom
from tailburn.collector.log import Bounds, Disk, open_log
from tests.collector.log.support import entries, entry, only_file, written


@dataclass
class Failing:
    """A disk that takes `room` bytes; `errors` are raised by the next calls of that name."""

    room: int = 1 << 40
    errors: dict[str, list[int]] = field(default_factory=dict)

    def disk(self) -> Disk:
        return Disk(self.writev, self.fdatasync, self.ftruncate)

    def writev(self, fd: int, pieces: Sequence[bytes]) -> int:
        self._raise("writev")
        data = b"".join(pieces)[: self.room]
        if not data:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(data)
        return os.write(fd, data)

    def fdatasync(self, fd: int) -> None:
        self._raise("fdatasync")
        os.fdatasync(fd)

    def ftruncate(self, fd: int, length: int) -> None:
        self._raise("ftruncate")
        os.ftruncate(fd, length)

    def _raise(self, call: str) -> None:
        if waiting := self.errors.get(call):
            number = waiting.pop(0)
            raise OSError(number, os.strerror(number))


def test_a_full_disk_refuses_and_recovers_when_there_is_room(tiny_disk: Path) -> None:
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(180_000))
    writer = open_log(tiny_disk / "log").writer
    count = 0
    with pytest.raises(NoRoom, match="the disk of the log is full"):
        for _ in range(100):
            writer.append(entries(count, 3, size=1_000))
            count += 3
    assert only_file(tiny_disk / "log").stat().st_size == writer.total_bytes
    assert writer.trouble == "the disk of the log is full"

    ballast.unlink()
    writer.append(entries(count, 3, size=1_000))

    writer.close()
    assert writer.trouble is None
    assert written(tiny_disk / "log") == entries(0, count + 3, size=1_000)


def test_a_full_disk_refuses_a_new_segment_and_leaves_nothing_of_it(tiny_disk: Path) -> None:
    writer = open_log(tiny_disk / "log", bounds=Bounds(4_096, 1 << 20)).writer
    writer.append(entries(0, 4, size=1_000))
    ballast = tiny_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4_096))
    with pytest.raises(NoRoom):
        writer.append(entries(4, 1))
    assert len(list((tiny_disk / "log").iterdir())) == 1

    ballast.unlink()
    writer.append(entries(4, 1))

    writer.close()
    assert len(written(tiny_disk / "log")) == 5


@pytest.mark.parametrize("room", range(0, 400, 13))
def test_a_short_write_is_taken_back(room: int, tmp_path: Path) -> None:
    failing = Failing()
    writer = open_log(tmp_path / "log", disk=failing.disk()).writer
    writer.append(entries(0, 2))
    before = writer.total_bytes
    failing.room = room

    with pytest.raises(NoRoom):
        writer.append(entries(2, 4, size=200))

    assert only_file(tmp_path / "log").stat().st_size == before
    failing.room = 1 << 40
    assert writer.append(entries(2, 1)) == 3
    assert written(tmp_path / "log") == entries(0, 3)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT], ids=["disk", "quota"])
def test_no_room_at_the_sync_is_no_room(number: int, tmp_path: Path) -> None:
    failing = Failing()
    writer = open_log(tmp_path / "log", disk=failing.disk()).writer
    writer.append(entries(0, 2))
    failing.errors["fdatasync"] = [number]
    with pytest.raises(NoRoom):
        writer.append(entries(2, 2))
    writer.append(entries(2, 1))
    assert written(tmp_path / "log") == entries(0, 3)


def test_an_unsynced_file_is_not_trusted_with_more(tmp_path: Path) -> None:
    failing = Failing()
    writer = open_log(tmp_path / "log", disk=failing.disk()).writer
    writer.append(entries(0, 2))
    failing.errors["fdatasync"] = [errno.EIO]

    with pytest.raises(Busy, match="Input/output error") as refused:
        writer.append(entries(2, 2))
    assert not isinstance(refused.value, NoRoom)
    assert writer.trouble == str(refused.value)
    assert writer.append(entries(2, 2)) == 3

    assert len(list((tmp_path / "log").glob("*.log"))) == 2
    assert written(tmp_path / "log") == entries(0, 4)


def test_nothing_goes_into_a_file_that_was_deleted(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log").writer
    writer.append(entries(0, 2))
    only_file(tmp_path / "log").unlink()
    assert writer.append(entries(2, 2)) == 3
    assert written(tmp_path / "log") == entries(2, 2)

    shutil.rmtree(tmp_path / "log")
    with pytest.raises(Busy, match="No such file"):
        writer.append(entries(4, 2))
    assert writer.trouble is not None


def test_what_could_not_be_taken_back_at_once_is_taken_back_before_the_next(
    tmp_path: Path,
) -> None:
    failing = Failing()
    writer = open_log(tmp_path / "log", disk=failing.disk()).writer
    writer.append(entries(0, 2))
    failing.room = 100
    failing.errors["ftruncate"] = [errno.EIO, errno.EIO]
    with pytest.raises(NoRoom):
        writer.append(entries(2, 4, size=200))
    failing.room = 1 << 40

    with pytest.raises(Busy):
        writer.append(entries(2, 1))
    assert writer.append(entries(2, 1)) == 3

    assert written(tmp_path / "log") == entries(0, 3)


def test_a_group_of_more_pieces_than_one_call_takes_is_written(tmp_path: Path) -> None:
    writer = open_log(tmp_path / "log").writer
    writer.append(entries(0, 3_000))
    assert written(tmp_path / "log") == [entry(n) for n in range(3_000)]


def test_single_bytes_at_a_time_are_enough(tmp_path: Path) -> None:
    def one(fd: int, pieces: Sequence[bytes]) -> int:
        return os.write(fd, b"".join(pieces)[:1])

    writer = open_log(tmp_path / "log", disk=Disk(writev=one)).writer
    writer.append(entries(0, 3))
    assert written(tmp_path / "log") == entries(0, 3)
