"""Results kept as lines, one a run, so that what was begun can be gone on with."""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class KeptError(ValueError):
    """Lines that cannot be gone on with: says what differs, and what to do."""


class Kept:
    """A file of lines: settings first, then a run each. Many processes may add to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, settings: dict[str, Any]) -> set[str]:
        """The keys of runs that are there; KeptError when they were made in another way."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.is_file() or not self.path.stat().st_size:
            self.add({"settings": settings})
            return set()
        self._cut_torn_end()
        lines = self._lines()
        before = next(lines, {}).get("settings")
        # As it reads back: a tuple is a list then.
        if before != json.loads(json.dumps(settings)):
            raise KeptError(
                f"{self.path}: made with {before}, not with {settings}; name another OUT=, "
                "or delete it"
            )
        return {line["cell"] for line in lines}

    def add(self, line: dict[str, Any]) -> None:
        """One more line, whole."""
        data = (json.dumps(line, allow_nan=False) + "\n").encode()
        with self.path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def runs(self) -> Iterator[dict[str, Any]]:
        """All runs that are there."""
        lines = self._lines()
        next(lines, None)
        yield from lines

    def _lines(self) -> Iterator[dict[str, Any]]:
        with self.path.open() as file:
            for line in file:
                yield json.loads(line)

    def _cut_torn_end(self) -> None:
        """A run killed while it wrote leaves half a line."""
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with self.path.open("r+b") as file:
                file.truncate(whole)
