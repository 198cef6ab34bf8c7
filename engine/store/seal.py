"""A checksum of the Parquet footer, where every reader but ours skips over it.

Pages carry checksums of their own; the footer, which says where the pages are and what is in
them, does not, and a damaged one can take a reader's whole process down. So a segment ends in

    data pages | SEAL, CRC-32C of the footer | footer | length of the footer | PAR1

A footer's offsets count from the file's start, and the footer itself is found from its end:
what lies between it and the last page is read by nobody.
"""

import os
import struct
from pathlib import Path
from typing import BinaryIO, Final

import google_crc32c

from tailburn.engine.store.api import UnreadableFile

_SEAL: Final = struct.Struct("<4sI")
_TAIL: Final = struct.Struct("<I4s")
_SEAL_MAGIC: Final = b"TBF1"
_PARQUET_MAGIC: Final = b"PAR1"


def seal(path: Path) -> None:
    """Put the checksum into a Parquet file that was just written."""
    with path.open("r+b") as file:
        footer, tail = _footer(file)
        file.seek(-len(footer) - len(tail), os.SEEK_END)
        file.truncate()
        file.write(_SEAL.pack(_SEAL_MAGIC, google_crc32c.value(footer)) + footer + tail)


def check_seal(path: Path) -> None:
    """Raise `UnreadableFile` unless the footer is as it was written."""
    try:
        with path.open("rb") as file:
            footer, tail = _footer(file)
            file.seek(-_SEAL.size - len(footer) - len(tail), os.SEEK_END)
            magic, checksum = _SEAL.unpack(file.read(_SEAL.size))
    except (OSError, ValueError, struct.error) as error:
        raise UnreadableFile(f"no whole Parquet file: {error}", path) from error
    if magic != _SEAL_MAGIC or checksum != google_crc32c.value(footer):
        raise UnreadableFile("the footer is not what was written", path)


def _footer(file: BinaryIO) -> tuple[bytes, bytes]:
    """The footer, and the length and magic after it; raises `ValueError` where there is none."""
    file.seek(-_TAIL.size, os.SEEK_END)
    tail = file.read(_TAIL.size)
    length, magic = _TAIL.unpack(tail)
    if magic != _PARQUET_MAGIC:
        raise ValueError("it does not end in PAR1")
    if length + _TAIL.size > file.tell():
        raise ValueError("the footer is longer than the file")
    file.seek(-length - _TAIL.size, os.SEEK_END)
    return file.read(length), tail
