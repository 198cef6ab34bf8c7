"""Versions of services: rolling deploys, rollbacks, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.sightings.sightings import Sighting
from tailburn.engine.sightings.spans import seen_in_spans
from tailburn.engine.sightings.watched import after_minute
from tests.engine.sightings.seen import VLLM, Watch, at, seen, spans, watch

EIGHT = tuple(f"engine-{i}" for i in range(8))


def fleet(versions: dict[str, str], minute: int) -> list[Sighting]:
    return [seen(minute + i / 100, name, v) for i, (name, v) in enumerate(versions.items())]


def rolled(course: list[dict[str, str]]) -> Watch:
    return watch([fleet(versions, minute) for minute, versions in enumerate(course)])


def test_a_rolling_deploy_over_eight_replicas_is_one_change_with_eight_values() -> None:
    steps = [{n: "0.33.0" if i < done else "0.32.0" for i, n in enumerate(EIGHT)}
             for done in range(9)]  # fmt: skip
    told = rolled([steps[0]] * 3 + [step for step in steps[1:] for _ in range(3)])
    assert told.told() == [("deploy", "0.32.0", "0.33.0", EIGHT)]
    (change,) = told.changes.values()
    assert (change.at_ns, change.until_ns) == (at(3), at(24.07))
    assert change.where["service"] == ("vllm",)


def test_a_rollback_is_a_second_change() -> None:
    old, new = dict.fromkeys(EIGHT, "0.32.0"), dict.fromkeys(EIGHT, "0.33.0")
    told = rolled([old] * 3 + [new] * 5 + [old] * 5)
    assert [t[:3] for t in told.told()] == [
        ("deploy", "0.32.0", "0.33.0"), ("deploy", "0.33.0", "0.32.0"),
    ]  # fmt: skip
    assert {t[3] for t in told.told()} == {EIGHT}


def test_pods_of_a_rollout_have_new_names_and_are_one_change_too() -> None:
    old = dict.fromkeys(["a-0", "a-1", "a-2"], "1")
    rolling = old | {"b-0": "2"}
    new = dict.fromkeys(["b-0", "b-1", "b-2"], "2")
    back = dict.fromkeys(["c-0", "c-1"], "1")
    told = rolled([old] * 3 + [rolling] * 3 + [new] * 5 + [back] * 3)
    assert told.told() == [
        ("deploy", "1", "2", ("b-0", "b-1", "b-2")),
        ("deploy", "2", "1", ("c-0", "c-1")),
    ]


def test_a_new_replica_of_a_version_in_use_is_no_deploy() -> None:
    canary = {"a-0": "1", "a-1": "1", "b-0": "2"}
    told = rolled([canary] * 40 + [canary | {"a-2": "1", "b-1": "2"}] * 3)
    assert told.told() == []


def test_replicas_behind_one_name_are_not_told_apart_and_tell_nothing_by_turns() -> None:
    both = [[seen(m, "", "1"), seen(m + 0.5, "", "2")] for m in range(5)]
    turns = [[seen(m, "", "12"[m % 2])] for m in range(5, 40)]
    assert watch(both + turns).told() == []
    begin = [[seen(0, "", "1")]]
    assert watch([*begin, *both[1:], *([seen(m, "", "2")] for m in range(5, 9))]).told() == [
        ("deploy", "1", "2", ())
    ]


def test_what_comes_and_goes_all_the_time_is_told_a_few_times_and_no_more() -> None:
    steps = [{"a": "12"[(m // 3) % 2]} for m in range(58)]
    assert len(rolled(steps).told()) == 6


def test_deploys_of_one_version_hours_apart_are_two() -> None:
    first = [{"a": "1", "b": "1"}] * 3 + [{"a": "2", "b": "1"}] * 60
    told = rolled([*first, *[{"a": "2", "b": "2"}] * 3])
    assert [t[3] for t in told.told()] == [("a",), ("b",)]


def test_the_resource_of_a_span_says_version_service_and_replica() -> None:
    resource = {"service.name": "vllm", "service.version": "0.33.0", "k8s.pod.name": "vllm-7"}
    gateway = {"service.version": "2", "host.name": "h"}
    found = seen_in_spans(
        spans(
            {"minute": 0, "hop": "engine", "resource": resource},
            {"minute": 0.5, "hop": "engine", "resource": resource},
            {"minute": 1, "hop": "engine", "resource": resource},
            {"minute": 0, "hop": "gateway", "resource": gateway},
            {"minute": 0, "resource": {"service.name": "untold"}},
            {"minute": 0, "resource": {"service.version": "of nobody"}},
        )
    )
    told = [(s.at_ns, s.until_ns, s.thing.what, s.member, s.value, s.also) for s in sorted(found)]
    assert told == [
        (at(0), at(0), "gateway", "h", "2", (("hop", "gateway"),)),
        (at(0), at(0.5), "vllm", "vllm-7", "0.33.0", (("hop", "engine"),)),
        (at(1), at(1), "vllm", "vllm-7", "0.33.0", (("hop", "engine"),)),
    ]


REPLICAS = st.sampled_from(["", "a", "b", "c"])
VERSIONS = st.sampled_from(["1", "2", "3"])
COURSES = st.lists(
    st.lists(st.tuples(st.floats(0, 0.99), REPLICAS, VERSIONS), max_size=6), max_size=12
)


def course_of(drawn: list[list[tuple[float, str, str]]]) -> list[list[Sighting]]:
    return [[seen(m + share, r, v) for share, r, v in rows] for m, rows in enumerate(drawn)]


@given(COURSES, st.randoms(use_true_random=False))
def test_the_order_within_a_minute_does_not_matter(drawn, random) -> None:  # type: ignore[no-untyped-def]
    course = course_of(drawn)
    told = watch(course)
    for rows in course:
        random.shuffle(rows)
    again = watch(course)
    assert again.changes == told.changes
    assert again.watched == told.watched


@given(COURSES)
def test_the_same_again_changes_nothing(drawn: list[list[tuple[float, str, str]]]) -> None:
    course = course_of(drawn)
    told = watch(course)
    before, changes = told.watched, dict(told.changes)
    for minute, rows in enumerate(course):
        told.minute(minute, rows)
    assert told.changes == changes
    assert told.watched == before


@given(st.dictionaries(REPLICAS, VERSIONS, min_size=1), st.lists(st.sets(REPLICAS), max_size=40))
def test_where_nothing_changed_there_is_no_change(
    versions: dict[str, str], minutes: list[set[str]]
) -> None:
    """Whoever is seen when: each replica has its version from the first minute on."""
    first = fleet(versions, 0)
    later = [[seen(m, r, versions[r]) for r in sorted(rs & versions.keys())]
             for m, rs in enumerate(minutes, 1)]  # fmt: skip
    assert watch([first, *later]).told() == []


@given(COURSES)
def test_the_first_sight_of_a_thing_is_no_change(
    drawn: list[list[tuple[float, str, str]]],
) -> None:
    rows = [row for rows in course_of(drawn)[:1] for row in rows]
    _, moves = after_minute(Watch().watched, rows, at(0))
    assert moves == []


@pytest.mark.parametrize("late_minutes", [1, 3])
def test_rows_that_come_late_do_not_take_a_version_back(late_minutes: int) -> None:
    old, new = {"a": "1"}, {"a": "2"}
    course = [fleet(v, m) for m, v in enumerate([old, old, new, new, new])]
    told = watch(course)
    told.minute(5, [seen(5 - late_minutes, "a", "1"), seen(4.5, "a", "2")])
    told.minute(6, [seen(5 - late_minutes, "a", "1")])
    assert told.told() == [("deploy", "1", "2", ("a",))]
    known = told.watched.things[VLLM].members["a"]
    assert (known.value, known.last_ns) == ("2", at(4) + MINUTE_NS // 2)
