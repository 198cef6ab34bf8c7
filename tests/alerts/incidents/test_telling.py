"""One message where an incident opens or gets worse, one where it ends, none between."""

from tailburn.alerts.incidents.telling import told
from tailburn.engine.incidents import Event, Happened, Incident, Step, What
from tailburn.engine.slo.burn import Severity

WAYS = {Severity.PAGE: ["pagerduty", "chat"], Severity.TICKET: ["chat"]}


def step(what: Happened, severity: Severity = Severity.PAGE, **more: object) -> Step:
    incident = Incident("k", 1, severity, {}, **more)  # type: ignore[arg-type]
    return Step(incident, Event(7, what, "why"))


def test_it_is_told_by_every_channel_of_its_severity() -> None:
    after, messages = told(step(Happened.OPENED), WAYS)
    assert [(m.channel, m.what, m.severity, m.at_ns) for m in messages] == [
        ("pagerduty", What.TRIGGER, Severity.PAGE, 7), ("chat", What.TRIGGER, Severity.PAGE, 7),
    ]  # fmt: skip
    assert after.told == {"pagerduty", "chat"}


def test_what_joins_or_ends_in_between_is_told_to_nobody() -> None:
    for what in Happened:
        if what not in (Happened.OPENED, Happened.ESCALATED, Happened.REOPENED, Happened.RESOLVED):
            assert told(step(what, told=frozenset({"chat"})), WAYS)[1] == []


def test_the_end_is_told_to_those_who_know_of_it() -> None:
    _, messages = told(step(Happened.RESOLVED, told=frozenset({"old", "chat"})), WAYS)
    assert [(m.channel, m.what) for m in messages] == [
        ("chat", What.RESOLVE), ("old", What.RESOLVE)
    ]  # fmt: skip


def test_no_two_messages_of_an_incident_are_taken_for_one() -> None:
    steps = [
        step(Happened.OPENED, Severity.TICKET),
        step(Happened.ESCALATED),
        step(Happened.RESOLVED, told=frozenset({"chat", "pagerduty"})),
        step(Happened.REOPENED, reopened=1),
        step(Happened.RESOLVED, reopened=1, told=frozenset({"chat", "pagerduty"})),
    ]
    ids = [message.id for each in steps for message in told(each, WAYS)[1]]
    assert len(ids) == len(set(ids)) == 9
    assert [m.id for each in steps for m in told(each, WAYS)[1]] == ids
