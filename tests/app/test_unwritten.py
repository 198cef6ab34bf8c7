"""What waits for the state database: all of it, once, in order, however a write ended."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from tailburn.app.unwritten import MOST_FLIPS, Evaluation, Unwritten
from tailburn.engine.evaluation import AlertKey, Flip, State, Status
from tailburn.engine.store.state.alerts import Alerts, Standing
from tailburn.engine.store.state.database import State as Database
from tailburn.engine.store.state.database import open_state, state_path

PAGE = AlertKey("TailburnBudgetBurn", "chat", "availability", "page", "1h", "5m")
FIRING = State(Status.FIRING, 60, 60, 0.25, "25 % bad")
BEGAN = Flip(PAGE, Status.INACTIVE, Status.FIRING, 60, 0.25, "25 % bad")
ENDED = Flip(PAGE, Status.FIRING, Status.INACTIVE, 120, 0.0, "none bad")


class Lossy(Alerts):
    """Loses its server before a write, or after it: then the answer alone is lost."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.is_away = False
        self.loses_answer = False

    def write(self, *given: object, **named: object) -> None:
        if self.is_away:
            raise OperationalError("BEGIN", None, ConnectionError("refused"))
        super().write(*given, **named)  # type: ignore[arg-type]
        if self.loses_answer:
            raise OperationalError("COMMIT", None, ConnectionError("reset"))


@pytest.fixture
def alerts(tmp_path: Path) -> Iterator[Lossy]:
    database = open_state(state_path(tmp_path))
    yield Lossy(database)
    database.close()


def fail(unwritten: Unwritten) -> None:
    with pytest.raises(OperationalError):
        unwritten.write()


def test_what_waited_is_written_in_order_and_once(alerts: Lossy) -> None:
    unwritten = Unwritten(alerts, {})
    alerts.is_away = True
    unwritten.take(Evaluation(60, {PAGE: FIRING}, [BEGAN], 0))
    fail(unwritten)
    unwritten.take(Evaluation(120, {}, [ENDED], 0))
    unwritten.take(Evaluation(180, {}, [], 0))
    fail(unwritten)
    assert unwritten.minutes == 3

    alerts.is_away = False
    for _ in range(2):
        unwritten.write()

    assert unwritten.minutes == 0
    assert alerts.standing() == Standing(180, {})
    assert alerts.flips(0) == [BEGAN, ENDED]
    assert alerts.covered(0) == [(0, 180)]


def test_a_commit_whose_answer_was_lost_is_not_written_twice(alerts: Lossy) -> None:
    unwritten = Unwritten(alerts, {})
    alerts.loses_answer = True
    unwritten.take(Evaluation(60, {PAGE: FIRING}, [BEGAN], 0))
    fail(unwritten)
    alerts.loses_answer, alerts.is_away = False, True
    unwritten.take(Evaluation(120, {}, [ENDED], 0))
    fail(unwritten)

    alerts.is_away = False
    unwritten.write()

    assert alerts.standing() == Standing(120, {})
    assert alerts.flips(0) == [BEGAN, ENDED]


def test_no_more_is_held_than_there_is_room_for(alerts: Lossy) -> None:
    unwritten = Unwritten(alerts, {})
    unwritten.take(Evaluation(60, {}, [BEGAN] * (MOST_FLIPS - 1), 0))
    assert not unwritten.is_full
    unwritten.take(Evaluation(120, {}, [ENDED], 0))
    assert unwritten.is_full
