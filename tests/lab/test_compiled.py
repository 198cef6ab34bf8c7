"""Compiled code runs what the files say, also what it took in from other files."""

import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "constants.py": "SHIFT = 100\n",
    "inner.py": """
from tailburn.lab.compiled import inlined

@inlined
def inner(x):
    return x + 1
""",
    "middle.py": """
from inner import inner
from tailburn.lab.compiled import compiled

@compiled
def middle(x):
    return 2 * inner(x)
""",
    "outer.py": """
from constants import SHIFT
from middle import middle
from tailburn.lab.compiled import compiled

@compiled
def outer(x):
    return further(x) + SHIFT

@compiled
def further(x):
    return middle(x)

print(outer(10), sum(outer.stats.cache_hits.values()))
""",
}


def _run(folder: Path) -> tuple[int, int]:
    """What the code returns in a process of its own, and how often its cache was hit."""
    command = [sys.executable, "-B", "outer.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    result, hits = done.stdout.split()
    return int(result), int(hits)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def _change(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def test_what_has_not_changed_is_not_compiled_again(folder: Path) -> None:
    assert _run(folder) == (122, 0)
    assert _run(folder) == (122, 1)


def test_a_change_two_files_away_is_compiled_in(folder: Path) -> None:
    assert _run(folder) == (122, 0)
    _change(folder / "inner.py", "x + 1", "x + 3")
    assert _run(folder) == (126, 0)


def test_a_constant_of_another_file_is_compiled_in(folder: Path) -> None:
    assert _run(folder) == (122, 0)
    _change(folder / "constants.py", "100", "700")
    assert _run(folder) == (722, 0)
