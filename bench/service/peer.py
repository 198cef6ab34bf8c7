"""A peer to stand beside: Rotel, an OTLP collector in Rust, into its `blackhole`.

It receives and decodes, and then throws away: no log, no stitching, no rows.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.service.running import Process

REQUIREMENT: Final = "rotel==0.0.1a15"
_STARTED_WITHIN_S: Final = 15.0


class CannotRun(Exception):
    """Why the peer can't be measured here."""


@contextmanager
def peer(tools: Path) -> Iterator[tuple[Process, int]]:
    """The running peer and its port for OTLP/HTTP. Installed under `tools` the first time.

    Raises CannotRun.
    """
    agent, ports = _installed(tools), [_free_port(), _free_port()]
    command = [
        str(agent), "start", "--exporter", "blackhole",
        "--otlp-http-endpoint", f"127.0.0.1:{ports[0]}",
        "--otlp-grpc-endpoint", f"127.0.0.1:{ports[1]}",
        "--pid-file", str(tools / "rotel.pid"), "--log-file", str(tools / "rotel.log"),
    ]  # fmt: skip
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        raise CannotRun(f"{agent.name} does not start: {error}") from error
    try:
        _until_listening(process, ports[0])
        yield Process(process.pid), ports[0]
    finally:
        process.terminate()
        process.wait()


def _installed(tools: Path) -> Path:
    venv = tools / "rotel"
    if not (venv / "bin/python").exists():
        _run([sys.executable, "-m", "venv", str(venv)])
    if not (found := _agent(venv)):
        _run([str(venv / "bin/python"), "-m", "pip", "install", "--quiet", REQUIREMENT])
        found = _agent(venv)
    if not found:
        raise CannotRun(f"{REQUIREMENT} has no agent for this machine")
    return found[0]


def _agent(venv: Path) -> list[Path]:
    return list(venv.glob("lib/*/site-packages/rotel/rotel-agent"))


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last_line = done.stderr.strip().rpartition("\n")[2]
        raise CannotRun(f"{REQUIREMENT} can't be installed: {last_line}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _until_listening(process: "subprocess.Popen[bytes]", port: int) -> None:
    give_up_s = time.monotonic() + _STARTED_WITHIN_S
    while time.monotonic() < give_up_s and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    process.kill()
    said = process.stdout.read().decode(errors="replace").strip() if process.stdout else ""
    raise CannotRun(f"it does not listen: {said.rpartition(chr(10))[2] or 'no word from it'}")
