"""YAML text read as plain values that know their line.

Scalars stay as they are written: `99.9%`, `1.0`, `no` and `2026-12-01` are texts, and what
they mean is decided by the field they stand in. Anchors, aliases and tags are refused: a few
lines of them can stand for gigabytes, and a reader must jump about to know a value.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    ScalarEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from tailburn.engine.problems import Problem

Path = tuple[str | int, ...]
"""The keys and indices that lead to a value: ("spec", "by", 0)."""

DEPTH_LIMIT: Final = 24
_NULLS: Final = {"", "~", "null", "Null", "NULL"}


@dataclass
class Document:
    """One document of a file: its values, where they stand, and what is wrong with its form."""

    file: str
    line: int
    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    nulls: list[Path] = field(default_factory=list)  # keys that were given no value
    unreadable: set[Path] = field(default_factory=set)  # values that a problem stands for
    origins: dict[Path, Path] = field(default_factory=dict)  # in the file it was made from

    def line_of(self, path: Path) -> int:
        """The line of a value, or of what it is missing from."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, self.line)

    def problem(self, path: Path, given: str, wanted: str) -> Problem:
        """A fault of the value at this path."""
        return Problem(self.file, self.line_of(path), field_name(self._origin(path)), given, wanted)

    def _origin(self, path: Path) -> Path:
        if not self.origins:
            return path
        while path and path not in self.origins:
            path = path[:-1]
        return self.origins.get(path, path)


def field_name(path: Path) -> str:
    """As people write it: spec.by[0]."""
    name = ""
    for step in path:
        name += f"[{step}]" if isinstance(step, int) else f".{step}" if name else step
    return name or "document"


def documents(file: str, text: str) -> Iterator[Document]:
    """The documents of a text, in its order, without the empty ones.

    A fault of syntax ends them: it is the one problem of a last document that has no data.
    So is, of a text with nothing in it, that it is empty.
    """
    found = False
    events = YAML(typ="safe", pure=True).parse(text)
    try:
        for event in events:
            if not isinstance(event, DocumentStartEvent):
                continue
            document = Document(file, event.start_mark.line + 1)
            _Reader(document, events).read()
            if document.data is not None:
                found = True
                yield document
    except (YAMLError, ValueError, OverflowError) as error:  # the last two: "\UFFFFFFFF"
        problem = _syntax(file, text, error)
        yield Document(file, problem.line, problems=[problem])
        return
    if not found:
        problem = Problem(file, 1, "file", "", "is empty; `tailburn slo init` writes a first one")
        yield Document(file, 1, problems=[problem])


class _TooDeep(YAMLError):
    def __init__(self, line: int) -> None:
        super().__init__(f"is nested deeper than {DEPTH_LIMIT} levels")
        self.line = line


def _syntax(file: str, text: str, error: Exception) -> Problem:
    line, told = 1, str(error)
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        told = str(error.problem or error.context)
    elif isinstance(error, ReaderError):
        line = text.count("\n", 0, error.position) + 1
        character = error.character if isinstance(error.character, str) else chr(error.character)
        told = f"holds the character {character!r}, which YAML forbids"
    elif isinstance(error, _TooDeep):
        line = error.line
    remedy = "; indent with spaces" if "\\t" in told else ""
    return Problem(file, line, "YAML", "", f"{told}{remedy}")


class _Reader:
    """Builds the values of one document from the parser's events."""

    def __init__(self, document: Document, events: Iterator[Event]) -> None:
        self._document = document
        self._events = events

    def read(self) -> None:
        event = next(self._events)
        data = self._value(event, ())
        is_blank = isinstance(event, ScalarEvent) and data is None
        self._document.data = None if is_blank else data

    def _value(self, event: Event, path: Path) -> Any:
        line = event.start_mark.line + 1
        self._document.lines.setdefault(path, line)
        if len(path) > DEPTH_LIMIT:
            raise _TooDeep(line)
        if isinstance(event, AliasEvent):
            self._refuse(line, path, f"*{event.anchor}")
            return ""
        self._refuse_marks(event, line, path)
        if isinstance(event, ScalarEvent):
            return self._scalar(event, path)
        if isinstance(event, SequenceStartEvent):
            return [self._value(e, (*path, i)) for i, e in enumerate(self._until_end())]
        return self._mapping(path)

    def _until_end(self) -> Iterator[Event]:
        for event in self._events:
            if isinstance(event, CollectionEndEvent):
                return
            yield event

    def _scalar(self, event: ScalarEvent, path: Path) -> str | None:
        if event.implicit[0] and event.value in _NULLS and not event.style:
            self._document.nulls.append(path)
            return None
        value = str(event.value)
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            line = event.start_mark.line + 1
            self._refuse(line, path, "", "holds half of a surrogate pair, which is no character")
            return ""
        return value

    def _mapping(self, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for event in self._until_end():
            line = event.start_mark.line + 1
            if isinstance(event, ScalarEvent):
                key = str(event.value)
            else:
                key = f"key on line {line}"
                self._value(event, (*path, key))
                self._refuse(line, (*path, key), "", "is a list or mapping; want a text as key")
            where = (*path, key)
            if key in values:
                self._refuse(line, where, "", "is given twice; remove one of the two")
                self._value(next(self._events), where)
                continue
            self._document.lines[where] = line
            values[key] = self._value(next(self._events), where)
        return values

    def _refuse_marks(self, event: Event, line: int, path: Path) -> None:
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if anchor is not None:
            self._refuse(line, path, f"&{anchor}")
        if tag is not None and tag != "!":
            self._refuse(line, path, str(tag), "is a tag; remove it: fields know their type")

    def _refuse(
        self,
        line: int,
        path: Path,
        given: str,
        wanted: str = "is an anchor or its alias; write the value out in both places",
    ) -> None:
        document = self._document
        document.unreadable.add(path)
        document.problems.append(Problem(document.file, line, field_name(path), given, wanted))
