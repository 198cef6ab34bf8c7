"""What people do to an incident, what it does not allow, and what is not kept."""

import pytest

from tailburn.alerts.incidents.acting import MOST_TEXT, Act, Action, ActionError, acted
from tailburn.engine.incidents import Happened, Incident, Life
from tailburn.engine.slo.burn import Severity

OPEN = Incident("k", 1, Severity.PAGE, {})


def after(incident: Incident, *actions: Action) -> Incident:
    for number, action in enumerate(actions):
        incident = acted(incident, Act(action, "ada", 10 + number, "text")).incident
    return incident


def test_who_acknowledges_it_owns_it_unless_somebody_does() -> None:
    taken = after(OPEN, Action.ACK)
    assert (taken.life, taken.owner) == (Life.ACKNOWLEDGED, "ada")
    given = acted(OPEN, Act(Action.OWN, "ada", 2, "grace")).incident
    assert after(given, Action.ACK).owner == "grace"


def test_its_life_goes_on_to_the_end_and_begins_anew() -> None:
    over = after(OPEN, Action.ACK, Action.MITIGATE, Action.RESOLVE)
    assert (over.life, over.resolved_ns, over.reopened) == (Life.RESOLVED, 12, 0)
    again = after(over, Action.REOPEN)
    assert (again.life, again.resolved_ns, again.reopened) == (Life.OPEN, None, 1)


def test_a_note_says_who_and_changes_nothing() -> None:
    step = acted(OPEN, Act(Action.NOTE, "ada", 5, "drained node-3"))
    assert step.incident == OPEN
    event = step.event
    assert (event.what, event.who, event.text) == (Happened.NOTE, "ada", "drained node-3")


@pytest.mark.parametrize(
    ("life", "action", "says"),
    [
        (Life.RESOLVED, Action.ACK, "it is resolved; ack wants open"),
        (Life.RESOLVED, Action.RESOLVE, "wants open or acknowledged or mitigated"),
        (Life.OPEN, Action.REOPEN, "it is open; reopen wants resolved"),
    ],
)
def test_what_it_does_not_allow_says_why(life: Life, action: Action, says: str) -> None:
    with pytest.raises(ActionError, match=says):
        acted(Incident("k", 1, Severity.PAGE, {}, life), Act(action, "ada", 5))


@pytest.mark.parametrize(
    ("action", "who", "text", "says"),
    [
        (Action.NOTE, "ada", " ", "note: says nothing"),
        (Action.NOTE, "ada", "x" * (MOST_TEXT + 1), "4,001 characters; 4,000 at most"),
        (Action.ACK, "", "", "who: 0 characters"),
        (Action.OWN, "ada", "x" * 129, "owner: 129 characters"),
    ],
)
def test_what_is_not_fit_to_be_kept_is_refused(
    action: Action, who: str, text: str, says: str
) -> None:
    with pytest.raises(ActionError, match=says):
        acted(OPEN, Act(action, who, 5, text))
