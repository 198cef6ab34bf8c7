"""When a body was received: the door is the outermost loop and owns the clock."""

import time
from collections.abc import Callable

from tailburn.collector.doors.access import Headers

RECEIVED_HEADER = b"x-tailburn-received-unix-ns"
MAX_NS = (1 << 63) - 1

ReceiveClock = Callable[[Headers], int]
"""From a request's headers to its receive time in ns since the epoch."""


def wall_clock(headers: Headers) -> int:
    """This machine's time, whatever the sender says."""
    return time.time_ns()


def telemetry_clock(headers: Headers) -> int:
    """The time in the sender's header, this machine's where there is none (or no number)."""
    for name, value in headers:
        if name == RECEIVED_HEADER and value.isdigit() and len(value) <= len(str(MAX_NS)):
            return min(int(value), MAX_NS)
    return time.time_ns()
