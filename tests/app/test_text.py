"""Text made harmless for terminals, and figures as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.app.terminal.text import duration, harmless, many, share


@given(st.text())
def test_nothing_a_terminal_acts_on_is_left(text: str) -> None:
    assert harmless(text).isprintable()


@given(st.text(st.characters(categories=("L", "N", "P", "S"))))
def test_what_can_be_printed_stays_as_it_is(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "no data"),
        (0.0, "0 ms"),
        (0.000_812, "812 µs"),
        (0.000_999_6, "1.00 ms"),
        (0.0284, "28.4 ms"),
        (0.999_6, "1.00 s"),
        (3.614, "3.61 s"),
        (-0.25, "-250 ms"),
        (9.996, "10.0 s"),
        (4321.0, "4,321 s"),
    ],
)
def test_a_duration_has_three_digits_and_a_unit(seconds: float | None, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("part", "shown"), [(0.1234, "12.3 %"), (-0.0004, "0.0 %"), (1.0, "100.0 %")]
)
def test_a_share_is_in_per_cent_and_never_minus_nothing(part: float, shown: str) -> None:
    assert share(part) == shown


def test_one_of_a_thing_is_no_plural() -> None:
    assert [many(count, "SLO") for count in (0, 1, 1_200)] == ["0 SLOs", "1 SLO", "1,200 SLOs"]
