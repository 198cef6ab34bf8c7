"""What the doctor says of the state database: whether it answers, and which schema it has."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tailburn.engine.store.state.address import schema_in
from tailburn.engine.store.state.database import open_state, state_path
from tailburn.engine.store.state.place import place_of
from tailburn.engine.store.state.schema import NEWEST
from tests.app.conftest import Run
from tests.postgres import Server


def findings(run: Run, store: Path, url: str = "") -> list[dict[str, Any]]:
    ports = ("--http-port", 0, "--grpc-port", 0, "--web-port", 0)
    told = run("doctor", "--json", *ports, "--store", store, "--state-url", url)
    rows = [json.loads(line) for line in told.out.splitlines()]
    return [row for row in rows if row["subject"] == "state database"]


def set_version(store: Path, version: str) -> None:
    state = open_state(state_path(store))
    with state.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = :v"), {"v": version})
    state.close()


def test_a_file_is_told_with_its_schema_and_nothing_is_made(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "store"
    (none,) = findings(run, store)
    assert (none["state"], none["seen"]) == ("no data", "none yet")
    assert not store.exists()

    open_state(state_path(store)).close()

    (found,) = findings(run, store)
    seen = f"{store}/state.sqlite, schema {NEWEST}"
    assert (found["state"], found["seen"]) == ("ok", seen)


@pytest.mark.parametrize(
    ("version", "state", "todo"),
    [("0002", "ok", "the next start brings it up to date"), ("9999", "bad", "start that version")],
)
def test_a_schema_of_another_version_is_told_and_left_alone(
    run: Run, tmp_path: Path, version: str, state: str, todo: str
) -> None:
    set_version(tmp_path, version)
    for _ in range(2):
        (found,) = findings(run, tmp_path)
        assert (found["state"], found["todo"]) == (state, todo)
        assert version in found["seen"] and NEWEST in found["seen"]


def test_a_server_is_told_with_the_schema_of_this_store(
    run: Run, tmp_path: Path, postgres: Server
) -> None:
    store = tmp_path / "store"
    (none,) = findings(run, store, postgres.url)
    assert none["state"] == "no data" and "no tables of this store yet" in none["seen"]
    assert not store.exists()

    open_state(place_of(store, postgres.url)).close()

    (found,) = findings(run, store, postgres.url)
    assert found["state"] == "ok" and "answers in " in found["seen"]
    assert found["seen"].endswith(f" ms, schema {schema_in(store)} {NEWEST}")
    assert found["seen"].startswith("postgresql://tailburn@/")


def test_a_file_that_a_server_has_replaced_is_told(
    run: Run, tmp_path: Path, postgres: Server
) -> None:
    open_state(state_path(tmp_path)).close()
    _, left = findings(run, tmp_path, postgres.url)
    assert left["state"] == "warn" and "is not used while state_url is set" in left["seen"]


def test_a_server_that_does_not_answer_is_bad(run: Run, tmp_path: Path) -> None:
    (found,) = findings(run, tmp_path, "postgresql://me:hidden@127.0.0.1:1/db")
    assert found["state"] == "bad" and "refused" in found["seen"]
    assert "postgresql://me@127.0.0.1:1/db" in found["seen"] and "hidden" not in found["seen"]
