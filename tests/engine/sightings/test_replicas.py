"""Scaling, counted from the engines that are read."""

from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.sightings.watched import seen_in, set_back
from tests.engine.sightings.seen import Watch, at, signals


def minutes(told: Watch, begin: int, *crowds: str) -> Watch:
    """Each crowd is read in a minute of its own: a letter for each replica."""
    for minute, crowd in enumerate(crowds, begin):
        rows = [(minute + i / 99, "requests_running", 3.0, {"replica": r, "model": "llama"})
                for i, r in enumerate(crowd)]  # fmt: skip
        told.minute(minute, seen_in("signals", signals(*rows)) if rows else [])
    return told


def test_more_replicas_are_a_change_that_names_who_came() -> None:
    told = minutes(Watch(), 0, *["ab"] * 8, *["abcd"] * 3)
    (change,) = told.changes.values()
    assert (change.kind, change.what) == ("scale", "vllm, llama")
    assert (change.old, change.new, change.at_ns) == ("2", "4", at(8 + 2 / 99))
    assert change.where == {"model": ("llama",), "replica": ("c", "d"), "service": ("vllm",)}


def test_fewer_replicas_are_told_when_they_are_gone_for_five_minutes() -> None:
    told = minutes(Watch(), 0, *["abc"] * 8, *["ab"] * 5)
    assert told.told() == []
    told = minutes(told, 13, "ab", "ab")
    assert told.told() == [("scale", "3", "2", ("c",))]
    assert next(iter(told.changes.values())).at_ns == at(7 + 2 / 99)


def test_a_target_that_flaps_is_no_change() -> None:
    assert minutes(Watch(), 0, *["abc", "ab", "ab", "ab"] * 15).told() == []


def test_a_replica_in_the_place_of_another_is_no_change() -> None:
    assert minutes(Watch(), 0, *["abc"] * 8, *["abd"] * 20, *["ade"] * 20).told() == []


def test_a_time_in_which_nothing_was_read_is_no_scaling() -> None:
    gap = [""] * 20
    assert minutes(Watch(), 0, *["abc"] * 8, *gap, *["a", "ab"], *["abc"] * 20).told() == []


def test_after_a_clock_that_was_set_back_what_was_told_counts() -> None:
    told = minutes(Watch(), 0, *["abc"] * 8)
    told.watched = set_back(told.watched, at(8))
    minutes(told, 60, "a", "abc", *["abcd"] * 3)
    assert told.told() == []
    minutes(told, 65, "abcd", "abcd")
    assert told.told() == [("scale", "3", "4", ("d",))]


@given(st.lists(st.sampled_from(["abc", "ab", "a", "bc"]), max_size=3), st.integers(1, 9))
def test_a_crowd_of_whom_each_is_read_now_and_then_does_not_scale(
    course: list[str], times: int
) -> None:
    assert minutes(Watch(), 0, *["abc", *course] * times).told() == []
