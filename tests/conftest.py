"""What every test may ask for: programs outside Python, and the recorded captures."""

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.postgres import Server

# A first example may compile code, which takes as long as it takes.
settings.register_profile("tailburn", deadline=None)
settings.load_profile("tailburn")

# A shell has its background jobs ignore Ctrl-C, and so would every program that is started here.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / ".make" / "programs" / "usr" / "bin"


def find_program(name: str) -> str | None:
    """The path of a program, also of one that `make test` unpacked without installing it."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(PROGRAMS)])
    return shutil.which(name, path=path)


def _need(name: str) -> str:
    found = find_program(name)
    if found is not None:
        return found
    if os.environ.get("CI") == "true":
        pytest.fail(f"the program {name} is missing, and CI must run every test", pytrace=False)
    pytest.skip(f"the program {name} is missing")


@pytest.fixture(scope="session")
def need_program() -> Callable[[str], str]:
    """Call it with a program's name: its path, or a skip (under CI=true: a failure)."""
    return _need


@pytest.fixture(scope="session")
def postgres() -> "Iterator[Server]":
    """A PostgreSQL server for all tests of this process; none may stop it."""
    from tests.postgres import server

    with server(_need("initdb")) as started:
        yield started


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Packed bytes name no case: they hold the time, and each core collects the tests anew."""
    return argname if isinstance(val, bytes) and not val.isascii() else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """`@pytest.mark.program("node")` needs what `need_program("node")` needs."""
    for marker in item.iter_markers("program"):
        for name in marker.args:
            _need(name)


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of captures and data that is too large for the repository."""
    folder = Path(os.environ.get("TAILBURN_SHARED", ROOT.parent / "shared"))
    if not (folder / "captures").is_dir():
        pytest.skip(f"no captures in {folder}; set TAILBURN_SHARED")
    return folder
