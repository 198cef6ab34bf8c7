"""The command line itself: quick help, one-line errors."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from tailburn.app.cli import cli
from tests.app.conftest import Run

COMMANDS = (
    "balance", "demo", "doctor", "hops", "replay", "requests", "serve", "tails", "token", "trace",
)  # fmt: skip
HEAVY = ("duckdb", "grpc", "numba", "numpy", "pyarrow", "pydantic", "sqlalchemy")


def test_help_names_every_command(run: Run) -> None:
    shown = run("--help").out
    assert [name for name in COMMANDS if name not in shown] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run: Run, command: str) -> None:
    answer = run(command, "--help")
    assert answer.code == 0 and len(answer.out.splitlines()) > 6


def _commands(command: object, name: str) -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    """Each that does something, by its whole name."""
    if isinstance(command, TyperGroup):
        if command.invoke_without_command:
            yield name, command
        for own, below in command.commands.items():
            yield from _commands(below, f"{name} {own}")
    elif isinstance(command, TyperCommand):
        yield name, command


LEAVES = dict(_commands(get_command(cli), "tailburn"))


@pytest.mark.parametrize("name", LEAVES)
def test_help_shows_a_call_that_is_taken(name: str) -> None:
    examples = re.findall(rf"^{name}(?: .*)?$", LEAVES[name].help or "", re.MULTILINE)
    assert examples
    for example in examples:
        arguments = shlex.split(example, posix=True)[len(name.split()) :]
        LEAVES[name].make_context(name, arguments)


def test_help_loads_nothing_that_only_commands_need() -> None:
    code = (
        "import sys; from tailburn.app.__main__ import main\n"
        "sys.argv = ['tailburn', '--help']\n"
        "try: main()\n"
        f"finally: print(sorted(set({HEAVY}) & set(sys.modules)), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stderr.strip() == "[]"


def test_a_bad_setting_ends_a_command_with_one_line_each(run: Run) -> None:
    answer = run("serve", "--http-port", "x", "--clock", "sun")
    assert answer.code == 2 and answer.out == ""
    assert answer.err.splitlines() == [
        "tailburn: --http-port='x': want a whole number from 0 to 65535",
        "tailburn: --clock='sun': want one of wall, telemetry",
    ]


def test_replay_takes_a_store_or_an_address(run: Run) -> None:
    answer = run("replay", "x", "--store", "y", "--to", "http://z")
    assert (answer.code, answer.err) == (2, "tailburn: replay takes --store or --to, not both\n")
    assert "no such file" in run("replay", "x", "--to", "http://z").err
    assert "want a number above 0" in run("replay", "x", "--to", "http://z", "--speed", "-1").err
