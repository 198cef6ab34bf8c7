"""Whose time it is, and what time it is while nobody tells it."""

import time

from tailburn.app.clock import TelemetryClock, WallClock
from tailburn.collector.doors.clock import RECEIVED_HEADER

TOLD_NS = 1_780_272_000_000_000_000


def test_told_time_goes_on_at_the_usual_pace() -> None:
    clock = TelemetryClock()
    assert clock.received_ns([(RECEIVED_HEADER, str(TOLD_NS).encode())]) == TOLD_NS
    time.sleep(0.02)
    assert 20_000_000 <= clock.now_ns() - TOLD_NS < 20_000_000_000


def test_told_time_stands_where_the_last_run_ended_until_it_is_told_again() -> None:
    clock = TelemetryClock()
    clock.resume(TOLD_NS)
    time.sleep(0.02)
    assert clock.now_ns() == TOLD_NS

    clock.received_ns([(RECEIVED_HEADER, str(TOLD_NS + 5).encode())])
    time.sleep(0.02)
    assert clock.now_ns() > TOLD_NS + 5


def test_the_wall_clock_went_on_meanwhile() -> None:
    clock = WallClock()
    clock.resume(TOLD_NS)
    assert abs(clock.now_ns() - time.time_ns()) < 1_000_000_000
