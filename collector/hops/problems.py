"""Files of rules that can't be used."""

from collections.abc import Iterable

from tailburn.engine.problems import Problem


class RulesError(Exception):
    """`problems` holds every fault found, in file order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))
