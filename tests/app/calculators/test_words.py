"""Times and shares in the words of the calculators."""

import math

import pytest

from tailburn.app.calculators.words import percent, span

DAY_S = 86_400.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "never"),
        (0.0, "0s"),
        (8.25, "8.2s"),
        (51.84, "52s"),
        (99.4, "99s"),
        (99.6, "1.7m"),
        (518.4, "8.6m"),
        (7199.0, "120m"),
        (7200.0, "2h"),
        (1.5 * DAY_S, "36h"),
        (2 * DAY_S, "2d"),
        (30 * DAY_S, "30d"),
    ],
)
def test_a_span_is_told_in_the_unit_that_suits_it(seconds: float | None, words: str) -> None:
    assert span(seconds) == words


def test_a_span_without_end_is_no_span() -> None:
    with pytest.raises(ValueError, match="want a finite time, got inf"):
        span(math.inf)


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(0.0, "0 %"), (0.00144, "0.144 %"), (0.144, "14.4 %"), (1.0, "100 %"), (-17.35, "-1,735 %")],
)
def test_a_share_is_told_with_three_digits(ratio: float, words: str) -> None:
    assert percent(ratio) == words
