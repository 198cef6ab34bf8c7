"""Groups of rules as YAML, the same bytes for the same rules.

An expression is a block, so that its quotes stay as they are; other text is as JSON writes it,
which YAML reads too: no value can be taken for a number, a date or a flag, and no release of a
library moves a line.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from tailburn.rules.model import Group, Rule
from tailburn.rules.promql import duration


def groups_of(groups: Sequence[Group], indent: int = 0) -> str:
    """`groups:` and all below it, moved in by so many spaces."""
    lines = ["groups:" if groups else "groups: []"]
    for group in groups:
        lines += [f"  - name: {text(group.name)}", f"    interval: {duration(group.interval_s)}"]
        lines.append("    rules:")
        for rule in group.rules:
            lines += _rule(rule)
    margin = " " * indent
    return "".join(f"{margin}{line}\n" if line else "\n" for line in lines)


def text(value: str) -> str:
    """A value on one line."""
    return json.dumps(value, ensure_ascii=False)


def mapping(name: str, values: Mapping[str, str], indent: int) -> Iterator[str]:
    """The lines of a mapping of texts, none for an empty one."""
    if values:
        yield f"{' ' * indent}{name}:"
        for key, value in values.items():
            yield f"{' ' * (indent + 2)}{key}: {text(value)}"


def _rule(rule: Rule) -> Iterator[str]:
    kind = "record" if rule.record else "alert"
    yield f"      - {kind}: {text(rule.name)}"
    yield from _expr(rule.expr)
    if rule.for_s:
        yield f"        for: {duration(rule.for_s)}"
    yield from mapping("labels", rule.labels, 8)
    yield from mapping("annotations", rule.annotations, 8)


def _expr(expr: str) -> Iterator[str]:
    yield "        expr: |-"
    for line in expr.splitlines():
        yield f"          {line}"
