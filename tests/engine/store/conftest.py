"""A state database of each kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailburn.engine.store.state.database import State
from tests.engine.store.homes import Home


@pytest.fixture(params=["sqlite", "postgresql"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """Nothing is there yet."""
    is_file = request.param == "sqlite"
    return Home(tmp_path / "store", "" if is_file else request.getfixturevalue("postgres").url)


@pytest.fixture
def database(home: Home) -> Iterator[State]:
    opened = home.open()
    yield opened
    opened.close()
