"""The state of everything between the log and the store, at one position of the log.

    file = magic, length of the head, head (JSON), arrays one after another, CRC-32C of it all

The last two are kept, so that one damaged file costs a longer replay and nothing else.
"""

import os
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import FileIO
from itertools import chain
from pathlib import Path
from typing import Any, Final

import google_crc32c
import msgspec
import numpy as np
from numpy.typing import NDArray

from tailburn.collector.log.disk import sync_folder

KEPT: Final = 2

_MAGIC: Final = b"tburnsnp"
_HEAD: Final = struct.Struct("<8sQ")
_CRC: Final = struct.Struct("<I")
_NAME: Final = re.compile(r"(\d{10})-(\d{20})\.snapshot")
_DAMAGED: Final = "damaged.snapshot"
_FORM: Final = 2
_PIECE_BYTES: Final = 1 << 20


class Damaged(Exception):
    """A snapshot file that is not what was written."""


class OtherForm(Exception):
    """A whole snapshot that another version of this program wrote in a form of its own."""


class _Array(msgspec.Struct):
    name: str
    dtype: str
    shape: tuple[int, ...]


class _Head(msgspec.Struct):
    position: int
    meta: dict[str, Any]
    arrays: list[_Array]
    form: int = 1


@dataclass(frozen=True)
class Snapshot:
    """State after every record up to `position`, that one included. The arrays are writable."""

    position: int
    arrays: dict[str, NDArray[Any]]
    meta: dict[str, Any]


@dataclass(frozen=True)
class _File:
    path: Path
    number: int
    position: int


def save(
    folder: Path, position: int, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]
) -> int:
    """Makes a snapshot durable in one step; its size in bytes.

    `meta` is what JSON can hold. Raises `OSError` and leaves what was there, `TypeError` for
    an array of objects.
    """
    head = _head(position, arrays, meta)
    folder.mkdir(parents=True, exist_ok=True)
    files = _files(folder)
    number = files[-1].number + 1 if files else 1
    path = folder / f"{number:010d}-{position:020d}.snapshot"
    temporary = path.with_suffix(".tmp")
    try:
        size = _write(temporary, head, arrays.values())
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(folder)
    for old in files[: -(KEPT - 1)]:
        old.path.unlink()
    return size


def load_latest(folder: Path) -> Snapshot | None:
    """The newest snapshot that is whole; None where there is none.

    Damaged ones are set aside under another name, the last of them kept to be looked at. Raises
    OtherForm and touches nothing.
    """
    if not folder.is_dir():
        return None
    for temporary in folder.glob("*.tmp"):
        temporary.unlink()
    for file in reversed(_files(folder)):
        try:
            return _read(file.path)
        except Damaged:
            file.path.rename(folder / _DAMAGED)
    return None


def peek(folder: Path) -> Snapshot | None:
    """The newest snapshot that is whole, read while another process may write; changes nothing."""
    for file in reversed(_files(folder)) if folder.is_dir() else ():
        try:
            return _read(file.path)
        except (Damaged, FileNotFoundError):  # replaced meanwhile
            continue
    return None


def has_damaged(folder: Path) -> bool:
    """Whether a snapshot was ever set aside here."""
    return (folder / _DAMAGED).exists()


def needed_after(folder: Path) -> int:
    """The position after which the log must be kept: that of the oldest of the kept snapshots.

    0, all of it, until there are as many as are kept.
    """
    files = _files(folder) if folder.is_dir() else []
    return min(file.position for file in files) if len(files) >= KEPT else 0


def _files(folder: Path) -> list[_File]:
    found = []
    for path in folder.iterdir():
        if match := _NAME.fullmatch(path.name):
            found.append(_File(path, int(match[1]), int(match[2])))
    return sorted(found, key=lambda file: file.number)


def _head(position: int, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> bytes:
    described = []
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name}: an array of objects can't be kept")
        described.append(_Array(name, array.dtype.str, array.shape))
    head = msgspec.json.encode(_Head(position, dict(meta), described, _FORM))
    return _HEAD.pack(_MAGIC, len(head)) + head


def _write(path: Path, head: bytes, arrays: Iterable[NDArray[Any]]) -> int:
    crc = size = 0
    with path.open("wb") as file:
        for piece in chain([head], (_bytes_of(array) for array in arrays)):
            crc = google_crc32c.extend(crc, piece)
            size += file.write(piece)
        size += file.write(_CRC.pack(crc))
        file.flush()
        os.fsync(file.fileno())
    return size


def _bytes_of(array: NDArray[Any]) -> Any:  # google_crc32c takes arrays, not memoryviews
    """What the array holds, copied only where it is not in one piece."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _read(path: Path) -> Snapshot:
    """Each array is read straight into memory of its own, without a copy of the file between."""
    with path.open("rb", buffering=0) as file:
        if not _is_whole(file):
            raise Damaged(f"{path}: the checksum does not match")
        file.seek(0)
        length = _HEAD.unpack(file.read(_HEAD.size))[1]
        head = msgspec.json.decode(file.read(length), type=_Head)
        if head.form != _FORM:
            raise OtherForm(
                f"{path.name} is of form {head.form}, this version of tailburn reads form {_FORM}:"
                " start the version that wrote it"
            )
        arrays = {a.name: _read_array(file, a) for a in head.arrays}
    return Snapshot(head.position, arrays, head.meta)


def _is_whole(file: FileIO) -> bool:
    left = os.fstat(file.fileno()).st_size - _CRC.size
    if left < _HEAD.size or file.read(len(_MAGIC)) != _MAGIC:
        return False
    crc, left = google_crc32c.value(_MAGIC), left - len(_MAGIC)
    piece = np.empty(_PIECE_BYTES, np.uint8)
    while left:
        count = file.readinto(piece[: min(left, _PIECE_BYTES)].data)
        if not count:
            return False
        crc = google_crc32c.extend(crc, piece[:count])
        left -= count
    return file.read() == _CRC.pack(crc)


def _read_array(file: FileIO, described: _Array) -> NDArray[Any]:
    array = np.empty(described.shape, described.dtype)
    left = array.reshape(-1).view(np.uint8).data
    while len(left):
        count = file.readinto(left)
        if not count:
            raise OSError(f"{file.name} became shorter while it was read")
        left = left[count:]
    return array
