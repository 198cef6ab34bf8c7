"""Rules read back from the files of Prometheus, its operator and Mimir."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import promql_parser as promql

from tailburn.engine.problems import Problem
from tailburn.engine.slo.document import Document, Path, documents
from tailburn.rules.comparing.meaning import UnreadableError, canonical
from tailburn.rules.model import Group, Rule, RuleSet

_MINUTE_S: Final = 60


@dataclass(frozen=True)
class Read:
    """The groups of files, and what in them can't be read."""

    rules: RuleSet
    problems: tuple[Problem, ...]


def read(texts: Sequence[tuple[str, str]]) -> Read:
    """The rules of texts, each given as (name of the file, text)."""
    groups: list[Group] = []
    problems: list[Problem] = []
    for file, text in texts:
        for document in documents(file, text):
            problems.extend(document.problems)
            if document.data is not None:
                groups.extend(_Reader(document, problems).groups())
    return Read(RuleSet(tuple(groups)), tuple(problems))


@dataclass
class _Reader:
    document: Document
    problems: list[Problem]

    def groups(self) -> Iterator[Group]:
        base: Path = ("spec",) if self._at(("spec",)) is not None else ()
        groups = self._at((*base, "groups"))
        if not isinstance(groups, list):
            wanted = "is no list; want a file of rules, with groups"
            self.problems.append(self.document.problem((*base, "groups"), "", wanted))
            return
        for i in range(len(groups)):
            yield self._group((*base, "groups", i))

    def _group(self, path: Path) -> Group:
        rules = self._at((*path, "rules"))
        count = len(rules) if isinstance(rules, list) else 0
        read = (self._rule((*path, "rules", i)) for i in range(count))
        return Group(
            name=self._text((*path, "name")),
            interval_s=self._seconds((*path, "interval"), _MINUTE_S),
            rules=tuple(rule for rule in read if rule is not None),
        )

    def _rule(self, path: Path) -> Rule | None:
        record, alert = self._text((*path, "record")), self._text((*path, "alert"))
        if bool(record) == bool(alert):
            self._fault(path, "wants exactly one of record and alert")
            return None
        expr = self._text((*path, "expr"))
        try:
            canonical(expr)
        except UnreadableError as error:
            self._fault((*path, "expr"), f"is no PromQL: {error}")
            return None
        return Rule(
            expr=expr,
            record=record,
            alert=alert,
            for_s=self._seconds((*path, "for"), 0),
            labels=self._texts((*path, "labels")),
            annotations=self._texts((*path, "annotations")),
        )

    def _seconds(self, path: Path, default: int) -> int:
        text = self._text(path)
        if not text:
            return default
        try:
            return round(promql.parse_duration(text).total_seconds())
        except ValueError:
            self._fault(path, "is no duration; want one such as 5m", text)
            return default

    def _texts(self, path: Path) -> dict[str, str]:
        found = self._at(path)
        return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}

    def _text(self, path: Path) -> str:
        found = self._at(path)
        return found if isinstance(found, str) else ""

    def _at(self, path: Path) -> Any:
        value = self.document.data
        for step in path:
            if isinstance(step, str) and isinstance(value, dict):
                value = value.get(step)
            elif isinstance(step, int) and isinstance(value, list):
                value = value[step]
            else:
                return None
        return value

    def _fault(self, path: Path, wanted: str, given: str = "") -> None:
        self.problems.append(self.document.problem(path, given, wanted))
