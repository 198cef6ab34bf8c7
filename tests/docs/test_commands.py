"""Every command in a `console` or `sh` block of the README and the docs, run as it stands.

They run in a folder of their own with a replayed store, the capture as `recorded/`, the rules
of docs/hops.md as `our-hops.yaml`. Addresses of a service are those of one on free ports.
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

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
CAPTURE = ROOT / "app" / "demo" / "vllm-0.32.0.tar.gz"

_BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```", re.M | re.S)
_RULES = re.compile(r"^```yaml\n(# our-hops\.yaml.*?)^```", re.M | re.S)
_USUAL_ADDRESSES = {"127.0.0.1:4318": "OTLP/HTTP", "127.0.0.1:9464": "web"}

pytestmark = pytest.mark.timeout(600)


def commands() -> Iterator[tuple[str, str]]:
    """(page, command); in a console block the lines after `$ `, in a sh block every line."""
    for page in PAGES:
        for kind, text in _BLOCK.findall(page.read_text()):
            for line in text.splitlines():
                line = line.partition("  # ")[0].strip()
                if kind == "sh" and line and not line.startswith("#"):
                    yield page.name, line
                elif line.startswith("$ "):
                    yield page.name, line[2:]


COMMANDS = sorted(set(commands()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands run: all that the docs speak of is there."""
    here = tmp_path_factory.mktemp("docs")
    with tarfile.open(CAPTURE) as archive:
        archive.extractall(here, filter="data")
    (here / "vllm-0.32.0").rename(here / "recorded")
    rules = _RULES.search((ROOT / "docs" / "hops.md").read_text())
    assert rules is not None
    (here / "our-hops.yaml").write_text(rules[1])
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


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{p}: {c}" for p, c in COMMANDS])
def test_a_command_of_the_docs_runs(
    page: str,
    command: str,
    folder: Path,
    bin_folder: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    if command.startswith("make "):
        _run(f"make --dry-run {command.removeprefix('make ')}", ROOT)
    elif command.startswith("tailburn serve"):
        flags = shlex.split(command)[2:]
        shutil.copy(folder / "our-hops.yaml", tmp_path)
        with serving(tmp_path / "store", *flags) as running:
            assert running.stop() == 0
    elif any(address in command for address in _USUAL_ADDRESSES):
        service = request.getfixturevalue("service")
        for usual, name in _USUAL_ADDRESSES.items():
            command = command.replace(usual, service.addresses[name].removeprefix("http://"))
        _run(command, folder, bin_folder)
    else:
        _run(command, folder, bin_folder)


def test_there_are_commands_to_run() -> None:
    assert len(COMMANDS) > 10


def _run(command: str, folder: Path, bin_folder: Path | None = None) -> None:
    known = environment()
    if bin_folder is not None:
        known["PATH"] = os.pathsep.join([str(bin_folder), known["PATH"]])
    ended = subprocess.run(
        command, shell=True, cwd=folder, env=known, capture_output=True, text=True
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
