"""Rules as values: what every format writes, tests are made for and `diff` compares."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


def literal(value: str) -> str:
    """A text that Prometheus is not to take for a template, for a label or annotation."""
    return value.replace("{{", '{{ "{{" }}')


@dataclass(frozen=True)
class Rule:
    """A recording rule, or an alerting one: exactly one of `record` and `alert` is said."""

    expr: str
    record: str = ""
    alert: str = ""
    for_s: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.record) == bool(self.alert):
            raise ValueError(f"a rule records or alerts, got {self.record!r} and {self.alert!r}")

    @property
    def name(self) -> str:
        """The series that it records, or the alert."""
        return self.record or self.alert


@dataclass(frozen=True)
class Group:
    """Rules evaluated one after the other, each `interval_s` seconds."""

    name: str
    interval_s: int
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class RuleSet:
    """All groups of some SLOs. Names of groups differ."""

    groups: tuple[Group, ...]

    @property
    def rules(self) -> Iterator[Rule]:
        """Every rule, in order."""
        return (rule for group in self.groups for rule in group.rules)

    @property
    def records(self) -> Iterator[Rule]:
        """Every recording rule."""
        return (rule for rule in self.rules if rule.record)

    @property
    def alerts(self) -> Iterator[Rule]:
        """Every alerting rule."""
        return (rule for rule in self.rules if rule.alert)
