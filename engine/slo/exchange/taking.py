"""Another tool's document, taken value by value: whatever is not taken is listed as lost."""

from collections.abc import Iterator
from typing import Any

from tailburn.engine.problems import Problem
from tailburn.engine.slo.document import Document, Path
from tailburn.engine.slo.faults import shortened

NO_COUNTERPART = "has no counterpart here; left out"


class Taking:
    """Reads a document and remembers what of it was read."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = list(document.problems)
        self.lost: list[Problem] = []
        self._taken: set[Path] = set()

    def peek(self, *path: str | int) -> Any:
        """The value at this path, None where there is none; it counts as unread."""
        value = self.document.data
        for step in path:
            is_there = (
                step in value
                if isinstance(value, dict)
                else isinstance(value, list) and isinstance(step, int) and step < len(value)
            )
            if not is_there:
                return None
            value = value[step]
        return value

    def take(self, *path: str | int) -> Any:
        """The value at this path with all that is in it."""
        self._taken.add(path)
        return self.peek(*path)

    def text(self, *path: str | int) -> str:
        """A scalar; empty where there is none, and a problem where it is no scalar."""
        value = self.take(*path)
        if isinstance(value, dict | list):
            self.fault(path, "is a list or mapping; want a text")
            return ""
        return value or ""

    def texts(self, *path: str | int) -> dict[str, str]:
        """A mapping of names to scalars."""
        value = self.peek(*path)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.fault(path, "want a mapping of names to values")
            return {}
        return {name: self.text(*path, name) for name in value}

    def count(self, *path: str | int) -> int:
        """How many entries the list at this path has; a problem where it is no list."""
        value = self.peek(*path)
        if isinstance(value, list):
            self._taken.update({path} if not value else ())
            return len(value)
        if value is not None:
            self.fault(path, "want a list")
        return 0

    def fault(self, path: Path, wanted: str) -> None:
        """The document can't be taken because of this value."""
        self._taken.add(path)
        self.problems.append(self._problem(path, wanted))

    def lose(self, path: Path, why: str) -> None:
        """This value, if there is one, has no counterpart."""
        if self.peek(*path) is not None:
            self._taken.add(path)
            self.lost.append(self._problem(path, why))

    def lose_all(self, path: Path, why: str) -> None:
        """The whole document has no counterpart, which this value of it shows."""
        self._taken.add(())
        self.lost.append(self._problem(path, why))

    def mend(self, path: Path, why: str) -> None:
        """This value is carried over, but not as it was."""
        self.lost.append(self._problem(path, why))

    def rest(self, path: Path = ()) -> Iterator[Problem]:
        """What was never read, told once for all that is in it."""
        if path in self._taken:
            return
        value = self.peek(*path)
        steps: list[str | int] = []
        if isinstance(value, dict):
            steps = list(value)
        elif isinstance(value, list):
            steps = list(range(len(value)))
        if path and not any(taken[: len(path)] == path for taken in self._taken):
            if value is not None:
                yield self._problem(path, NO_COUNTERPART)
            return
        for step in steps:
            yield from self.rest((*path, step))

    def _problem(self, path: Path, wanted: str) -> Problem:
        return self.document.problem(path, shortened(self.peek(*path)), wanted)
