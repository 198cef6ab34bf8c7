"""Scrapes of a course, as promtool expands them."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.slo.course import Stretch, gap
from tailburn.rules.testing.counters import counted, levels
from tailburn.rules.testing.histograms import edges, quantile

STRETCHES = st.lists(
    st.one_of(
        st.builds(
            Stretch,
            st.integers(1, 20).map(lambda n: n * 60.0),
            st.floats(0, 1),
            st.sampled_from([0.0, 10.0, 100_000.0]),
        ),
        st.integers(1, 20).map(lambda n: gap(n * 60.0)),
    ),
    min_size=1,
    max_size=6,
)


def expanded(values: str) -> list[float | None]:
    """promtool's notation: `a`, `a+bxn` for n more, `_xn` for n missing."""
    found: list[float | None] = []
    for part in values.split():
        if missing := re.fullmatch(r"_(?:x(\d+))?", part):
            found += [None] * int(missing[1] or 1)
        elif series := re.fullmatch(r"([\d.]+)\+([\d.]+)x(\d+)", part):
            start, step, more = float(series[1]), float(series[2]), int(series[3])
            found += [start + step * i for i in range(more + 1)]
        else:
            found.append(float(part))
    return found


@given(STRETCHES)
def test_a_counter_has_a_value_for_every_scrape_and_never_goes_back(
    stretches: list[Stretch],
) -> None:
    values = expanded(counted(stretches, [s.bad_ratio for s in stretches], 60, ()))
    assert len(values) == 1 + sum(round(s.for_s / 60) for s in stretches)
    known = [value for value in values if value is not None]
    assert all(before <= after for before, after in pairwise(known))
    expected = sum(
        round(s.requests_per_s * 60 * s.bad_ratio) * round(s.for_s / 60) for s in stretches
    )
    assert known[-1] == expected
    assert all(value == int(value) for value in known)


@given(STRETCHES)
def test_a_gauge_has_a_value_for_every_scrape(stretches: list[Stretch]) -> None:
    values = expanded(levels(stretches, [1.0] * len(stretches), 60))
    assert len(values) == 1 + sum(round(s.for_s / 60) for s in stretches)
    assert (values[-1] is None) != stretches[-1].is_measured


def test_a_reset_starts_at_zero_and_loses_nothing() -> None:
    one = Stretch(120.0, 1.0, 1.0)
    assert expanded(counted([one, one], [1.0, 1.0], 60, (1,))) == [0, 60, 120, 60, 120]


def test_stretches_are_whole_scrapes() -> None:
    with pytest.raises(ValueError, match="90.0 s is no multiple of 60 s"):
        counted([Stretch(90.0, 0.0, 1.0)], [1.0], 60, ())


@given(st.floats(0.01, 0.999))
def test_a_quantile_lies_in_the_bucket_of_its_rank(q: float) -> None:
    durations = {0.5: 0.25, 2.0: 0.5, 8.0: 0.25}
    value = quantile(durations, q)
    wanted = 0.5 if q <= 0.25 else 2.0 if q <= 0.75 else 8.0
    low, high = edges(wanted)
    assert low <= value <= high
