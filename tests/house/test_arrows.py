"""Imports go one way: app -> dashboards, alerts, collector, lab -> rules -> engine."""

from typing import Protocol

import pytest

MAY_IMPORT = {
    "engine": set(),
    "rules": {"engine"},
    "collector": {"engine"},
    "alerts": {"engine", "rules"},
    "dashboards": {"engine", "rules"},
    "lab": {"engine", "rules"},
    "app": {"engine", "rules", "collector", "alerts", "dashboards", "lab"},
}

# What reads files, databases, the network or the clock. `engine` has them in its store only.
IMPURE = {
    "alembic",
    "asyncio",
    "duckdb",
    "fastapi",
    "grpc",
    "httpx",
    "io",
    "os",
    "pathlib",
    "psycopg",
    "random",
    "shutil",
    "socket",
    "sqlalchemy",
    "sqlite3",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uvicorn",
}
PURE_OF_PYARROW = {"pyarrow.parquet", "pyarrow.fs", "pyarrow.dataset", "pyarrow.csv"}


class Import(Protocol):
    file: str
    module: str
    level: int


class House(Protocol):
    def imports(self, folder: str) -> list[Import]: ...


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT))
def test_a_folder_imports_only_what_lies_deeper(house: House, folder: str) -> None:
    allowed = MAY_IMPORT[folder] | {folder}
    wrong = [
        str(i)
        for i in house.imports(folder)
        if i.module.split(".")[0] == "tailburn" and i.module.split(".")[1] not in allowed
    ]
    assert not wrong


def test_the_engine_is_pure_outside_its_store(house: House) -> None:
    outside = [i for i in house.imports("engine") if not i.file.startswith("engine/store/")]
    wrong = [
        str(i)
        for i in outside
        if i.module.split(".")[0] in IMPURE
        or any(i.module.startswith(name) for name in PURE_OF_PYARROW)
    ]
    assert not wrong


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT))
def test_imports_are_absolute(house: House, folder: str) -> None:
    assert not [str(i) for i in house.imports(folder) if i.level]
