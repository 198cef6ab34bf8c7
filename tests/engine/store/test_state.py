"""The state database: schema, permissions, transactions, and the rows of tokens."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from tailburn.engine.store.state.database import State, open_state, state_path
from tailburn.engine.store.state.models import Base, Token
from tailburn.engine.store.state.schema import NEWEST, StateError, alembic_config
from tailburn.engine.store.state.tokens import NameTaken, Tokens


def token(token_id: str, name: str, created_ns: int = 11) -> Token:
    return Token(
        id=token_id,
        name=name,
        tenant="acme",
        scopes="ingest read",
        hash=token_id.encode() * 2,
        created_ns=created_ns,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return state_path(tmp_path / "store")


@pytest.fixture
def state(path: Path) -> Iterator[State]:
    opened = open_state(path)
    yield opened
    opened.close()


def test_migrations_make_the_tables_of_the_models(state: State) -> None:
    with state.reading() as session:
        context = MigrationContext.configure(
            session.connection(), opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, Base.metadata) == []


def test_migrations_can_be_taken_back_to_nothing(state: State) -> None:
    with state.writing() as session:
        connection = session.connection()
        command.downgrade(alembic_config(connection), "base")
        assert inspect(connection).get_table_names() == ["alembic_version"]
        command.upgrade(alembic_config(connection), "head")


def test_the_newest_migration_is_the_one_that_a_start_looks_for(state: State) -> None:
    with state.reading() as session:
        config = alembic_config(session.connection())
    assert ScriptDirectory.from_config(config).get_current_head() == NEWEST


def test_a_start_with_nothing_to_migrate_does_not_load_alembic(path: Path) -> None:
    open_state(path).close()
    program = (
        "import sys; from pathlib import Path;"
        " from tailburn.engine.store.state.database import open_state;"
        " open_state(Path(sys.argv[1])).close(); sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)]).returncode == 0


def test_what_was_written_is_there_after_the_next_opening(path: Path) -> None:
    first = open_state(path)
    Tokens(first).add(token("0a", "ci"))
    first.close()

    second = open_state(path)
    assert [row.name for row in Tokens(second).all()] == ["ci"]
    second.close()


def test_a_schema_from_the_future_is_not_touched(path: Path) -> None:
    open_state(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StateError, match=r"state.sqlite: its schema '9999' is newer than this"):
        open_state(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_said_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"a letter to a friend, not a database" * 40)

    with pytest.raises(StateError, match="state.sqlite: file is not a database"):
        open_state(path)
    assert path.read_bytes().startswith(b"a letter")


def test_a_folder_in_the_way_is_said(path: Path) -> None:
    path.mkdir(parents=True)

    with pytest.raises(StateError, match="state.sqlite: can't be opened: Is a directory"):
        open_state(path)


def test_only_the_owner_can_read_the_database_and_its_side_files(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    os.chmod(path, 0o644)

    state = open_state(path)
    Tokens(state).add(token("0a", "ci"))

    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == [
        "state.sqlite",
        "state.sqlite-shm",
        "state.sqlite-wal",
    ]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    state.close()


def test_readers_go_on_while_somebody_writes(state: State) -> None:
    tokens = Tokens(state)
    tokens.add(token("0a", "ci"))

    with state.writing() as session:
        session.add(token("0b", "unfinished"))
        session.flush()
        assert [row.name for row in tokens.all()] == ["ci"]
    assert [row.name for row in tokens.all()] == ["ci", "unfinished"]


def test_writers_wait_for_each_other(state: State) -> None:
    tokens = Tokens(state)
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


def test_two_that_open_a_new_database_at_once_both_succeed(path: Path) -> None:
    opened: list[State] = []
    threads = [threading.Thread(target=lambda: opened.append(open_state(path))) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(opened) == 4
    for state in opened:
        assert Tokens(state).all() == []
        state.close()


def test_a_transaction_that_fails_leaves_nothing(state: State) -> None:
    with pytest.raises(ZeroDivisionError), state.writing() as session:
        session.add(token("0a", "ci"))
        session.flush()
        raise ZeroDivisionError

    assert Tokens(state).all() == []


def test_a_table_made_in_a_transaction_that_fails_is_gone(state: State) -> None:
    with pytest.raises(ZeroDivisionError), state.writing() as session:
        session.execute(text("CREATE TABLE half_done (id INTEGER)"))
        raise ZeroDivisionError

    with state.reading() as session:
        assert "half_done" not in inspect(session.connection()).get_table_names()


def test_a_name_is_taken_while_its_token_lives(state: State) -> None:
    tokens = Tokens(state)
    tokens.add(token("0a", "ci"))

    with pytest.raises(NameTaken, match="'ci' exists"):
        tokens.add(token("0b", "ci"))
    tokens.revoke("ci", 13)
    tokens.add(token("0c", "ci", created_ns=17))

    assert [(row.id, row.revoked_ns) for row in tokens.all()] == [("0a", 13), ("0c", None)]


def test_a_token_is_revoked_once_by_id_before_name(state: State) -> None:
    tokens = Tokens(state)
    tokens.add(token("0a", "ci"))
    tokens.add(token("0b", "0a", created_ns=12))

    first, second, third = (tokens.revoke("0a", now_ns) for now_ns in (21, 22, 23))

    assert first is not None and (first.id, first.revoked_ns) == ("0a", 21)
    assert second is not None and (second.id, second.revoked_ns) == ("0b", 22)
    assert third is None


def test_use_is_written_down_for_the_tokens_used(state: State) -> None:
    tokens = Tokens(state)
    for i, name in enumerate(("one", "two", "three")):
        tokens.add(token(f"0{i}", name, created_ns=i))

    tokens.mark_used({"00", "02"}, 31)

    assert [row.last_used_ns for row in tokens.all()] == [31, None, 31]
