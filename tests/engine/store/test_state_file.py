"""The state in an SQLite file: whose it is, and what lies in its place."""

import os
import stat
from pathlib import Path

import pytest

from tailburn.engine.store.state.database import open_state, state_path
from tailburn.engine.store.state.schema import StateError
from tailburn.engine.store.state.tokens import Tokens
from tests.engine.store.test_state import token


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return state_path(tmp_path / "store")


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
