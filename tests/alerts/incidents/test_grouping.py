"""Which alerts are one incident, when it ends, and when it is told of again."""

from collections.abc import Iterable
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from tailburn.alerts.incidents.grouping import REOPENS_NS, SETTLES_NS, Grouping
from tailburn.alerts.incidents.places import are_apart, places_of
from tailburn.engine.evaluation import AlertKey, Flip, Status
from tailburn.engine.incidents import Happened, Incident, Life, Step
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Place, Slo

MINUTE = 60_000_000_000
PLACE = Place("slo.yaml", 1)
SLOS = (
    Slo("chat", PLACE, select={"model": "llama", "request_type": "chat"}),
    Slo("docs", PLACE, select={"model": "llama", "request_type": "document"}),
    Slo("qwen", PLACE, select={"model": "qwen"}),
    Slo("mixtral", PLACE, select={"model": "mixtral"}),
    Slo("gateway", PLACE, select={}),
)


def key(slo: str, severity: str = "page", objective: str = "ttft_p95") -> AlertKey:
    return AlertKey("TailburnBudgetBurn", slo, objective, severity, "30m", "5m")


def fires(of: AlertKey, minute: float) -> Flip:
    return Flip(of, Status.INACTIVE, Status.FIRING, int(minute * MINUTE), 7.0, "7 times too fast")


def ends(of: AlertKey, minute: float) -> Flip:
    return Flip(of, Status.FIRING, Status.INACTIVE, int(minute * MINUTE), 0.1, "it is over")


def grouping(incidents: Iterable[Incident] = ()) -> Grouping:
    numbers = count(1)
    return Grouping(incidents, places_of(SLOS), lambda: f"key-{next(numbers)}")


def said(steps: list[Step]) -> list[tuple[str, str]]:
    return [(step.incident.key, str(step.what)) for step in steps]


def test_what_one_model_serves_is_one_incident_whatever_is_asked_of_it() -> None:
    steps = grouping().take([fires(key("chat"), 1), fires(key("docs"), 3)])
    assert said(steps) == [("key-1", "opened"), ("key-1", "joined")]
    assert steps[-1].incident.where == {"model": "llama"}
    assert steps[-1].incident.slos == ("chat", "docs")


def test_what_begins_together_is_one_incident_whatever_serves_it() -> None:
    one = grouping().take([fires(key("chat"), 1), fires(key("qwen"), 6)])
    assert said(one) == [("key-1", "opened"), ("key-1", "joined")]
    assert one[-1].incident.where == {}
    numbers = count(5)
    later = Grouping([one[-1].incident], places_of(SLOS), lambda: f"key-{next(numbers)}")
    assert said(later.take([fires(key("mixtral"), 20)])) == [("key-5", "opened")], "its own"


def test_two_models_are_two_incidents_unless_what_serves_both_is_in_trouble() -> None:
    two = grouping().take([fires(key("chat"), 1), fires(key("qwen"), 7)])
    assert said(two) == [("key-1", "opened"), ("key-2", "opened")]
    one = grouping().take([fires(key("gateway"), 1), fires(key("chat"), 1), fires(key("qwen"), 2)])
    assert {step.incident.key for step in one} == {"key-1"}


def test_an_alert_joins_the_incident_that_says_most_of_the_same() -> None:
    steps = grouping().take([
        fires(key("chat"), 1), fires(key("qwen"), 7), fires(key("qwen", "ticket"), 8),
    ])  # fmt: skip
    assert said(steps)[-1] == ("key-2", "joined")


def test_it_is_resolved_once_nothing_of_its_severity_has_fired_for_a_while() -> None:
    group = grouping()
    group.take([
        fires(key("chat"), 1), fires(key("chat", "ticket"), 2), ends(key("chat"), 10),
    ])  # fmt: skip
    assert group.settle(10 * MINUTE + SETTLES_NS - 1) == []
    (step,) = group.settle(27 * MINUTE)
    assert (step.what, step.event.at_ns) == (Happened.RESOLVED, 10 * MINUTE + SETTLES_NS)
    assert step.incident.life is Life.RESOLVED
    assert group.settle(28 * MINUTE) == []


def test_what_flaps_is_one_incident_that_never_ended() -> None:
    group = grouping()
    flips = []
    for minute in range(0, 40, 4):
        flips += [fires(key("chat"), minute), ends(key("chat"), minute + 2)]
    assert {str(s.what) for s in group.take(flips)} == {"opened", "ended", "joined"}
    assert len(group.incidents) == 1


