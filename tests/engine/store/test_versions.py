"""Which definitions of budgets are in force, over starts with other files."""

import json
from dataclasses import replace

from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Clock, Place, Slo, Tier, objectives
from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.versions import Begun, Edit, Versions

CHAT = Slo(
    "chat",
    Place("chat.yaml", 1),
    clocks={Clock.TTFT: {Tier.ACCEPTABLE: {"p95": 0.5}}},
    availability_ratio=0.999,
)
STRICTER = replace(CHAT, availability_ratio=0.9999)


def version(slo: Slo, name: str) -> str:
    return next(definition_of(slo, o) for o in objectives(slo) if o.name == name)


def test_the_first_load_is_all_new_and_the_second_changes_nothing(database: State) -> None:
    versions = Versions(database)

    first, second = versions.load([CHAT], 11), versions.load([CHAT], 12)

    assert first == [
        Edit("chat", "availability", None, version(CHAT, "availability")),
        Edit("chat", "ttft_p95", None, version(CHAT, "ttft_p95")),
    ]
    assert second == []
    assert [(row.first_seen_ns, row.retired_ns) for row in versions.all()] == [(11, None)] * 2


def test_an_edit_retires_the_old_definition_of_that_objective_alone(database: State) -> None:
    versions = Versions(database)
    versions.load([CHAT], 11)

    edits = versions.load([STRICTER], 21)

    old, new = version(CHAT, "availability"), version(STRICTER, "availability")
    assert edits == [Edit("chat", "availability", old, new)]
    in_force = {(r.objective, r.definition): r.retired_ns for r in versions.all()}
    assert in_force == {
        ("availability", old): 21,
        ("availability", new): None,
        ("ttft_p95", version(CHAT, "ttft_p95")): None,
    }


def test_a_definition_that_comes_back_is_in_force_again_since_its_first_day(
    database: State,
) -> None:
    versions = Versions(database)
    for at_ns, slo in ((11, CHAT), (21, STRICTER), (31, CHAT)):
        versions.load([slo], at_ns)

    rows = {r.definition: r for r in versions.all() if r.objective == "availability"}

    back, gone = rows[version(CHAT, "availability")], rows[version(STRICTER, "availability")]
    assert (back.first_seen_ns, back.retired_ns) == (11, None)
    assert (gone.first_seen_ns, gone.retired_ns) == (21, 31)


def test_an_slo_that_is_gone_is_told_and_kept(database: State) -> None:
    versions = Versions(database)
    versions.load([CHAT], 11)

    edits = versions.load([], 21)

    assert [(e.objective, e.new) for e in edits] == [("availability", None), ("ttft_p95", None)]
    assert all(row.retired_ns == 21 for row in versions.all())


def test_the_document_says_what_was_promised(database: State) -> None:
    versions = Versions(database)
    versions.load([CHAT], 11)

    documents = {row.objective: json.loads(row.document) for row in versions.all()}

    assert documents["ttft_p95"]["objective"]["threshold_s"] == 0.5
    assert documents["availability"]["slo"]["place"] == {"file": "chat.yaml", "line": 1}


def test_an_slo_that_is_edited_each_day_leaves_a_bounded_past(database: State) -> None:
    day_ns, kept_days, most = 86_400_000_000_000, 40, 0
    versions = Versions(database, kept_days * day_ns)

    for day in range(1, 400):
        edits = versions.load([replace(CHAT, select={"pool": str(day)})], day * day_ns)
        assert len(edits) == 2
        most = max(most, len(versions.all()))

    assert most == 2 * (kept_days + 1) + 2
    assert min(row.retired_ns or 400 * day_ns for row in versions.all()) == 359 * day_ns
    assert {row.first_seen_ns for row in versions.in_force()} == {399 * day_ns}


def test_a_definition_comes_back_with_its_day_even_in_the_moment_it_would_go(
    database: State,
) -> None:
    versions = Versions(database, kept_ns=10)
    versions.load([CHAT], 11)
    versions.load([], 21)

    versions.load([CHAT], 100)
    assert [(row.first_seen_ns, row.retired_ns) for row in versions.all()] == [(11, None)] * 2

    versions.load([], 110)
    versions.load([], 121)
    assert versions.all() == []


def test_what_was_in_force_since_a_time_is_told_without_what_went_before(database: State) -> None:
    versions = Versions(database)
    for at_ns, slos in ((11, [CHAT]), (21, [STRICTER]), (31, [])):
        versions.load(slos, at_ns)

    gone = version(CHAT, "availability")
    assert gone in {row.definition for row in versions.all(since_ns=21)}
    assert gone not in {row.definition for row in versions.all(since_ns=22)}
    assert version(STRICTER, "availability") in {r.definition for r in versions.all(since_ns=31)}
    assert versions.in_force() == versions.all(since_ns=32) == []


def test_a_budget_begins_where_it_takes_the_place_of_another_also_where_it_comes_back(
    database: State,
) -> None:
    versions = Versions(database)
    of = "chat", "availability"
    old, new = version(CHAT, "availability"), version(STRICTER, "availability")

    versions.load([CHAT], 11)
    assert versions.begun(0) == {}, "it is the first"
    versions.load([STRICTER], 21)
    assert versions.begun(20) == {of: Begun(new, 21)}
    versions.load([CHAT], 31)
    assert versions.begun(30) == {of: Begun(old, 31)}
    assert versions.begun(31) == {}
