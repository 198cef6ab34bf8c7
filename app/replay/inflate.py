"""Whole files and bodies decompressed, within a bound."""

import gzip
import io
import zlib
from collections.abc import Callable
from typing import Final

import zstandard

from tailburn.app.replay.recording import RecordingError

MAX_BYTES = 1 << 30


_STEP_BYTES: Final = 1024  # of input: a step of zstd gives at most 32 MiB

_ERRORS = (OSError, EOFError, zlib.error, zstandard.ZstdError)


def _gzip(data: bytes) -> bytes:
    return gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)


def _zstd(data: bytes) -> bytes:
    plain = bytearray()
    at, frame = 0, zstandard.ZstdDecompressor().decompressobj()
    while at < len(data) and len(plain) <= MAX_BYTES:
        if frame.eof:
            frame = zstandard.ZstdDecompressor().decompressobj()
        step = data[at : at + _STEP_BYTES]
        plain += frame.decompress(step)
        at += len(step) - len(frame.unused_data)
    if not frame.eof and len(plain) <= MAX_BYTES:
        raise EOFError("it ends in the middle of a frame")
    return bytes(plain)


_READERS: dict[str, Callable[[bytes], bytes]] = {"gzip": _gzip, "zstd": _zstd}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def compression_of(data: bytes) -> str | None:
    """gzip or zstd, told by the first bytes; None for anything else."""
    return next((name for magic, name in _MAGIC.items() if data.startswith(magic)), None)


def inflate(data: bytes, compression: str | None, place: str) -> bytes:
    """`data` decompressed. Raises RecordingError where it is broken or over MAX_BYTES."""
    if compression is None:
        return data
    if compression not in _READERS:
        raise RecordingError(f"{place}: unknown compression {compression!r}")
    try:
        plain = _READERS[compression](data)
    except _ERRORS as error:
        raise RecordingError(f"{place}: broken {compression}: {error}") from None
    if len(plain) > MAX_BYTES:
        raise RecordingError(f"{place}: over {MAX_BYTES >> 20} MiB after decompression")
    return plain
