"""What is wrong with a file of a user's, all of it at once, each with its line."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True)
class Problem:
    """One fault: where it is, what was given and what is accepted."""

    file: str
    line: int  # from 1
    field: str
    given: str
    wanted: str

    def __str__(self) -> str:
        given = f" {self.given!r}" if self.given else ""
        return f"{self.file}:{self.line}: {self.field}:{given} {self.wanted}"


class BadFiles(Exception):
    """Files of a user's that can't be used. `problems` holds every fault found, in file order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def one_of(given: str, accepted: Iterable[str]) -> str:
    """The words for a name that is not among the accepted ones."""
    names = sorted(accepted)
    return f"is not known; want one of {', '.join(names)}{nearest(given, names)}"


def nearest(given: str, accepted: Iterable[str]) -> str:
    """`; did you mean ...?` of the accepted name that is most like it; empty where none is."""
    near = get_close_matches(given, list(accepted), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
