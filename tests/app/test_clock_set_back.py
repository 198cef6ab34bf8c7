"""A clock that goes back an hour: nothing of the hour before comes back, nothing is lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from tailburn.engine.evaluation import Status
from tests.app.lives import Lives
from tests.app.slos import CHAT
from tests.app.verdicts import MINUTE_NS
from tests.engine.test_gauges import reading

ONE = replace(CHAT, clocks={}, availability_ratio=0.99)
S = 1_000_000_000


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    """Seven hours that were well."""
    return Lives(tmp_path / "store", [ONE], healthy=420)


def read(lives: Lives, running: float) -> None:
    rows = reading(lives.now_ns // S, "a", requests_running=running)
    lives.evaluating.take("signals", rows)


def test_an_outage_that_ended_before_is_over_once_and_fires_no_second_time(
    lives: Lives, caplog: pytest.LogCaptureFixture
) -> None:
    lives.minutes(12, 1.0)
    fired = lives.firing()

    lives.now_ns -= 60 * MINUTE_NS
    lives.minutes(75, 0.0)

    assert fired and not {k for k in lives.firing() if k.severity == "page"}
    for key in fired:
        news = [flip.new for flip in lives.flips() if flip.key == key]
        assert news.count(Status.FIRING) == 1
    assert len([r for r in caplog.records if "the clock went back" in r.message]) == 1


def test_set_back_while_it_was_down_is_followed_from_the_start(
    lives: Lives, caplog: pytest.LogCaptureFixture
) -> None:
    lives.minutes(12, 1.0)
    fired = lives.firing()

    lives.restart(minutes_later=-60)
    lives.minutes(3, 1.0)

    assert fired.keys() <= lives.firing().keys()
    assert not [flip for flip in lives.flips() if flip.new is Status.INACTIVE]
    assert len([r for r in caplog.records if "the clock went back" in r.message]) == 1


def test_what_was_in_flight_an_hour_before_is_not_in_flight_again(lives: Lives) -> None:
    for _ in range(70):
        read(lives, 500.0)
        lives.minute(0.0)

    lives.now_ns -= 60 * MINUTE_NS
    for _ in range(30):
        read(lives, 1.0)
        lives.minute(0.0)
        assert set(lives.evaluating.in_flight().values()) == {1.0}
    lives.minutes(30, 0.0)

    assert lives.evaluating.in_flight() == {}, "it is not read any more"
