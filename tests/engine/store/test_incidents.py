"""Incidents in the state database: taken in whole or not at all, and never twice."""

from dataclasses import replace

import pytest

from tailburn.alerts.incidents.deciding import Deciding
from tailburn.alerts.incidents.grouping import REOPENS_NS, SETTLES_NS
from tailburn.alerts.incidents.places import places_of
from tailburn.engine.evaluation import AlertKey, Flip, Status
from tailburn.engine.incidents import Happened, Life, What
from tailburn.engine.slo.burn import Severity
from tailburn.engine.store.state import incidents as module
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.incidents import Decided, Incidents

MINUTE = 60_000_000_000
WAYS = {Severity.PAGE: ["pager"], Severity.TICKET: ["chat"]}


def key(slo: str = "chat", severity: str = "page") -> AlertKey:
    return AlertKey("TailburnBudgetBurn", slo, "ttft_p95", severity, "30m", "5m", (("model", "a"),))


def flip(of: AlertKey, minute: int, fires: bool = True) -> Flip:
    old, new = (Status.INACTIVE, Status.FIRING) if fires else (Status.FIRING, Status.INACTIVE)
    return Flip(of, old, new, minute * MINUTE, 7.0, "7 times too fast")


decide = Deciding(places_of(()), WAYS)


@pytest.fixture
def state(database: State) -> State:
    return database


def evaluated(state: State, minute: int, *flips: Flip) -> Decided | None:
    """One evaluation, and what it came to."""
    Alerts(state).write(minute * MINUTE, {}, {}, flips)
    return Incidents(state).advance(REOPENS_NS, SETTLES_NS, decide, now_unix_ns=5)


def test_a_change_becomes_an_incident_that_is_read_back_as_it_was(state: State) -> None:
    decided = evaluated(state, 1, flip(key(), 1), flip(key(severity="ticket"), 1))
    assert decided is not None
    (found,) = Incidents(state).all()
    steps, _ = decided
    assert found == replace(steps[-1].incident, id=1)
    assert found.told == {"pager"}
    assert [e.what for e in Incidents(state).timeline(1)] == [Happened.OPENED, Happened.JOINED]


def test_nothing_is_taken_in_twice(state: State) -> None:
    evaluated(state, 1, flip(key(), 1))
    assert evaluated(state, 2) is None
    assert evaluated(state, 3) is None
    assert len(Incidents(state).timeline(1)) == 1


def test_time_alone_resolves_it_and_it_is_told_by_the_ways_that_told_of_it(state: State) -> None:
    evaluated(state, 1, flip(key(severity="ticket"), 1))
    evaluated(state, 2, flip(key(), 2))
    ends = [flip(key(), 9, fires=False), flip(key(severity="ticket"), 9, fires=False)]
    decided = evaluated(state, 9, *ends)
    assert decided is not None and decided[1] == []
    decided = evaluated(state, 9 + SETTLES_NS // MINUTE)
    assert decided is not None
    assert {(m.what, m.channel) for m in decided[1]} == {
        (What.RESOLVE, "pager"), (What.RESOLVE, "chat"),
    }  # fmt: skip
    assert Incidents(state).one(1).life is Life.RESOLVED  # type: ignore[union-attr]
    assert evaluated(state, 60) is None


def test_what_can_not_be_decided_is_left_for_the_next_time(state: State) -> None:
    def fails(*_: object) -> Decided:
        raise RuntimeError("in the middle")

    Alerts(state).write(MINUTE, {}, {}, [flip(key(), 1)])
    with pytest.raises(RuntimeError):
        Incidents(state).advance(REOPENS_NS, SETTLES_NS, fails, now_unix_ns=5)
    assert Incidents(state).all() == []
    decided = Incidents(state).advance(REOPENS_NS, SETTLES_NS, decide, now_unix_ns=5)
    assert decided is not None and [s.what for s in decided[0]] == [Happened.OPENED]


def test_a_flood_of_changes_is_taken_in_in_pieces_and_comes_to_the_same(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_FLIPS", 3)
    flips = [flip(key(), m, fires=m % 2 == 0) for m in range(10)]
    Alerts(state).write(100 * MINUTE, {}, {}, flips)
    while Incidents(state).advance(REOPENS_NS, SETTLES_NS, decide, now_unix_ns=5) is not None:
        pass
    said = [e.what for e in Incidents(state).timeline(1)]
    assert said == [Happened.OPENED, *[Happened.ENDED, Happened.JOINED] * 4, Happened.ENDED,
                    Happened.RESOLVED]  # fmt: skip


def test_one_that_opened_and_ended_unseen_is_told_of_with_its_end(state: State) -> None:
    Alerts(state).write(100 * MINUTE, {}, {}, [flip(key(), 1), flip(key(), 2, fires=False)])
    decided = Incidents(state).advance(REOPENS_NS, SETTLES_NS, decide, now_unix_ns=5)
    assert decided is not None
    assert [(m.what, m.channel) for m in decided[1]] == [
        (What.TRIGGER, "pager"), (What.RESOLVE, "pager")
    ]  # fmt: skip


def test_old_incidents_are_forgotten_with_all_that_is_theirs(state: State) -> None:
    evaluated(state, 1, flip(key(), 1))
    evaluated(state, 2, flip(key(), 2, fires=False))
    evaluated(state, 60, flip(key(), 60))
    Incidents(state).forget(before_ns=30 * MINUTE)
    assert [incident.id for incident in Incidents(state).all()] == [2]
    assert Incidents(state).timeline(1) == []
