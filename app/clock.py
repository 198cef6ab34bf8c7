"""Where receive time comes from: this machine, or the sender (for the lab only)."""

import time
from typing import Protocol

from tailburn.collector.doors.access import Headers
from tailburn.collector.doors.clock import telemetry_clock, wall_clock


class Clock(Protocol):
    """The receive time of a request, and the time when nothing comes."""

    def received_ns(self, headers: Headers) -> int: ...
    def now_ns(self) -> int: ...
    def resume(self, last_ns: int) -> None:
        """Told at a start: the time at which the last run ended."""


class WallClock:
    """This machine's time."""

    def received_ns(self, headers: Headers) -> int:
        return wall_clock(headers)

    def now_ns(self) -> int:
        return time.time_ns()

    def resume(self, last_ns: int) -> None:
        """It went on meanwhile."""


class TelemetryClock:
    """The time that senders tell; between two of them it goes on at the usual pace.

    From a start on it stands where the last run ended, until a sender tells it: no request ends
    because the service was away.
    """

    def __init__(self) -> None:
        self._last: tuple[int, int | None] = time.time_ns(), time.monotonic_ns()

    def received_ns(self, headers: Headers) -> int:
        told_ns = telemetry_clock(headers)
        self._last = told_ns, time.monotonic_ns()
        return told_ns

    def now_ns(self) -> int:
        told_ns, at_ns = self._last
        return told_ns if at_ns is None else told_ns + time.monotonic_ns() - at_ns

    def resume(self, last_ns: int) -> None:
        self._last = last_ns, None
