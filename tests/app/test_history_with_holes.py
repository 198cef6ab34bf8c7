"""A history with holes: segments that a disk lost, minutes nobody counted. They are no alert."""

from dataclasses import replace
from pathlib import Path

import pytest

from tailburn.engine.evaluation import Status
from tests.app.lives import Lives
from tests.app.slos import CHAT

ONE = replace(CHAT, clocks={}, availability_ratio=0.99)


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    """An hour that was well, a segment for each minute."""
    lives = Lives(tmp_path / "store", [ONE], healthy=5)
    lives.minutes(60, 0.0)
    return lives


def segments_of(lives: Lives) -> list[Path]:
    """In order of time."""
    found = (lives.store.root / "verdicts").rglob("*.parquet")
    return sorted(found, key=lambda path: int(path.name.partition("-")[0]))


def test_damaged_segments_are_told_once_and_cost_only_what_they_held(
    lives: Lives, caplog: pytest.LogCaptureFixture
) -> None:
    segments = segments_of(lives)
    for segment in segments[10:20]:
        segment.write_bytes(segment.read_bytes()[:50])

    lives.restart()
    lives.minutes(20, 0.0)

    assert (lives.firing(), lives.flips()) == ({}, [])
    (said,) = caplog.messages
    assert said.startswith("alerts go on without what 10 damaged segments of the store held; ")
    assert any(f"the first is {segment}: " in said for segment in segments[10:20])
    lives.minutes(10, 1.0)
    assert lives.pages(), "what comes is judged"


def test_a_page_goes_on_over_a_hole_in_its_own_past(lives: Lives) -> None:
    lives.minutes(12, 1.0)
    fired = {key for key in lives.firing() if key.severity == "page"}
    segments = segments_of(lives)
    for segment in segments[-6:-2]:
        segment.unlink()

    lives.restart()
    lives.minutes(5, 1.0)

    assert fired and fired <= lives.firing().keys()
    assert not [f for f in lives.flips() if f.key in fired and f.new is Status.INACTIVE]


def test_minutes_without_requests_among_others_begin_and_end_nothing(lives: Lives) -> None:
    for _ in range(20):
        lives.minute(0.0)
        lives.minutes(2, None)
        lives.restart()

    assert (lives.firing(), lives.flips()) == ({}, [])
