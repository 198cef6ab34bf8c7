"""Rows of a capture, by the commands a user would type: replay into a store, then requests."""

import json
import subprocess
import sys
from pathlib import Path

from bench.captures.case import Case
from bench.captures.judge import Verdict, judge
from bench.captures.rows import Row, live


class CommandFailed(Exception):
    """A command of ours ended badly. `str(error)` says which, and its last words."""


def judge_by_command(case: Case, captures: Path, work: Path) -> Verdict:
    """Replays one capture into a store of its own below `work` and judges what it says."""
    store = work / case.name
    _tailburn("replay", str(case.spans_folder(captures)), "--store", str(store))
    return judge(case, captures, rows_in(store), store)


def rows_in(store: Path) -> list[Row]:
    """The rows that stand in a store."""
    lines = _tailburn("requests", "--store", str(store), "--json").splitlines()
    return live(json.loads(line) for line in lines)


def _tailburn(*arguments: str) -> str:
    command = [sys.executable, "-m", "tailburn.app", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = "\n".join(done.stderr.splitlines()[-12:])
        raise CommandFailed(f"tailburn {' '.join(arguments)} ended with {done.returncode}\n{words}")
    return done.stdout
