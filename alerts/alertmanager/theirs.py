"""What a user's own configuration says, read with its places and never written again."""

import re
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tailburn.alerts.alertmanager.errors import ConfigError
from tailburn.alerts.alertmanager.inhibition import OURS
from tailburn.alerts.alertmanager.marks import lone_mark, without_ours

BOM: Final = "\ufeff"
_LABEL: Final = re.compile(r'(\w+)"?\s*[!=]')  # finds too many in odd values: no harm


def without_marks(text: str, file: str) -> str:
    """The text without ours, with plain ends of lines, also of the last.

    Raises ConfigError where one of our two marks is gone: what is ours, can't be told then.
    """
    if (line := lone_mark(text)) is not None:
        raise ConfigError(
            f"{file}:{line}: a mark of tailburn without its other: delete what was written "
            "between them, and the mark"
        )
    theirs = without_ours(text.removeprefix(BOM).replace("\r\n", "\n"))
    return theirs if theirs.endswith("\n") else theirs + "\n"


def root_of(text: str, file: str) -> MappingNode:
    """The top of a configuration. Raises ConfigError with file and line."""
    try:
        node = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{file}:{line}: {error.problem or error.context}") from error
    except YAMLError as error:
        raise ConfigError(f"{file}:1: is not YAML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{file}:1: is nested too deeply to be read") from None
    if not isinstance(node, MappingNode):
        raise ConfigError(f"{file}:1: want a configuration of Alertmanager")
    return node


def entry(parent: MappingNode, key: str) -> tuple[Node, Node] | None:
    """A key of a mapping and its value."""
    for name, value in parent.value:
        if isinstance(name, ScalarNode) and name.value == key:
            return name, value
    return None


def receiver_names(root: MappingNode) -> list[ScalarNode]:
    """The names of the receivers of a configuration."""
    names = [entry(item, "name") for item in _items(root, "receivers")]
    return [name[1] for name in names if name is not None and isinstance(name[1], ScalarNode)]


def names_of_receivers(text: str, file: str) -> tuple[str, ...]:
    """The user's own receivers. Raises ConfigError where the text is no configuration."""
    return tuple(
        str(node.value) for node in receiver_names(root_of(without_marks(text, file), file))
    )


def has_smarthost(text: str, file: str) -> bool:
    """Whether the user's configuration names a mail server for all that is sent."""
    found = entry(root_of(without_marks(text, file), file), "global")
    if found is None or not isinstance(found[1], MappingNode):
        return False
    return entry(found[1], "smtp_smarthost") is not None


def receivers_of_ours(text: str, file: str) -> set[str]:
    """The receivers of the routes that are for our alerts; none where there are no such routes.

    Raises ConfigError where the text is no configuration.
    """
    route = entry(root_of(text, file), "route")
    return set() if route is None else _receivers_below(route[1], is_ours=False)


def labels_routed_by(text: str, file: str) -> set[str]:
    """The labels that any route looks at. Raises ConfigError where the text is no configuration."""
    route = entry(root_of(text, file), "route")
    return set() if route is None else _labels_below(route[1])


def _labels_below(route: Node) -> set[str]:
    if not isinstance(route, MappingNode):
        return set()
    names = {name for text in _matchers(route) for name in _LABEL.findall(text)}
    for key in ("match", "match_re"):  # the older way
        matched = entry(route, key)
        if matched is not None and isinstance(matched[1], MappingNode):
            names |= {str(name.value) for name, _ in matched[1].value}
    return names.union(*map(_labels_below, _items(route, "routes")))


def _receivers_below(route: Node, is_ours: bool) -> set[str]:
    if not isinstance(route, MappingNode):
        return set()
    is_ours = is_ours or str(OURS) in _matchers(route)
    receiver = entry(route, "receiver")
    names = {str(receiver[1].value)} if is_ours and receiver is not None else set()
    return names.union(*(_receivers_below(child, is_ours) for child in _items(route, "routes")))


def _matchers(route: MappingNode) -> set[str]:
    found = entry(route, "matchers")
    if found is None or not isinstance(found[1], SequenceNode):
        return set()
    return {str(matcher.value) for matcher in found[1].value}


def _items(parent: MappingNode, key: str) -> list[MappingNode]:
    """The mappings of a list."""
    found = entry(parent, key)
    if found is None or not isinstance(found[1], SequenceNode):
        return []
    return [item for item in found[1].value if isinstance(item, MappingNode)]
