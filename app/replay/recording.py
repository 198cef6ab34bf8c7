"""One recorded body, and the errors of reading one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tailburn.app.errors import UserError
from tailburn.collector.accept import Encoding, Signal

LATEST_NS: Final = (1 << 62) - 1
"""The last receive time that a recording may have, in the year 2116."""

_LONGEST_NS: Final = 86_400 * 1_000_000_000


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


def latest_of(times_ns: Iterable[int]) -> int:
    """The latest of the times in a body, 0 without any.

    One that lies more than a day behind their median is some sender's mistake and doesn't
    count, so that it makes no other span look old.
    """
    times_ns = sorted(times_ns)
    if not times_ns:
        return 0
    believed_ns = times_ns[(len(times_ns) - 1) // 2] + _LONGEST_NS
    return min(max(t for t in times_ns if t <= believed_ns), LATEST_NS)
