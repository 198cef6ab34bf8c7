"""Decompression that never holds more than it may, whatever the stream claims.

Output is made in steps and counted before the next one, so a bomb costs one step over the
limit. zstd's window is bounded when the frame header is read, before it is allocated, and
counted as it fills.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from isal import igzip_lib

from tailburn.collector.compression import zstd
from tailburn.collector.doors.limits import Body
from tailburn.collector.errors import BadBody

STEP_BYTES: Final = 1 << 20
MAX_MEMBERS: Final = 1_000  # a start costs microseconds for 20 bytes; no sender makes many
MAX_ZSTD_WINDOW_LOG: Final = 23  # 8 MiB: what RFC 8878 asks every decoder to support


class _Decompressor(Protocol):
    """What isal's gzip and Python's zstd decompressors have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def _gzip() -> _Decompressor:
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)


def _zstd() -> _Decompressor:
    window = int(zstd.DecompressionParameter.window_log_max)
    return zstd.ZstdDecompressor(options={window: MAX_ZSTD_WINDOW_LOG})


STARTERS: Final[dict[bytes, Callable[[], _Decompressor]]] = {b"gzip": _gzip, b"zstd": _zstd}
"""Content-Encoding to a fresh decompressor."""

WINDOW_BYTES: Final = {b"gzip": 32 << 10, b"zstd": 1 << MAX_ZSTD_WINDOW_LOG}
"""What a decompressor keeps of its output, at most: memory of its own, beside the body."""

# isal's stub takes its exception class for an instance.
_ERRORS: Final[tuple[type[Exception], ...]] = (
    igzip_lib.IsalError,  # type: ignore[assignment]
    zstd.ZstdError,
)


class Inflater:
    """One compressed stream of any number of members or frames, fed as it arrives."""

    __slots__ = (
        "_charged_window_bytes",
        "_current",
        "_members",
        "_name",
        "_start",
        "_window_bytes",
    )

    def __init__(self, encoding: bytes) -> None:
        """`encoding` is a key of `STARTERS`."""
        self._name = encoding.decode()
        self._start = STARTERS[encoding]
        self._current = self._start()
        self._members = 1
        self._window_bytes = WINDOW_BYTES[encoding]
        self._charged_window_bytes = 0

    async def feed(self, data: bytes, body: Body) -> None:
        """Append to `body` what `data` unpacks to, letting others run between the steps.

        Raises BadBody for a broken stream, and what `Body.append` raises.
        """
        if not data:
            return
        while True:
            if self._current.eof:
                self._begin_member()
            # The piece must be gone before others run: all their pieces would add up.
            n_bytes = self._step(data, body)
            if self._current.eof:
                data = self._current.unused_data
                if not data:
                    return
            elif self._current.needs_input:
                return
            else:
                data = b""
            if n_bytes >= STEP_BYTES:
                await asyncio.sleep(0)

    def finish(self) -> None:
        """Raises BadBody where the stream ends in mid-member: its checksum never came."""
        if not self._current.eof:
            raise BadBody(f"the {self._name} stream is cut short")

    def _step(self, data: bytes, body: Body) -> int:
        """The number of bytes that were unpacked and appended."""
        try:
            piece = self._current.decompress(data, STEP_BYTES)
        except _ERRORS as error:
            raise BadBody(f"the {self._name} stream is broken: {error}") from error
        body.append(piece)
        window_bytes = min(len(piece), self._window_bytes - self._charged_window_bytes)
        if window_bytes > 0:
            body.charge(window_bytes)
            self._charged_window_bytes += window_bytes
        return len(piece)

    def _begin_member(self) -> None:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise BadBody(f"the {self._name} stream has over {MAX_MEMBERS} members")
        self._current = self._start()
