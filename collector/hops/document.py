"""YAML read as values that know their line, with every fault collected."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tailburn.engine.problems import Problem, one_of


class Document:
    """One file and the problems found in it so far."""

    def __init__(
        self,
        file: Path,
        lists: Mapping[str, tuple[str, ...]],
        if_empty: str = "want rules, see docs/hops.md",
    ) -> None:
        """`if_empty` says what an empty file lacks; with "" it lacks nothing."""
        self.file = file
        self.lists = dict(lists)
        self._if_empty = if_empty
        self.problems: list[Problem] = []

    def read(self) -> "Value | None":
        """The file's top, or None: with a problem where it can't be read or may not be empty."""
        try:
            text = self.file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self.fault(1, "file", "", f"can't be read: {error}")
            return None
        try:
            node = YAML(typ="safe", pure=True).compose(text)
        except MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            self.fault(line, "YAML", "", str(error.problem or error.context))
            return None
        except YAMLError as error:
            self.fault(1, "YAML", "", str(error))
            return None
        if node is None:
            if self._if_empty:
                self.fault(1, "file", "", f"is empty; {self._if_empty}")
            return None
        return Value(self, node, "file")

    def fault(self, line: int, field: str, given: str, wanted: str) -> None:
        self.problems.append(Problem(str(self.file), line, field, given, wanted))


class Value:
    """A node of the file. Readers return None, and note a problem, where it has another form."""

    def __init__(self, document: Document, node: Node, field: str) -> None:
        self._document = document
        self._node = node
        self.field = field
        self.line = node.start_mark.line + 1

    def fault(self, wanted: str) -> None:
        """Note that this value is not what is wanted."""
        given = self._node.value if isinstance(self._node, ScalarNode) else ""
        self._document.fault(self.line, self.field, str(given), wanted)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self._node, MappingNode)

    @property
    def is_list(self) -> bool:
        return isinstance(self._node, SequenceNode)

    @property
    def is_text(self) -> bool:
        return isinstance(self._node, ScalarNode)

    def text(self) -> str | None:
        """A scalar as it is written."""
        if isinstance(self._node, ScalarNode) and self._node.value != "":
            return str(self._node.value)
        self.fault("want a text")
        return None

    def word(self, accepted: Mapping[str, object] | tuple[str, ...]) -> str | None:
        """A text out of `accepted`."""
        word = self.text()
        if word is not None and word not in accepted:
            self.fault(one_of(word, accepted))
            return None
        return word

    def whole(self) -> int | None:
        """A whole number of at least 0."""
        text = self.text()
        if text is not None and not text.isdecimal():
            self.fault("want a whole number of at least 0")
            return None
        return None if text is None else int(text)

    def flag(self) -> bool | None:
        """true or false."""
        word = self.word(("true", "false"))
        return None if word is None else word == "true"

    def items(self) -> Iterator["Value"]:
        """The entries of a list; a lone value is a list of one."""
        if not isinstance(self._node, SequenceNode):
            yield self
            return
        for i, node in enumerate(self._node.value):
            yield Value(self._document, node, f"{self.field}[{i}]")

    def texts(self) -> tuple[str, ...]:
        """One text or a list of them; `$name` stands for the list of that name."""
        found: list[str] = []
        for item in self.items():
            text = item.text()
            if text is None:
                continue
            if not text.startswith("$"):
                found.append(text)
            elif text[1:] in self._document.lists:
                found.extend(self._document.lists[text[1:]])
            else:
                item.fault(one_of(text, (f"${name}" for name in self._document.lists)))
        return tuple(found)

    def entries(self) -> Iterator[tuple[str, "Value"]]:
        """Keys and values of a mapping, in the order of the file."""
        if not isinstance(self._node, MappingNode):
            self.fault("want a mapping of names to values")
            return
        seen: set[str] = set()
        for key, node in self._node.value:
            name = str(key.value) if isinstance(key, ScalarNode) else ""
            value = Value(self._document, node, f"{self.field}.{name}")
            if name in seen:
                self._document.fault(key.start_mark.line + 1, value.field, "", "is given twice")
            seen.add(name)
            yield name, value

    def mapping(self, accepted: tuple[str, ...]) -> dict[str, "Value"]:
        """A mapping whose keys are all among `accepted`."""
        found: dict[str, Value] = {}
        for name, value in self.entries():
            if name in accepted:
                found[name] = value
            else:
                value._document.fault(value.line, value.field, "", one_of(name, accepted))
        return found
