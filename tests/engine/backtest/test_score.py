"""Calls against incidents: each is of one or false, and each incident is found or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.backtest.incidents import Marked
from tailburn.engine.backtest.score import APART_NS, WEEK_NS, calls, score

MINUTE = 60_000_000_000
FAULT = Marked(100 * MINUTE, 160 * MINUTE, "fault")
WHOLE = (0, WEEK_NS)


def spans(*minutes: tuple[int, int]) -> list[tuple[int, int]]:
    return [(begin * MINUTE, end * MINUTE) for begin, end in minutes]


def test_pages_are_true_false_and_missed() -> None:
    missed = Marked(5_000 * MINUTE, 5_030 * MINUTE, "missed")
    found = score(spans((106, 170), (108, 165), (3_000, 3_010)), spans((5_040, 5_100)),
                  [FAULT, missed], WHOLE)  # fmt: skip
    assert (found.pages, found.tickets) == (2, 1)
    assert [i.page_after_ns for i in found.incidents] == [6 * MINUTE, None]
    assert [i.ticket_after_ns for i in found.incidents] == [None, 40 * MINUTE]
    assert found.false_pages == ((3_000 * MINUTE, 3_010 * MINUTE),)
    assert found.precision is not None and found.precision.value == 0.5
    assert found.recall is not None and found.recall.value == 0.5
    assert found.recall_any is not None and found.recall_any.value == 1
    assert found.healthy_ns == WEEK_NS - (60 + 15 + 30 + 15) * MINUTE
    assert found.false_a_week is not None
    assert found.false_a_week.value == pytest.approx(WEEK_NS / found.healthy_ns)


@pytest.mark.parametrize(
    ("page", "belongs"),
    [((90, 99), False), ((90, 101), True), ((174, 180), True), ((176, 180), False)],
)
def test_a_page_belongs_where_it_overlaps_or_comes_within_the_grace(
    page: tuple[int, int], belongs: bool
) -> None:
    found = score(spans(page), [], [FAULT], WHOLE)
    assert (found.incidents[0].page_after_ns is not None) == belongs
    assert (len(found.false_pages) == 0) == belongs


def test_a_page_that_was_there_before_is_at_once() -> None:
    assert score(spans((90, 120)), [], [FAULT], WHOLE).incidents[0].page_after_ns == 0


def test_without_pages_and_incidents_there_are_no_shares() -> None:
    found = score([], [], [], WHOLE)
    assert (found.precision, found.recall) == (None, None)
    assert found.false_a_week is not None and found.false_a_week.high == pytest.approx(3.689, 1e-3)


def test_holes_are_no_healthy_time() -> None:
    assert score([], [], [], WHOLE, spans((0, 100))).healthy_ns == WEEK_NS - 100 * MINUTE


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 100))))
def test_calls_lie_apart_and_cover_all_spans(given_spans: list[tuple[int, int]]) -> None:
    made = [(b * MINUTE, (b + length) * MINUTE) for b, length in given_spans]
    found = calls(made)
    for begin, end in made:
        assert any(b <= begin and end <= e for b, e in found)
    for (_, end), (begin, _) in zip(found, found[1:], strict=False):
        assert begin - end > APART_NS
