"""One service per store: the lock, and who holds it."""

import fcntl
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec


class StoreInUse(Exception):
    """Another process holds the store. `str(error)` says which, since when."""


class Holder(msgspec.Struct):
    """What the lock file tells."""

    pid: int
    started_ns: int

    def __str__(self) -> str:
        started = datetime.fromtimestamp(self.started_ns // 1_000_000_000, UTC)
        return f"process {self.pid}, started {started:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True)
class StoreLock:
    """Held until `release` or the end of the process, however it ends."""

    fd: int

    def release(self) -> None:
        # The file stays: were it removed, two could hold a lock of this name.
        os.close(self.fd)


def lock_store(store: Path, started_ns: int) -> StoreLock:
    """Takes the lock of a store, which is made if it isn't there. Raises `StoreInUse`."""
    store.mkdir(parents=True, exist_ok=True)
    path = store / "lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = holder_of(store) or "another process"
        os.close(fd)
        raise StoreInUse(
            f"{store} is in use by {holder}: stop it, or give this service another store"
        ) from error
    os.ftruncate(fd, 0)
    os.pwrite(fd, msgspec.json.encode(Holder(os.getpid(), started_ns)) + b"\n", 0)
    return StoreLock(fd)


def holder_of(store: Path) -> Holder | None:
    """Who last wrote into the lock of a store that he has it; he may be gone by now."""
    try:
        return msgspec.json.decode((store / "lock").read_bytes(), type=Holder)
    except (FileNotFoundError, msgspec.DecodeError):  # or has the lock and not said so yet
        return None
