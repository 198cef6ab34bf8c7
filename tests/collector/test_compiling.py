"""Compiled code in the cache is as old as the oldest source that it was made of."""

import os
import subprocess
import sys
from pathlib import Path

CALLED = "from numba import njit\n\n\n@njit\ndef called() -> int:\n    return {}\n"
CALLER = """
from pathlib import Path
from called import called
from tailburn.collector.compiling import entries_of

entry = entries_of(Path(__file__).parent)

@entry
def caller() -> int:
    return called()

print(caller(), sum(caller.stats.cache_hits.values()))
"""


def answer(folder: Path, number: int) -> list[str]:
    """What the caller says in a process of its own, and how often the cache had it."""
    called = folder / "called.py"
    called.write_text(CALLED.format(number))
    os.utime(called, (1_600_000_000, 1_600_000_000))  # as every file of a wheel
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-B", str(folder / "caller.py")]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.split()


def test_what_an_entry_calls_is_never_older_than_its_source(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(CALLER)
    assert answer(tmp_path, 1) == ["1", "0"]
    assert answer(tmp_path, 1) == ["1", "1"]
    assert answer(tmp_path, 2) == ["2", "0"]