def test_a_page_soon_after_the_end_opens_it_again_and_a_later_one_another() -> None:
    for later_ns, expected in ((REOPENS_NS, ("key-1", "reopened")),
                               (REOPENS_NS + MINUTE, ("key-2", "opened"))):  # fmt: skip
        group = grouping()
        group.take([fires(key("chat"), 1), ends(key("chat"), 2)])
        group.settle(17 * MINUTE)
        again = fires(key("chat", objective="tpot_p95"), 17 + later_ns / MINUTE)
        steps = group.take([again])
        assert said(steps) == [expected]
        assert steps[0].incident.life is Life.OPEN
        assert steps[0].incident.reopened == (expected[0] == "key-1")


def test_a_ticket_after_the_end_of_a_page_is_noted_and_opens_nothing() -> None:
    group = grouping()
    group.take([fires(key("chat"), 1), ends(key("chat"), 2)])
    group.settle(17 * MINUTE)
    (step,) = group.take([fires(key("chat", "ticket"), 19)])
    assert (step.what, step.incident.life) == (Happened.JOINED, Life.RESOLVED)


def test_a_ticket_that_goes_on_swallows_no_page() -> None:
    group = grouping()
    steps = group.take([fires(key("chat", "ticket"), 1), fires(key("chat"), 60)])
    assert said(steps) == [("key-1", "opened"), ("key-1", "escalated")]
    assert steps[-1].incident.severity is Severity.PAGE
    group.take([ends(key("chat"), 70)])
    group.settle(85 * MINUTE)
    steps = group.take([fires(key("chat"), 200)])
    assert said(steps) == [("key-2", "opened")]


def test_an_alert_without_data_fires_still() -> None:
    group = grouping()
    group.take([fires(key("chat"), 1)])
    frozen = Flip(key("chat"), Status.FIRING, Status.FROZEN, 5 * MINUTE, None, "no data")
    assert group.take([frozen]) == group.settle(60 * MINUTE) == []


def test_teams_are_told_apart() -> None:
    slos = [Slo(n, PLACE, labels={"team": n}) for n in ("search", "shop")]
    place_of = places_of(slos)
    assert are_apart(place_of(key("search")), place_of(key("shop")))


COURSES = st.lists(
    st.tuples(
        st.sampled_from([key(s.name, v) for s in SLOS for v in ("page", "ticket")]),
        st.integers(0, 20),
    ),
    max_size=40,
)


def _course(drawn: list[tuple[AlertKey, int]]) -> list[Flip]:
    firing: set[AlertKey] = set()
    flips, minute = [], 0
    for of, step in drawn:
        minute += step
        flips.append(ends(of, minute) if of in firing else fires(of, minute))
        firing ^= {of}
    return flips


@given(COURSES)
def test_every_alert_that_fires_is_in_one_incident_that_is_as_grave(
    drawn: list[tuple[AlertKey, int]],
) -> None:
    group, flips = grouping(), _course(drawn)
    firing: set[AlertKey] = set()
    for flip in flips:
        group.take([flip])
        firing = firing | {flip.key} if flip.new.fires else firing - {flip.key}
        pages = {of for of in firing if of.severity == "page"}
        members = [m.key for i in group.incidents if not i.is_over for m in i.firing]
        assert len(members) == len(set(members))
        assert pages <= set(members)
        for incident in group.incidents:
            if any(m.key.severity == "page" for m in incident.firing):
                assert (incident.severity, incident.is_over) == (Severity.PAGE, False)


@given(COURSES, st.integers(0, 40))
def test_taken_in_pieces_and_looked_at_in_between_it_is_the_same(
    drawn: list[tuple[AlertKey, int]], at: int
) -> None:
    flips = _course(drawn)
    whole = grouping()
    numbers = count(1)
    first = Grouping((), places_of(SLOS), lambda: f"key-{next(numbers)}")
    steps = first.take(flips[:at])
    then = Grouping(first.incidents, places_of(SLOS), lambda: f"key-{next(numbers)}")
    for flip in flips[at:]:
        steps += then.settle(flip.at_ns - 1)
        steps += then.take([flip])
    assert steps == whole.take(flips)
