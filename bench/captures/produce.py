"""Rows of a capture, by the commands a user would type: replay into a store, then requests."""

import json
from pathlib import Path

from typer.testing import CliRunner

from bench.captures.case import Case
from bench.captures.judge import Verdict, judge
from bench.captures.rows import Row, live
from tailburn.app.cli import cli


class CommandFailed(Exception):
    """A command of ours ended badly. `str(error)` says which, and why."""


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
    """Runs a command in this process, which has the compiled code loaded."""
    done = CliRunner().invoke(cli, arguments)
    if done.exit_code:
        words = done.exception if done.exit_code == 1 and done.exception else done.stderr
        raise CommandFailed(f"tailburn {' '.join(arguments)}: {words}") from done.exception
    return done.stdout
