"""Matchers of labels, as Alertmanager writes and understands them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Matcher:
    """One condition on a label, whose value is any of some, none of them, or begins with one.

    A label that is missing is empty.
    """

    label: str
    values: tuple[str, ...]
    operator: str = "="  # or != for none of them, ^ for a beginning

    def __str__(self) -> str:
        if self.operator == "^":
            return f'{self.label}=~"{_quoted(re.escape(self.values[0]))}.+"'
        if len(self.values) == 1:
            return f'{self.label}{self.operator}"{_quoted(self.values[0])}"'
        pattern = "|".join(map(re.escape, self.values))
        return f'{self.label}{self.operator[:-1] or "="}~"{_quoted(pattern)}"'

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.label, "")
        if self.operator == "^":
            return value.startswith(self.values) and value not in self.values
        return (value in self.values) is (self.operator == "=")


def is_any(label: str, values: Iterable[str]) -> Matcher:
    """The label is one of these."""
    return Matcher(label, tuple(dict.fromkeys(map(str, values))))


def is_not(label: str, value: str) -> Matcher:
    """The label is anything else."""
    return Matcher(label, (str(value),), "!=")


def begins(label: str, beginning: str) -> Matcher:
    """The label begins with this, and goes on."""
    return Matcher(label, (beginning,), "^")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
