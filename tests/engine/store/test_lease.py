"""The lease of a pair: one holder at a time, and what is seen of the others."""

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError, OperationalError

from tailburn.engine.store.state.database import State, open_state
from tailburn.engine.store.state.lease import Lease, Standing, is_held, services
from tailburn.engine.store.state.models import LeaseRow
from tailburn.engine.store.state.place import place_of
from tests.postgres import Server

ONE, TWO = Standing("a:1", 60, 0.5), Standing("b:1", None, 0.0)


@pytest.fixture
def states(postgres: Server, tmp_path: Path) -> Iterator[tuple[State, State]]:
    """Of two services of one pair, each with a schema of its own."""
    with ExitStack() as stack:
        places = [place_of(tmp_path / n, postgres.url, tmp_path.name[-20:]) for n in ("a", "b")]
        opened = [open_state(place) for place in places]
        for state in opened:
            stack.callback(state.close)
        yield opened[0], opened[1]


def _holds(state: State, holder: str) -> bool:
    with state.writing(shared=True) as session:
        return is_held(session, holder) is not None


def _run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailburn.engine.store.state.lease.LASTS_S", 0.0)


def test_one_holds_it_and_the_other_stands_by(states: tuple[State, State]) -> None:
    one, two = Lease(states[0], "one"), Lease(states[1], "two")
    assert (one.renew(ONE), two.renew(TWO), one.renew(ONE)) == (1, None, 1)
    assert _holds(states[0], "one") and not _holds(states[1], "two")
    seen = services(states[1])
    assert [(s.id, s.standing, s.term) for s in seen] == [("one", ONE, 1), ("two", TWO, None)]
    assert all(0 <= s.silent_s < 60 for s in seen)


def test_what_ran_out_is_the_others_with_a_new_term(
    states: tuple[State, State], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Lease(states[0], "one"), Lease(states[1], "two")
    with monkeypatch.context() as patched:
        _run_out(patched)
        assert one.renew(ONE) == 1
    assert not _holds(states[0], "one"), "nothing is written by whose lease ran out"
    assert two.renew(TWO) == 2
    assert one.renew(ONE) is None
    assert _holds(states[1], "two")


def test_who_ends_lets_it_go(states: tuple[State, State]) -> None:
    one, two = Lease(states[0], "one"), Lease(states[1], "two")
    one.renew(ONE)
    two.let_go()
    assert one.renew(ONE) == 1, "what another has is not let go"
    one.let_go()
    assert two.renew(TWO) == 2
    assert [s.id for s in services(states[0])] == ["two"]


def test_a_holder_that_stalls_in_mid_write_is_undone_and_loses_it(
    states: tuple[State, State], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Lease(states[0], "one"), Lease(states[1], "two")
    monkeypatch.setattr("tailburn.engine.store.state.lease.LASTS_S", 0.5)
    one.renew(ONE)
    with pytest.raises(DBAPIError), states[0].writing(shared=True) as session:
        row = is_held(session, "one")
        assert row is not None
        row.taken_up_term = 7
        assert _after_tries(two) == 2
    with states[1].reading() as session:
        assert session.scalar(select(LeaseRow.taken_up_term)) == 0


def _after_tries(lease: Lease) -> int | None:
    """The term once the lease can be asked for."""
    for _ in range(3):
        with contextlib.suppress(OperationalError):
            return lease.renew(TWO)
    return None
