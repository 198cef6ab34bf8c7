"""Alerts over minutes, kills, gaps, edits and clocks that are set; no storm on recovery."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from tailburn.engine.evaluation import Status
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.models import Base
from tests.app.lives import BEGIN_NS, Lives
from tests.app.slos import CHAT
from tests.app.verdicts import MINUTE_NS

ONE = replace(CHAT, clocks={}, availability_ratio=0.99)
BURN = "TailburnBudgetBurn"
DAY_NS = 24 * 60 * MINUTE_NS
TABLES = Base.metadata.tables
WRITTEN = ("alert_states", "alert_flips", "covered", "evaluated", "slo_versions")


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    """Seven hours that were well."""
    return Lives(tmp_path / "store", [ONE], healthy=420)


def test_health_says_nothing(lives: Lives) -> None:
    lives.minutes(5, 0.0)

    assert (lives.firing(), lives.flips()) == ({}, [])
    assert lives.evaluating.health.minute_ns == lives.now_ns
    assert lives.evaluating.health.failures == 0


def test_an_outage_pages_within_ten_minutes_and_ends_soon_after_it(lives: Lives) -> None:
    lives.minutes(10, 1.0)
    assert lives.pages() == {BURN}

    lives.minutes(6, 0.0)
    pages = [flip for flip in lives.flips() if flip.key.severity == "page"]
    assert {flip.new for flip in pages} >= {Status.FIRING, Status.INACTIVE}
    assert all(flip.reason and flip.value is not None for flip in pages)


def test_a_kill_changes_no_state_and_tells_nothing_twice(lives: Lives) -> None:
    lives.minutes(12, 1.0)
    states, flips = lives.evaluating.states(), lives.flips()
    assert lives.firing()

    lives.restart()

    assert lives.evaluating.states() == states
    lives.minutes(3, 1.0)
    assert lives.flips() == flips
    assert {key: state.since_ns for key, state in lives.evaluating.states().items()} == {
        key: state.since_ns for key, state in states.items()
    }


def test_killed_again_and_again_or_never_is_the_same(tmp_path: Path) -> None:
    course = [0.4] * 25 + [0.0] * 8 + [None] * 2 + [1.0] * 4 + [0.0] * 9
    whole, killed = (Lives(tmp_path / name, [ONE]) for name in ("whole", "killed"))

    for i, bad in enumerate(course):
        whole.minute(bad)
        killed.minute(bad)
        if i % 7 == 3:
            killed.restart()

    assert whole.flips()
    assert killed.flips() == whole.flips()
    assert killed.evaluating.states() == whole.evaluating.states()


def test_a_minute_that_ended_while_nothing_ran_is_evaluated_at_the_start(lives: Lives) -> None:
    lives.minutes(8, 1.0)
    assert lives.pages() == set()
    lives.publish(lives.rows(1.0))

    lives.restart(minutes_later=1)
    lives.step()

    assert lives.evaluating.health.minute_ns == lives.now_ns
    assert lives.pages() == {BURN}


@pytest.mark.parametrize(
    ("minutes", "keeps"), [(10, True), (600, False)], ids=["ten minutes down", "ten hours down"]
)
def test_after_a_gap_each_alert_says_at_most_that_it_is_over(
    lives: Lives, minutes: int, keeps: bool
) -> None:
    lives.minutes(12, 1.0)
    before, fired = len(lives.flips()), lives.firing()

    lives.restart(minutes_later=minutes)
    lives.minutes(15, 0.0)

    after = lives.flips()[before:]
    assert len(after) <= 2 * len(fired)
    assert {flip.key for flip in after} <= fired.keys(), "nothing new is told of the gap"
    assert "TailburnUnmeasured" not in {key.alertname for key in lives.firing()}
    assert lives.evaluating.health.skipped_minutes == 0, "nobody was there to skip them"
    del keeps


def test_what_still_burns_after_a_gap_goes_on_with_its_begin(lives: Lives) -> None:
    lives.minutes(12, 1.0)
    fired = {key for key in lives.firing() if key.severity == "page"}

    lives.restart(minutes_later=10)
    lives.minutes(5, 1.0)

    assert fired <= lives.firing().keys()
    assert not [f for f in lives.flips() if f.key in fired and f.new is Status.INACTIVE]


def test_changes_that_are_too_old_go_while_the_service_runs(lives: Lives) -> None:
    lives.minutes(12, 1.0)
    lives.minutes(90, 0.0)
    ended = {flip.key for flip in lives.flips() if flip.new is Status.INACTIVE}

    lives.restart(minutes_later=401 * 24 * 60)
    lives.minutes(12, 1.0)

    old = [flip for flip in lives.flips() if flip.at_ns < lives.now_ns - 400 * DAY_NS]
    assert ended and not ended & {flip.key for flip in old}
    assert {flip.key for flip in old} <= lives.firing().keys(), "since when it fires is told"


def test_a_service_with_an_slo_edited_each_day_keeps_a_bounded_state(tmp_path: Path) -> None:
    lives = Lives(tmp_path / "store", [ONE], kept_ns=5 * DAY_NS)
    sizes = []

    for day in range(1, 25):
        lives.restart(24 * 60, slos=[replace(ONE, availability_ratio=0.99 + day / 10_000)])
        lives.minutes(11, 1.0 if day % 2 else 0.0)
        with lives.database.reading() as session:
            counts = {t: select(func.count()).select_from(TABLES[t]) for t in WRITTEN}
            sizes.append({t: session.scalar(count) or 0 for t, count in counts.items()})

    assert lives.evaluating.health.failures == 0
    assert {table: max(size[table] for size in sizes[12:]) for table in WRITTEN} == {
        table: max(size[table] for size in sizes[6:12]) for table in WRITTEN
    }
    assert sizes[-1]["slo_versions"] <= 7 and sizes[-1]["covered"] <= 7
    assert sizes[-1]["evaluated"] == 1


def test_a_clock_that_goes_back_an_hour_is_told_once_and_followed(
    lives: Lives, caplog: pytest.LogCaptureFixture
) -> None:
    lives.minutes(12, 1.0)
    fired = lives.firing()

    lives.now_ns -= 60 * MINUTE_NS
    lives.minutes(3, 1.0)

    said = [record for record in caplog.records if "the clock went back" in record.message]
    assert len(said) == 1
    assert lives.evaluating.health.minute_ns == lives.now_ns
    assert fired.keys() <= lives.firing().keys()
    assert not [flip for flip in lives.flips() if flip.new is Status.INACTIVE]
    assert {since + 59 for since in lives.firing().values()} == set(fired.values())


STRICTER = replace(ONE, availability_ratio=0.995)


def test_an_edit_while_it_burns_goes_on_where_the_new_budget_burns_too(lives: Lives) -> None:
    lives.minutes(12, 1.0)
    flips = lives.flips()

    lives.restart(slos=[STRICTER])
    lives.minutes(3, 1.0)

    assert lives.pages() == {BURN}
    assert not [f for f in lives.flips()[len(flips) :] if f.new is Status.INACTIVE]


def test_an_edit_ends_what_the_new_budget_does_not_say_and_gives_that_for_the_reason(
    lives: Lives,
) -> None:
    lives.minutes(12, 1.0)
    before = len(lives.flips())

    lives.restart(slos=[STRICTER])
    lives.minutes(9, 0.0)
    assert lives.pages() == {BURN}, "the new budget is too young to say that it is over"
    lives.minutes(1, 0.0)

    ended = [flip for flip in lives.flips()[before:] if flip.key.severity == "page"]
    assert [flip.new for flip in ended] == [Status.INACTIVE]
    assert "the SLO was edited" in ended[0].reason


def test_an_edit_while_it_burns_ends_nothing_before_the_new_budget_has_counted(
    lives: Lives,
) -> None:
    lives.minutes(12, 1.0)
    fired = lives.firing()

    lives.restart(slos=[STRICTER])
    lives.minutes(3, None)
    lives.restart()
    lives.minutes(8, 1.0)

    assert fired and fired.items() <= lives.firing().items()
    ended = [f for f in lives.flips() if f.key in fired and f.new is not Status.FIRING]
    assert ended == []


def test_an_edit_that_is_taken_back_while_it_burns_ends_nothing(lives: Lives) -> None:
    lives.minutes(12, 1.0)
    fired = lives.firing()

    lives.restart(slos=[STRICTER])
    lives.minutes(20, 1.0)
    lives.restart(slos=[ONE])
    lives.minutes(3, None)
    lives.restart()
    lives.minutes(8, 1.0)

    assert fired and fired.items() <= lives.firing().items()
    assert not [f for f in lives.flips() if f.key in fired and f.new is not Status.FIRING]


def test_an_slo_that_is_removed_takes_its_alerts_along(lives: Lives) -> None:
    lives.minutes(12, 1.0)

    lives.restart(slos=[])
    lives.minutes(1, None)

    assert lives.firing() == {}
    assert {f.new for f in lives.flips()[-2:]} == {Status.INACTIVE}


def test_senders_that_tell_the_time_begin_it_with_their_first_row(tmp_path: Path) -> None:
    lives = Lives(tmp_path / "store", [ONE], healthy=0, is_told=True)
    lives.step()
    assert lives.evaluating.health.minute_ns is None

    lives.now_ns = BEGIN_NS - 25 * 60 * MINUTE_NS
    for _ in range(90):
        lives.publish(lives.rows(0.0))
        lives.now_ns += MINUTE_NS
    lives.step()

    assert lives.evaluating.health.minute_ns == lives.now_ns
    assert lives.evaluating.health.evaluations == 90


def test_who_is_killed_before_the_first_evaluation_begins_with_the_first_row(
    tmp_path: Path,
) -> None:
    lives = Lives(tmp_path / "store", [ONE], healthy=0, is_told=True)
    for _ in range(90):
        lives.publish(lives.rows(0.0))
        lives.now_ns += MINUTE_NS

    lives.restart()
    lives.step()

    assert lives.evaluating.health.minute_ns == lives.now_ns
    assert lives.evaluating.health.evaluations == 90


_FULL = """
CREATE TRIGGER full BEFORE INSERT ON alert_flips BEGIN SELECT RAISE(ABORT, 'disk full'); END
"""


def test_while_nothing_can_be_written_alerts_are_judged_on_and_written_later(
    lives: Lives, tmp_path: Path
) -> None:
    other = Lives(tmp_path / "other", [ONE], healthy=420)
    course = [1.0] * 9 + [0.0] * 12 + [1.0] * 3
    lives.minutes(8, 1.0)
    with lives.database.writing() as session:
        session.connection().exec_driver_sql(_FULL)
    written = Alerts(lives.database).standing()
    for bad in course[8:]:
        with pytest.raises(DBAPIError, match="disk full"):
            lives.minute(bad)
    assert lives.evaluating.health.unwritten_minutes == len(course) - 8
    assert lives.evaluating.health.minute_ns == lives.now_ns
    assert Alerts(lives.database).standing() == written, "none of it is there yet"

    with lives.database.writing() as session:
        session.connection().exec_driver_sql("DROP TRIGGER full")
    lives.step()

    for bad in course:
        other.minute(bad)
    assert len({flip.new for flip in lives.flips()}) > 1
    assert lives.flips() == other.flips()
    assert lives.evaluating.states() == other.evaluating.states()
    assert Alerts(lives.database).standing() == Alerts(other.database).standing()
    assert Alerts(lives.database).covered(0) == Alerts(other.database).covered(0)
    assert lives.evaluating.health.unwritten_minutes == 0


def test_a_kill_while_nothing_can_be_written_tells_the_same_later(lives: Lives) -> None:
    lives.minutes(8, 1.0)
    with lives.database.writing() as session:
        session.connection().exec_driver_sql(_FULL)
    with pytest.raises(DBAPIError, match="disk full"):
        lives.minute(1.0)
    fired = lives.firing()
    with lives.database.writing() as session:
        session.connection().exec_driver_sql("DROP TRIGGER full")

    lives.restart()
    lives.step()

    assert fired and lives.firing() == fired
    assert [flip.new for flip in lives.flips() if flip.key.severity == "page"] == [Status.FIRING]


@pytest.mark.parametrize("series", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_many_series_fire_and_end_once_each_through_a_kill(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, series: int
) -> None:
    lives = Lives(tmp_path / "store", [replace(ONE, by=("model",))], healthy=0)
    row = lives.rows(0.0, 100)[0]
    rows = [{**row, "by": json.dumps({"model": f"m{i}"})} for i in range(series)]

    def minute(bad: int) -> None:
        lives.publish([{**r, "minute_ns": lives.now_ns, "bad": bad} for r in rows])
        lives.now_ns += MINUTE_NS
        lives.step()

    for bad in (100, 100, 100):
        minute(bad)
    fired = lives.firing()
    lives.restart()
    for _ in range(8):
        minute(0)

    quickest = [f for f in lives.flips() if (f.key.long, f.key.short) == ("1h", "5m")]
    assert Counter((f.old, f.new) for f in quickest) == {
        (Status.INACTIVE, Status.FIRING): series,
        (Status.FIRING, Status.INACTIVE): series,
    }
    assert {key.by for key in fired} == {(("model", f"m{i}"),) for i in range(series)}
    assert len(caplog.records) < 300, "a bounded number of lines a minute"
