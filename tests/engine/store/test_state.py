"""The state database of each kind: transactions, and the rows of tokens."""

import threading

import pytest
from sqlalchemy import inspect, text

from tailburn.engine.store.state.database import State
from tailburn.engine.store.state.models import Token
from tailburn.engine.store.state.tokens import NameTaken, Tokens
from tests.engine.store.homes import Home


def token(token_id: str, name: str, created_ns: int = 11) -> Token:
    return Token(
        id=token_id,
        name=name,
        tenant="acme",
        scopes="ingest read",
        hash=token_id.encode() * 2,
        created_ns=created_ns,
    )


def test_what_was_written_is_there_after_the_next_opening(home: Home) -> None:
    first = home.open()
    Tokens(first).add(token("0a", "ci"))
    first.close()

    second = home.open()
    assert [row.name for row in Tokens(second).all()] == ["ci"]
    second.close()


def test_readers_go_on_while_somebody_writes(database: State) -> None:
    tokens = Tokens(database)
    tokens.add(token("0a", "ci"))

    with database.writing() as session:
        session.add(token("0b", "unfinished"))
        session.flush()
        assert [row.name for row in tokens.all()] == ["ci"]
    assert [row.name for row in tokens.all()] == ["ci", "unfinished"]


def test_writers_wait_for_each_other(database: State) -> None:
    tokens = Tokens(database)
    names = [f"name-{i}" for i in range(20)]
    threads = [
        threading.Thread(target=tokens.add, args=(token(f"{i:02x}", name),))
        for i, name in enumerate(names)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(row.name for row in tokens.all()) == sorted(names)


def test_two_that_open_a_new_database_at_once_both_succeed(home: Home) -> None:
    opened: list[State] = []
    threads = [threading.Thread(target=lambda: opened.append(home.open())) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(opened) == 4
    for database in opened:
        assert Tokens(database).all() == []
        database.close()


def test_a_transaction_that_fails_leaves_nothing(database: State) -> None:
    with pytest.raises(ZeroDivisionError), database.writing() as session:
        session.add(token("0a", "ci"))
        session.flush()
        raise ZeroDivisionError

    assert Tokens(database).all() == []


def test_a_table_made_in_a_transaction_that_fails_is_gone(database: State) -> None:
    with pytest.raises(ZeroDivisionError), database.writing() as session:
        session.execute(text("CREATE TABLE half_done (id INTEGER)"))
        raise ZeroDivisionError

    with database.reading() as session:
        assert "half_done" not in inspect(session.connection()).get_table_names()


def test_a_name_is_taken_while_its_token_lives(database: State) -> None:
    tokens = Tokens(database)
    tokens.add(token("0a", "ci"))

    with pytest.raises(NameTaken, match="'ci' exists"):
        tokens.add(token("0b", "ci"))
    tokens.revoke("ci", 13)
    tokens.add(token("0c", "ci", created_ns=17))

    assert [(row.id, row.revoked_ns) for row in tokens.all()] == [("0a", 13), ("0c", None)]


def test_a_token_is_revoked_once_by_id_before_name(database: State) -> None:
    tokens = Tokens(database)
    tokens.add(token("0a", "ci"))
    tokens.add(token("0b", "0a", created_ns=12))

    first, second, third = (tokens.revoke("0a", now_ns) for now_ns in (21, 22, 23))

    assert first is not None and (first.id, first.revoked_ns) == ("0a", 21)
    assert second is not None and (second.id, second.revoked_ns) == ("0b", 22)
    assert third is None


def test_use_is_written_down_for_the_tokens_used(database: State) -> None:
    tokens = Tokens(database)
    for i, name in enumerate(("one", "two", "three")):
        tokens.add(token(f"0{i}", name, created_ns=i))

    tokens.mark_used({"00", "02"}, 31)

    assert [row.last_used_ns for row in tokens.all()] == [31, None, 31]
