"""The state on a PostgreSQL server: whose it is, and what happens while it is away."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError

from tailburn.engine.evaluation import AlertKey, State, Status
from tailburn.engine.store.state import patience
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import State as Database
from tailburn.engine.store.state.database import open_state, version_at
from tailburn.engine.store.state.place import is_begun, place_of, place_to_look_at
from tailburn.engine.store.state.schema import NEWEST, StateError
from tailburn.engine.store.state.shown import SeriesKey, Shown
from tailburn.engine.store.state.tokens import Tokens
from tests.engine.store.homes import Home
from tests.engine.store.test_state import token
from tests.postgres import Server, server


@pytest.fixture
def home(postgres: Server, tmp_path: Path) -> Home:
    return Home(tmp_path / "store", postgres.url)


@pytest.fixture
def own(need_program: Callable[[str], str]) -> Iterator[Server]:
    """A server that a test may stop, and that keeps what it says it keeps."""
    with server(need_program("initdb"), is_durable=True) as started:
        yield started


def test_two_stores_with_the_same_settings_share_nothing(postgres: Server, tmp_path: Path) -> None:
    first, second = (Home(tmp_path / name, postgres.url).open() for name in ("first", "second"))

    Tokens(first).add(token("0a", "ci"))
    Alerts(first).write(60, {}, {}, [])

    assert Tokens(second).all() == []
    assert Alerts(second).standing().minute_ns is None
    first.close()
    second.close()


def test_a_store_that_moved_finds_its_state_again(home: Home, tmp_path: Path) -> None:
    database = home.open()
    Tokens(database).add(token("0a", "ci"))
    database.close()

    shutil.move(home.store, tmp_path / "moved")

    database = Home(tmp_path / "moved", home.url).open()
    assert [row.name for row in Tokens(database).all()] == ["ci"]
    database.close()


def test_looking_makes_neither_an_id_nor_a_schema(home: Home) -> None:
    assert version_at(place_to_look_at(home.store, home.url)) is None
    assert not is_begun(home.store, home.url) and not home.store.exists()

    home.open().close()

    assert is_begun(home.store, home.url)
    assert version_at(place_to_look_at(home.store, home.url)) == NEWEST


def test_an_id_that_was_damaged_is_said(home: Home) -> None:
    home.store.mkdir()
    (home.store / "state-id").write_text("'; DROP SCHEMA public")
    with pytest.raises(StateError, match="state-id: holds no id; restore it, or remove it"):
        home.open()


def test_a_schema_that_the_owner_made_serves_a_user_who_may_make_none(
    postgres: Server, tmp_path: Path
) -> None:
    place = place_of(tmp_path, postgres.url.replace("tailburn@", "guest@"))
    assert not isinstance(place, Path)
    with postgres.connect() as owner:
        owner.execute("CREATE ROLE guest LOGIN")
        with pytest.raises(StateError, match="permission denied for database"):
            open_state(place)
        owner.execute(f"CREATE SCHEMA {place.schema} AUTHORIZATION guest")
    open_state(place).close()


def test_a_value_of_any_length_tells_a_series_apart(home: Home) -> None:
    database = home.open()
    long = "".join(chr(0x4E00 + i * 7919 % 20_000) for i in range(4096))
    keys = [
        AlertKey("TailburnBudgetBurn", "chat", "availability", "page", "1h", "5m", by)
        for by in ((("model", long + "a"),), (("model", long + "b\0"),))
    ]
    states = {key: State(Status.FIRING, 60, 60, 0.5, "bad") for key in keys}
    series = [SeriesKey("chat", "availability", "0badcafe", key.by) for key in keys]

    for minute_ns in (60, 120):
        Alerts(database).write(minute_ns, {}, states, [])
        Shown(database).add(series, minute_ns)

    assert Alerts(database).standing().states == states
    assert Shown(database).all() == set(series)
    database.close()


def test_a_reader_sees_one_moment_and_may_not_write(home: Home) -> None:
    database = home.open()
    with database.reading() as session:
        count = text("SELECT count(*) FROM tokens")
        assert session.scalar(count) == 0
        Tokens(database).add(token("0a", "ci"))
        assert session.scalar(count) == 0
    with pytest.raises(DBAPIError, match="read-only"), database.reading() as session:
        session.add(token("0b", "cd"))
    database.close()


def test_a_writer_that_waits_too_long_for_another_gives_up(home: Home) -> None:
    one, two = home.open(), home.open()
    with one.writing() as session:
        session.add(token("0a", "ci"))
        session.flush()
        began_s = time.monotonic()
        with pytest.raises(OperationalError, match="lock timeout"):
            Tokens(two).add(token("0b", "cd"))
        waited_s = time.monotonic() - began_s
    assert 0.9 * patience.BUSY_TIMEOUT_S < waited_s < patience.BUSY_TIMEOUT_S + 5
    Tokens(two).add(token("0b", "cd"))
    assert len(Tokens(one).all()) == 2
    one.close()
    two.close()


def test_more_who_ask_at_once_than_connections_wait_and_then_fail_alike(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailburn.engine.store.state.postgres.BUSY_TIMEOUT_S", 0.2)
    monkeypatch.setattr("tailburn.engine.store.state.postgres.MOST_OPEN", 2)
    database = home.open()
    with database.reading() as one, database.reading() as two:
        one.connection()
        two.connection()
        with pytest.raises(OperationalError, match="limit"):
            Tokens(database).all()
    assert Tokens(database).all() == []
    database.close()


def test_a_server_that_went_away_and_came_back_is_found_again(own: Server, tmp_path: Path) -> None:
    database = Home(tmp_path, own.url).open()
    Tokens(database).add(token("0a", "ci"))

    own.stop()
    for ask in (Tokens(database).all, lambda: Tokens(database).add(token("0b", "cd"))):
        with pytest.raises(OperationalError):
            ask()
    own.start()

    assert [row.name for row in Tokens(database).all()] == ["ci"]
    database.close()


def test_a_server_that_restarts_between_two_questions_is_not_noticed(
    own: Server, tmp_path: Path
) -> None:
    database = Home(tmp_path, own.url).open()
    Tokens(database).add(token("0a", "ci"))

    own.stop()
    own.start()

    Tokens(database).add(token("0b", "cd"))
    assert len(Tokens(database).all()) == 2
    database.close()


def test_a_transaction_that_loses_its_server_is_undone(own: Server, tmp_path: Path) -> None:
    database = Home(tmp_path, own.url).open()

    with pytest.raises(DBAPIError), database.writing() as session:
        session.add(token("0a", "ci"))
        session.flush()
        own.kill()
    own.start()

    assert Tokens(database).all() == []
    database.close()


def test_a_server_that_says_nothing_is_given_up(
    own: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailburn.engine.store.state.postgres.SILENT_S", 1.0)
    database: Database = Home(tmp_path, own.url).open()
    Tokens(database).add(token("0a", "ci"))

    own.tell(SIGSTOP)
    began_s = time.monotonic()
    with pytest.raises(OperationalError):
        Tokens(database).all()
    waited_s = time.monotonic() - began_s
    own.tell(SIGCONT)

    assert waited_s < 1 + patience.CONNECT_S + 5
    assert [row.name for row in Tokens(database).all()] == ["ci"]
    database.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:secret@h:port/db",
        "mysql://u:secret@h/db",
        "postgresql://u:secret@h",
        "secret",
    ],
)
def test_an_address_that_is_none_is_told_without_its_secret(url: str, tmp_path: Path) -> None:
    with pytest.raises(StateError) as told:
        place_of(tmp_path, url)
    assert str(told.value) == "state_url: want postgresql://USER@HOST:PORT/DATABASE"


def test_a_server_that_can_not_be_reached_is_told_without_the_secret(tmp_path: Path) -> None:
    url = "postgresql://me:secret@127.0.0.1:1/db?password=secret&sslmode=disable"
    place = place_of(tmp_path, url)
    with pytest.raises(StateError, match="postgresql://me@127.0.0.1:1/db: .*refused") as told:
        open_state(place)
    assert "secret" not in f"{told.value} {told.value!r} {place!r} {place}"
