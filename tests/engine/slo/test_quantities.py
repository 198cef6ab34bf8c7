"""Times and shares, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.slo.quantities import (
    read_number,
    read_percent,
    read_time_s,
    write_percent,
    write_time,
)

MICROSECONDS_A_DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("400ms", 0.4),
        ("1.5s", 1.5),
        ("250us", 0.000_25),
        ("250µs", 0.000_25),
        ("1h30m", 5400),
        ("30d", 2_592_000),
        ("4w", 2_419_200),
        ("0s", 0),
    ],
)
def test_a_time_is_numbers_with_their_units(text: str, seconds: float) -> None:
    assert read_time_s(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5 s", "1e3s", "5S", "٣s", "5s!", "1M"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert read_time_s(text) is None


@given(st.integers(1, 400 * MICROSECONDS_A_DAY))
def test_a_written_time_is_read_as_the_same(microseconds: int) -> None:
    seconds = microseconds / 1e6
    assert read_time_s(write_time(seconds)) == pytest.approx(seconds, rel=0, abs=5e-10)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "400ms"),
        (0.06, "60ms"),
        (1, "1s"),
        (1.7, "1.7s"),
        (300, "5m"),
        (5400, "90m"),
        (2_592_000, "30d"),
        (129_600, "36h"),
    ],
)
def test_a_time_is_written_as_people_do(seconds: float, text: str) -> None:
    assert write_time(seconds) == text


@pytest.mark.parametrize(
    ("text", "ratio"),
    [("99.9%", 0.999), ("99.9", 0.999), ("99.9 %", 0.999), ("95", 0.95), ("99.999%", 0.99999)],
)
def test_a_per_cent_has_no_dust(text: str, ratio: float) -> None:
    assert read_percent(text) == ratio


@pytest.mark.parametrize("text", ["", "%", "-1", "1e2", "nan", "99,9%", "٩٩%", "0x10"])
def test_what_is_no_per_cent_is_none(text: str) -> None:
    assert read_percent(text) is None
    assert read_number(text) is None


@given(st.integers(500_000, 999_999))
def test_a_written_per_cent_is_read_as_the_same(millionths: int) -> None:
    ratio = millionths / 1e6
    assert read_percent(write_percent(ratio)) == ratio
