"""A PostgreSQL server of the tests' own, on a socket in a folder that goes with it."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGINT, SIGKILL, Signals
from typing import Any, Final

import psycopg

PATIENCE_S: Final = 120.0

_USUAL: Final = """
listen_addresses = ''
max_connections = 60
shared_buffers = 16MB
jit = off
"""
_HASTY: Final = """
fsync = off
synchronous_commit = off
full_page_writes = off
"""


class Server:
    """Can be stopped, killed, frozen and started again on the same data."""

    def __init__(self, initdb: str, folder: Path, *, is_durable: bool = False) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._programs = _reachable(Path(initdb), folder)
        self._run(
            "initdb",
            "-D",
            self._data,
            "-U",
            "tailburn",
            "-A",
            "trust",
            "-N",
            "-E",
            "UTF8",
            "--locale",
            "C",
        )
        with (self._data / "postgresql.conf").open("a") as written:
            written.write(f"{_USUAL}unix_socket_directories = '{folder}'\n")
            written.write("" if is_durable else _HASTY)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def folder(self) -> Path:
        """Where its socket lies."""
        return self._folder

    @property
    def url(self) -> str:
        """As the setting `state_url` has it."""
        return f"postgresql://tailburn@/postgres?host={self._folder}"

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data],
                stdout=log, stderr=log, start_new_session=True, **_as_nobody(),
            )  # fmt: skip
        give_up_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < give_up_s, (self._folder / "log").read_text()
                time.sleep(0.05)

    def stop(self) -> None:
        """As an operator stops it: connections are cut, and what was committed stays."""
        self._end(SIGINT)

    def kill(self) -> None:
        """As a power cut does, to it and to all that it started."""
        assert self._process is not None
        self.tell(SIGKILL)
        self._process.wait(PATIENCE_S)
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def tell(self, number: Signals) -> None:
        """To all its processes: SIGSTOP freezes it, SIGCONT wakes it."""
        assert self._process is not None
        for child in (self._process.pid, *_children(self._process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)

    def _end(self, number: Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, **_as_nobody())
        assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def server(initdb: str, *, is_durable: bool = False) -> Iterator[Server]:
    """Started, and gone at the end with all that it knew."""
    folder = Path(tempfile.mkdtemp(prefix="tb-pg-"))  # short: a socket's path has 107 bytes
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, *_nobody())
    started = None
    try:
        started = Server(initdb, folder, is_durable=is_durable)
        yield started
    finally:
        if started is not None:
            started.stop()
        shutil.rmtree(folder)


def _nobody() -> tuple[int, int]:
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid


def _as_nobody() -> dict[str, Any]:
    """The server refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    uid, gid = _nobody()
    return {"user": uid, "group": gid, "extra_groups": [], "cwd": "/"}


def _reachable(initdb: Path, folder: Path) -> Path:
    """The folder of the programs; a copy where they lie in a home that nobody may look into."""
    programs = initdb.resolve().parent
    with contextlib.suppress(PermissionError):
        subprocess.run([programs / "initdb", "--version"], capture_output=True, **_as_nobody())
        return programs
    shutil.copytree(programs.parent, folder / "programs", symlinks=True)
    return folder / "programs" / programs.name


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in tasks.read_text().split()] if tasks.exists() else []
