"""Our entries put into a user's Alertmanager configuration, the rest left as it is to the byte.

Nothing is parsed and written again: the places are found by a YAML parser, and text is put in
there. Block style gets a block, flow style (also plain JSON) gets JSON, each between two marks.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tailburn.alerts.alertmanager.errors import ConfigError
from tailburn.alerts.alertmanager.marks import as_block_part, as_flow_part
from tailburn.alerts.alertmanager.text import Item, as_block, as_flow, under
from tailburn.alerts.alertmanager.theirs import BOM, entry, receiver_names, root_of, without_marks


@dataclass(frozen=True)
class Additions:
    """What is ours, by the list it goes into: at its front, but templates to no set place."""

    routes: Sequence[Item]
    inhibit_rules: Sequence[Item]
    receivers: Sequence[Item]
    templates: Sequence[Item]


def merge(text: str, ours: Additions, file: str) -> str:
    """The configuration with our entries in place of those of an earlier merge.

    Our routes come first among the children of the root, so that no catch-all takes our alerts
    before; they match only our alerts. Raises ConfigError with file and line.
    """
    merged = _Config(without_marks(text, file), file).with_entries(ours)
    if "\r\n" in text:
        merged = merged.replace("\n", "\r\n")
    return BOM + merged if text.startswith(BOM) else merged


@dataclass
class _Insertion:
    """Lines of ours at one place: before a line of a block, or after an opening bracket."""

    margin: str
    after_bracket: bool
    lines: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        part = as_flow_part if self.after_bracket else as_block_part
        return part(self.lines, self.margin)


class _Config:
    """A user's text and its root; collects what is put in where."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.root = root_of(text, file)
        self.insertions: dict[tuple[int, bool], _Insertion] = {}  # by place, the end last

    def with_entries(self, ours: Additions) -> str:
        if (route := entry(self.root, "route")) is None:
            raise ConfigError(
                f"{self.file}:1: route: is missing; want a root route, whose receiver takes "
                "what no other route matches"
            )
        if not isinstance(route[1], MappingNode) or not route[1].value:
            raise self._unfit(*route, "route", "a mapping")
        self._refuse_taken_names(ours)
        self._put_in(route[1], "routes", ours.routes, "route.")
        self._put_in(self.root, "inhibit_rules", ours.inhibit_rules)
        self._put_in(self.root, "receivers", ours.receivers)
        self._put_in(self.root, "templates", ours.templates)
        text = self.text
        for place, insertion in sorted(self.insertions.items(), key=itemgetter(0), reverse=True):
            text = text[: place[0]] + str(insertion) + text[place[0] :]
        return text

    def _refuse_taken_names(self, ours: Additions) -> None:
        """A receiver of theirs under one of our names would make the file invalid."""
        names = {str(receiver.value["name"]) for receiver in ours.receivers}
        taken = [
            f"{self.file}:{node.start_mark.line + 1}: receivers.name: {node.value!r} is the name "
            "of a receiver written by tailburn; rename yours"
            for node in receiver_names(self.root)
            if node.value in names
        ]
        if taken:
            raise ConfigError(*taken)

    def _put_in(
        self, parent: MappingNode, key: str, entries: Sequence[Item], prefix: str = ""
    ) -> None:
        """Put entries at the front of a list; where there is none, put in the list as well."""
        if not entries:
            return
        found = entry(parent, key)
        if found is None:
            self._new_list(parent, key, entries)
            return
        key_node, value = found
        if _is_nothing(value) and not parent.flow_style:
            indent = key_node.start_mark.column + 2
            self._insert(self._line_after(key_node), as_block(entries), indent)
        elif not isinstance(value, SequenceNode) or _is_alias(key_node, value):
            raise self._unfit(key_node, value, prefix + key, "a list, written out")
        elif value.flow_style:
            self._insert_flow(value, as_flow(entries))
        else:
            start = value.start_mark.index
            if self.text[start] != "-":  # an anchor or a tag stands before it
                raise self._unfit(key_node, value, prefix + key, "a list without an anchor or tag")
            begin = start - value.start_mark.column
            self._insert(begin, as_block(entries), value.start_mark.column)

    def _new_list(self, parent: MappingNode, key: str, entries: Sequence[Item]) -> None:
        if parent.flow_style:
            self._insert_flow(parent, [f"{json.dumps(key)}: [", *as_flow(entries), "],"])
            return
        lines = under(key, as_block(entries))
        if parent is self.root:
            margin = parent.value[0][0].start_mark.column
            self._insert(self._end_of_root(), lines, margin, at_end=True)
            return
        first: Node = parent.value[0][0]
        begin = first.start_mark.index - first.start_mark.column
        if self.text[begin : first.start_mark.index].strip():
            raise self._unfit(first, parent, "route", "its first key on a line of its own")
        self._insert(begin, lines, first.start_mark.column)

    def _insert_flow(self, parent: Node, lines: list[str]) -> None:
        start = parent.start_mark.index
        if self.text[start] not in "[{":
            raise self._unfit(parent, parent, "list", "no anchor or tag before it")
        line = self.text[start - parent.start_mark.column :]
        indent = len(line) - len(line.lstrip(" ")) + 2
        self._insert(start + 1, lines, indent, after_bracket=True)

    def _insert(
        self,
        index: int,
        lines: list[str],
        indent: int,
        after_bracket: bool = False,
        at_end: bool = False,
    ) -> None:
        new = _Insertion(" " * indent, after_bracket)
        self.insertions.setdefault((index, at_end), new).lines.extend(lines)

    def _line_after(self, node: Node) -> int:
        return self.text.index("\n", node.end_mark.index) + 1

    def _end_of_root(self) -> int:
        """Where the root's last line has ended: the end of the text, or the mark of the end."""
        end = self.root.end_mark
        return int(end.index) - int(end.column)

    def _unfit(self, key: Node, value: Node, field: str, wanted: str) -> ConfigError:
        given = f" {value.value!r}" if isinstance(value, ScalarNode) else ""
        return ConfigError(
            f"{self.file}:{key.start_mark.line + 1}: {field}:{given} want {wanted}, to which "
            "entries can be added"
        )


def _is_nothing(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value == ""


def _is_alias(key: Node, value: Node) -> bool:
    """Whether the value was written elsewhere, and only named here."""
    return bool(value.start_mark.index < key.end_mark.index)
