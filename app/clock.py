"""Where receive time comes from: this machine, or the sender (for the lab only)."""

import time
from typing import Protocol

from tailburn.collector.doors.access import Headers
from tailburn.collector.doors.clock import telemetry_clock, wall_clock


class Clock(Protocol):
    """The receive time of a request, and the time when nothing comes."""

    def received_ns(self, headers: Headers) -> int: ...
    def now_ns(self) -> int: ...


class WallClock:
    """This machine's time."""

    def received_ns(self, headers: Headers) -> int:
        return wall_clock(headers)

    def now_ns(self) -> int:
        return time.time_ns()


class TelemetryClock:
    """The time that senders tell; between two of them it goes on at the usual pace."""

    def __init__(self) -> None:
        self._last = time.time_ns(), time.monotonic_ns()

    def received_ns(self, headers: Headers) -> int:
        told_ns = telemetry_clock(headers)
        self._last = told_ns, time.monotonic_ns()
        return told_ns

    def now_ns(self) -> int:
        told_ns, at_ns = self._last
        return told_ns + time.monotonic_ns() - at_ns
