"""What all answers together may hold, and which of them gives way."""

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.room import Place, Room

MOST_BYTES = 1_000


def is_taken(place: Place, piece: bytes) -> bool:
    try:
        place.add(piece)
    except ScrapeError:
        return False
    return True


def test_the_largest_gives_way_to_one_that_grows() -> None:
    room = Room(MOST_BYTES)
    with room.place() as small, room.place() as large:
        large.add(b"l" * 900)
        for _ in range(30):
            small.add(b"s" * 10)
        assert small.whole() == b"s" * 300
        with pytest.raises(ScrapeError) as told:
            large.add(b"l")
    assert told.value.reason is Reason.TOO_LARGE
    assert str(told.value) == (
        "answers more than 0.0 MB, the most of the 2 that are read at once: together they may "
        "hold 0 MB"
    )
    assert room.held_bytes == 0


def test_the_largest_gives_way_itself_where_it_grows() -> None:
    room = Room(MOST_BYTES)
    with room.place() as small, room.place() as large:
        small.add(b"s" * 300)
        assert is_taken(large, b"l" * 700)
        assert not is_taken(large, b"l")
        assert room.held_bytes == 300
        assert small.whole() == b"s" * 300


def test_one_that_gave_way_is_never_whole() -> None:
    room = Room(MOST_BYTES)
    with room.place() as small, room.place() as large:
        large.add(b"l" * 900)
        small.add(b"s" * 200)
        with pytest.raises(ScrapeError, match="the most of the 2"):
            large.whole()


def test_one_that_is_worked_through_gives_way_no_more() -> None:
    room = Room(MOST_BYTES)
    with room.place() as small, room.place() as large:
        large.add(b"l" * 900)
        assert large.whole() == b"l" * 900
        assert not is_taken(small, b"s" * 200)
        assert room.held_bytes == 900
    assert room.held_bytes == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-1, 400)), max_size=200))
def test_no_course_of_answers_holds_more_and_the_smallest_of_them_goes_on(
    course: list[tuple[int, int]],
) -> None:
    """A number of bytes is a piece for one of ten answers; -1 ends it, another begins there."""
    room = Room(MOST_BYTES)
    stays = [ExitStack() for _ in range(10)]
    places = [stay.enter_context(room.place()) for stay in stays]
    for number, more_bytes in course:
        place = places[number]
        if more_bytes < 0:
            stays[number].close()
            places[number] = stays[number].enter_context(room.place())
            continue
        held = [one.held_bytes for one in places if one is not place and one.may_give_way]
        is_smaller = max(held, default=0) > place.held_bytes + more_bytes
        had_given_way = not place.may_give_way
        taken = is_taken(place, b"x" * more_bytes)
        assert taken or had_given_way or not is_smaller
        assert room.held_bytes == sum(one.held_bytes for one in places) <= MOST_BYTES
