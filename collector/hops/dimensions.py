"""What a request is filed under: pool, request type, priority, and where its replica stands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tailburn.collector.hops.conditions import Condition, Facts, Patterns, read_conditions
from tailburn.collector.hops.document import Value

BY_RULE: Final = (
    "pool",
    "request_type",
    "priority",
    "client",
    "replica",
    "host",
    "node",
    "gpu",
    "zone",
)
PLACED: Final = ("node", "gpu", "zone", "host")
PER_REPLICA: Final = ("replica", *PLACED)


@dataclass(frozen=True)
class Step:
    """One way to a dimension's value: where `when` holds, a fixed value or one copied."""

    when: tuple[Condition, ...]
    value: str = ""
    attribute: str = ""
    resource: str = ""

    def value_for(self, facts: Facts) -> str:
        """The value, '' where this step has none."""
        if not all(condition.holds(facts) for condition in self.when):
            return ""
        if self.attribute:
            return facts.attributes.get(self.attribute, "")
        if self.resource:
            return facts.resource.get(self.resource, "")
        return self.value


@dataclass(frozen=True)
class Places:
    """Where replicas stand, by pattern of `service.instance.id`, pod or host name."""

    entries: tuple[tuple[Patterns, Mapping[str, str]], ...] = ()

    def extended(self, other: "Places") -> "Places":
        return Places((*self.entries, *other.entries))

    def value_for(self, dimension: str, replica: str) -> str:
        if dimension not in PLACED or not replica:
            return ""
        for pattern, values in self.entries:
            if dimension in values and pattern(replica):
                return values[dimension]
        return ""


@dataclass(frozen=True)
class Dimensions:
    """Steps by dimension, first value wins; the map of replicas; bounds of prompt classes."""

    steps: Mapping[str, tuple[Step, ...]]
    places: Places = field(default_factory=Places)
    prompt_bounds: tuple[int, ...] = ()

    @cached_property
    def by_resource(self) -> tuple[str, ...]:
        """Dimensions that the resource alone decides: every step copies one of its attributes."""
        return tuple(
            name
            for name in PER_REPLICA
            if all(step.resource and not step.when for step in self.steps.get(name, ()))
        )

    @property
    def resource_keys(self) -> Iterator[str]:
        """Attributes of resources that steps of the other dimensions read."""
        for name, steps in self.steps.items():
            if name not in self.by_resource:
                yield from (step.resource for step in steps if step.resource)

    @property
    def conditions(self) -> Iterator[Condition]:
        for steps in self.steps.values():
            for step in steps:
                yield from step.when

    @property
    def values(self) -> Iterator[str]:
        """The fixed ones."""
        for steps in self.steps.values():
            yield from (step.value for step in steps if step.value)
        for _, placed in self.places.entries:
            yield from placed.values()

    @property
    def attributes(self) -> Iterator[str]:
        for steps in self.steps.values():
            for step in steps:
                if step.attribute:
                    yield step.attribute

    def value_for(self, dimension: str, facts: Facts) -> str:
        """The value of the first step that has one, '' for unknown."""
        for step in self.steps.get(dimension, ()):
            if value := step.value_for(facts):
                return value
        return ""

    def of_resource(self, resource: Mapping[str, str]) -> tuple[str, ...]:
        """Values of `PER_REPLICA` as far as the resource alone tells, '' for unknown: from the
        map of replicas, else for those in `by_resource` copied from its attributes."""
        copied = {name: self._copied(name, resource) for name in PER_REPLICA}
        return tuple(
            self.places.value_for(name, copied["replica"])
            or (value if name in self.by_resource else "")
            for name, value in copied.items()
        )

    def _copied(self, dimension: str, resource: Mapping[str, str]) -> str:
        steps = (step for step in self.steps.get(dimension, ()) if not step.when)
        return next(filter(None, (resource.get(step.resource) for step in steps)), "")

    @property
    def prompt_classes(self) -> tuple[str, ...]:
        """Names of the buckets of uncached prompt tokens: '<=512', '513-2048', ..., '>8192'."""
        bounds = self.prompt_bounds
        if not bounds:
            return ("any",)
        between = (f"{low + 1}-{high}" for low, high in zip(bounds, bounds[1:], strict=False))
        return (f"<={bounds[0]}", *between, f">{bounds[-1]}")


def read_bounds(value: Value) -> tuple[int, ...]:
    """Upper bounds of the prompt classes, in tokens; faults are noted in the document."""
    parts = value.mapping(("bounds",))
    if "bounds" not in parts:
        value.fault("want bounds, a list of token counts")
        return ()
    bounds = [n for item in parts["bounds"].items() if (n := item.whole()) is not None]
    if bounds != sorted(set(bounds)):
        parts["bounds"].fault("want growing numbers")
    return tuple(bounds)


def read_dimensions(value: Value) -> dict[str, tuple[Step, ...]]:
    """Steps by dimension; faults are noted in the document."""
    return {
        name: tuple(step for item in given.items() if (step := _step(item)) is not None)
        for name, given in value.mapping(BY_RULE).items()
    }


_VALUES: Final = ("value", "attribute", "resource")


def _step(value: Value) -> Step | None:
    parts = value.mapping(("when", *_VALUES))
    given = [name for name in _VALUES if name in parts]
    if len(given) != 1:
        value.fault(f"want exactly one of {', '.join(_VALUES)}")
        return None
    when = read_conditions(parts["when"]) if "when" in parts else ()
    text = parts[given[0]].text()
    return None if text is None else Step(when, **{given[0]: text})


def read_places(value: Value) -> Places:
    """The map of replicas: pattern to node, gpu, zone and host."""
    entries: list[tuple[Patterns, Mapping[str, str]]] = []
    for pattern, given in value.entries():
        values = {
            name: text
            for name, item in given.mapping(PLACED).items()
            if (text := ",".join(item.texts()))
        }
        entries.append((Patterns((pattern,)), values))
    return Places(tuple(entries))


__all__ = [
    "BY_RULE",
    "Dimensions",
    "Places",
    "Step",
    "read_bounds",
    "read_dimensions",
    "read_places",
]
