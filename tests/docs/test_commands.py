"""Every command in a `console` or `sh` block of the README and the docs, run as it stands.

They run in a folder of their own with a replayed store, the capture as `recorded/`, and each
block that begins with its name, such as `# our-hops.yaml` or `# engine.prom`. What a console
block shows below a command is what the command prints, `...` for lines left out. Addresses of a
service are those of one on free ports.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.service import COMMAND, Running, environment, serving
from tests.conftest import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
CAPTURE = ROOT / "app" / "demo" / "vllm-0.32.0.tar.gz"

_BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```", re.M | re.S)
_FILE = re.compile(r"^```(?:yaml|text)\n(# ([\w-]+\.(?:yaml|prom))$.*?)^```", re.M | re.S)
_USUAL_ADDRESSES = {"127.0.0.1:4318": "OTLP/HTTP", "127.0.0.1:9464": "web"}

pytestmark = pytest.mark.timeout(600)


def commands() -> Iterator[tuple[str, str, str]]:
    """(page, command, what is shown below it); in an sh block every line is a command."""
    for page in PAGES:
        for kind, text in _BLOCK.findall(page.read_text()):
            if kind == "console":
                yield from ((page.name, *asked) for asked in _asked(text))
            else:
                lines = (_command(line) for line in text.splitlines() if not line.startswith("#"))
                yield from ((page.name, line, "") for line in lines if line)


def files() -> Iterator[tuple[str, str]]:
    """(name, text) of each file that a page shows."""
    for page in PAGES:
        for text, name in _FILE.findall(page.read_text()):
            yield name, text


def _asked(console: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", console, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        yield _command(command), shown.strip("\n")


def _command(line: str) -> str:
    return line.partition("  # ")[0].strip()


COMMANDS = sorted(set(commands()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands run: all that the docs speak of is there."""
    here = tmp_path_factory.mktemp("docs")
    with tarfile.open(CAPTURE) as archive:
        archive.extractall(here, filter="data")
    (here / "vllm-0.32.0").rename(here / "recorded")
    for name, text in files():
        assert not (here / name).exists(), f"{name} is shown twice"
        (here / name).write_text(text)
    _run(f"{shlex.join(COMMAND)} replay recorded/", here)
    return here


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `tailburn` to be found on the path."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "tailburn"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    script.chmod(0o755)
    (folder / "python").symlink_to(sys.executable)
    return folder


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """What answers at the addresses that the docs name."""
    with serving(tmp_path_factory.mktemp("docs-service") / "store") as running:
        yield running


@pytest.mark.parametrize(
    ("page", "command", "shown"), COMMANDS, ids=[f"{p}: {c}" for p, c, _ in COMMANDS]
)
def test_a_command_of_the_docs_runs(
    page: str,
    command: str,
    shown: str,
    folder: Path,
    bin_folder: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    if command.startswith("tailburn rules test"):
        request.getfixturevalue("need_program")("promtool")
    if command.startswith("make "):
        _run(f"make --dry-run {command.removeprefix('make ')}", ROOT)
    elif command.startswith("tailburn serve"):
        flags = shlex.split(command)[2:]
        for name, _ in files():
            shutil.copy(folder / name, tmp_path)
        with serving(tmp_path / "store", *flags) as running:
            assert running.stop() == 0
    elif any(address in command for address in _USUAL_ADDRESSES):
        service = request.getfixturevalue("service")
        for usual, name in _USUAL_ADDRESSES.items():
            command = command.replace(usual, service.addresses[name].removeprefix("http://"))
        _run(command, folder, bin_folder)
    else:
        printed = _run(command, folder, bin_folder)
        if shown:
            assert _pattern(shown).fullmatch(_plain(printed)), f"{command}\n{printed}"


def test_there_are_commands_to_run() -> None:
    assert len(COMMANDS) > 10


def _plain(text: str) -> str:
    """Lines without what no reader sees: spaces at their ends, empty lines around them."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"


def _pattern(shown: str) -> re.Pattern[str]:
    """What a command must print: a line of `...` stands for any number of lines."""
    lines = _plain(shown).splitlines()
    return re.compile(
        "".join("(?:.*\n)*" if line == "..." else f"{re.escape(line)}\n" for line in lines)
    )


def _run(command: str, folder: Path, bin_folder: Path | None = None) -> str:
    """Run it and give what it prints; it must end with 0."""
    known = environment()
    if bin_folder is not None:
        known["PATH"] = os.pathsep.join([str(bin_folder), known["PATH"], str(PROGRAMS)])
    ended = subprocess.run(
        command, shell=True, cwd=folder, env=known, capture_output=True, text=True
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
    return ended.stdout
