"""Whole files and bodies decompressed, within a bound."""

import gzip
import io
import zlib
from collections.abc import Callable

from tailburn.app.replay.recording import RecordingError
from tailburn.collector.compression import zstd

MAX_BYTES = 1 << 30

_ERRORS = (OSError, EOFError, zlib.error, zstd.ZstdError)


def _gzip(data: bytes) -> bytes:
    return gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)


def _zstd(data: bytes) -> bytes:
    return zstd.ZstdFile(io.BytesIO(data)).read(MAX_BYTES + 1)


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
