"""The receive time: the wall clock, or the lab's header where that is asked for."""

import time

import pytest

from tailburn.collector.doors.clock import RECEIVED_HEADER, telemetry_clock, wall_clock


def test_the_wall_clock_is_deaf_to_the_sender() -> None:
    before_ns = time.time_ns()

    assert before_ns <= wall_clock(((RECEIVED_HEADER, b"17"),)) <= time.time_ns()


def test_the_telemetry_clock_is_the_senders() -> None:
    headers = ((b"host", b"x"), (RECEIVED_HEADER, b"1796000000000000019"))

    assert telemetry_clock(headers) == 1_796_000_000_000_000_019


@pytest.mark.parametrize(
    "value", [None, b"", b"-5", b"1.5", b"soon", b"9" * 20, b"9" * 10_000, "\u0661".encode()]
)
def test_the_telemetry_clock_falls_back_on_this_machines(value: bytes | None) -> None:
    before_ns = time.time_ns()
    headers = () if value is None else ((RECEIVED_HEADER, value),)

    assert before_ns <= telemetry_clock(headers) <= time.time_ns()


def test_a_time_beyond_64_bits_is_the_last_that_fits() -> None:
    assert telemetry_clock(((RECEIVED_HEADER, b"9" * 19),)) == (1 << 63) - 1
