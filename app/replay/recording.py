"""One recorded body, and the errors of reading one."""

from dataclasses import dataclass

from tailburn.app.errors import UserError
from tailburn.collector.accept import Encoding, Signal


class RecordingError(UserError):
    """A recording that can't be read, with `file` or `file:line` in front."""


@dataclass(frozen=True)
class Recording:
    """A body as it was received."""

    place: str  # file or file:line, for messages
    received_ns: int
    signal: Signal
    encoding: Encoding
    body: bytes  # decompressed
    compression: str | None = None  # gzip or zstd: how it travelled
