"""What is told by who takes over: the difference between what is known and what is seen here."""

from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.evaluation.alerts import AlertKey, Flip, State, Status
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.incidents import Member
from tailburn.engine.store.state.taking_up import SAME_NS, differences

NOW_NS = 1_000 * MINUTE_NS


def key(name: str) -> AlertKey:
    return AlertKey("TailburnBudgetBurn", "chat", name, "page", "1h", "5m")


def firing(since_ns: int) -> State:
    return State(Status.FIRING, since_ns, since_ns, 0.2, "20 % bad")


def changes(found: list[Flip]) -> list[tuple[str, bool, int]]:
    return [(flip.key.objective, flip.new.fires, flip.at_ns) for flip in found]


def test_what_both_saw_is_not_told_again_though_they_saw_it_a_little_apart() -> None:
    member = Member(key("a"), NOW_NS - 3 * MINUTE_NS)
    assert differences({key("a"): firing(NOW_NS - MINUTE_NS)}, [member], NOW_NS) == []
    frozen = State(Status.FROZEN, NOW_NS, NOW_NS - MINUTE_NS, None, "no data")
    assert differences({key("a"): frozen}, [member], NOW_NS) == []


def test_what_nobody_told_is_told_and_what_is_over_is_ended() -> None:
    found = differences(
        {key("new"): firing(NOW_NS - MINUTE_NS)}, [Member(key("old"), MINUTE_NS)], NOW_NS
    )
    assert changes(found) == [("new", True, NOW_NS - MINUTE_NS), ("old", False, NOW_NS)]


def test_a_stretch_of_an_incident_long_resolved_hides_no_new_trouble() -> None:
    members = [Member(key("a"), MINUTE_NS)]
    found = differences({key("a"): firing(NOW_NS - SAME_NS)}, members, NOW_NS)
    assert changes(found) == [("a", True, NOW_NS - SAME_NS)]


STATES = st.dictionaries(
    st.sampled_from([key(n) for n in "abcd"]),
    st.builds(
        State,
        st.sampled_from(list(Status)[1:]),
        st.integers(900, 1_000).map(lambda m: m * MINUTE_NS),
        st.just(900 * MINUTE_NS),
        st.none(),
        st.just("why"),
    ),
)
MEMBERS = st.lists(
    st.builds(
        Member,
        st.sampled_from([key(n) for n in "abcd"]),
        st.integers(0, 1_000).map(lambda m: m * MINUTE_NS),
    )
)


@given(STATES, MEMBERS)
def test_after_it_there_is_no_difference_left(
    states: dict[AlertKey, State], members: list[Member]
) -> None:
    found = differences(states, members, NOW_NS)
    ended = {flip.key for flip in found if not flip.new.fires}
    left = [m for m in members if m.key not in ended]
    left += [Member(flip.key, flip.at_ns) for flip in found if flip.new.fires]
    assert differences(states, left, NOW_NS) == []
