"""Rules as they are asked: what a span must be like for each, and what all of them read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tailburn.collector.hops.columns import EndIs, Role
from tailburn.collector.hops.conditions import Condition, Facts, Place
from tailburn.collector.hops.dimensions import Dimensions
from tailburn.collector.hops.fields import FORMS, Form, OutcomeStep, Source, Witness
from tailburn.collector.hops.shortlist import Shortlist
from tailburn.collector.otlp.wanted import Want, Wanted


@dataclass(frozen=True)
class Rule:
    """One kind of span: what it must be like, what it is, and where its fields come from."""

    name: str
    stack: str
    file: Path
    line: int
    when: tuple[Condition, ...]
    role: Role
    hop: int
    end_is: EndIs
    first_token_with_headers: bool
    fields: Mapping[str, tuple[Source, ...]]
    outcome: tuple[OutcomeStep, ...]

    def matches(self, facts: Facts) -> bool:
        return all(condition.holds(facts) for condition in self.when)


@dataclass(frozen=True)
class Stack:
    """A program whose spans are known, and the versions that was checked against."""

    name: str
    title: str
    versions: tuple[str, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Rules:
    """Everything recognition goes by. `wanted` is what the decoder must hand over; spans whose
    resources agree in `resource_keys` are alike to the rules."""

    stacks: tuple[Stack, ...]
    route_keys: tuple[str, ...]
    dimensions: Dimensions
    rules: tuple[Rule, ...] = field(init=False)
    wanted: tuple[Wanted, ...] = field(init=False)
    events: tuple[str, ...] = field(init=False)
    resource_keys: tuple[str, ...] = field(init=False)
    _shortlist: Shortlist = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(r for s in self.stacks for r in s.rules))
        shortlist = Shortlist([rule.when for rule in self.rules])
        object.__setattr__(self, "_shortlist", shortlist)
        object.__setattr__(self, "wanted", tuple(_wanted(self)))
        object.__setattr__(self, "events", tuple(dict.fromkeys(_events(self))))
        object.__setattr__(self, "resource_keys", tuple(dict.fromkeys(_resource_keys(self))))

    @property
    def words(self) -> Iterator[str]:
        """Texts that rules compare with or file requests under, patterns left out."""
        for condition in _all_conditions(self):
            if condition.patterns.are_exact:
                yield from condition.patterns.texts
        yield from self.dimensions.values

    def first_match(self, facts: Facts) -> int | None:
        """Index of the first rule whose conditions all hold."""
        candidates = self._shortlist.candidates(facts)
        return next((index for index in candidates if self.rules[index].matches(facts)), None)


_PRESENCE: Final = Want.NUMBER | Want.ID
"""Forms that cost no room in the dictionary, for attributes that only have to be there."""


def _all_conditions(rules: Rules) -> Iterator[Condition]:
    for rule in rules.rules:
        yield from rule.when
    yield from rules.dimensions.conditions


def _wanted(rules: Rules) -> Iterator[Wanted]:
    """Every attribute the rules read, each once per place, with all its forms."""
    wants: dict[tuple[str, bool], Want] = {}

    def want(key: str, form: Want, of_event: bool = False) -> None:
        wants[key, of_event] = wants.get((key, of_event), Want(0)) | form

    for key in rules.route_keys:
        want(key, Want.TEXT)
    for condition in _all_conditions(rules):
        if condition.reads_value:
            want(condition.key, Want.TEXT)
        elif condition.place in (Place.ATTRIBUTE, Place.WITHOUT):
            want(condition.key, _PRESENCE)
    for key in rules.dimensions.attributes:
        want(key, Want.TEXT)
    for rule in rules.rules:
        for step in rule.outcome:
            if isinstance(step, Witness):
                want(step.attribute, Want.TEXT if step.reads_value else _PRESENCE)
        for name, sources in rule.fields.items():
            form = {Form.ID: Want.ID, Form.TEXT: Want.TEXT}.get(FORMS[name], Want.NUMBER)
            for source in sources:
                if source.attribute:
                    want(source.attribute, form)
                elif source.event_attribute:
                    want(source.event_attribute, form, of_event=True)
    for (key, of_event), form in wants.items():
        yield Wanted(key, form, "event" if of_event else "span")


def _resource_keys(rules: Rules) -> Iterator[str]:
    """The attributes of resources by which rules tell spans apart."""
    yield "service.name"
    for condition in _all_conditions(rules):
        if condition.place is Place.RESOURCE:
            yield condition.key
    for rule in rules.rules:
        for sources in rule.fields.values():
            yield from (source.resource for source in sources if source.resource)
    yield from rules.dimensions.resource_keys


def _events(rules: Rules) -> Iterator[str]:
    for condition in _all_conditions(rules):
        if condition.place is Place.EVENT:
            yield from condition.patterns.texts
    for rule in rules.rules:
        for sources in rule.fields.values():
            for source in sources:
                yield from filter(None, (source.event, source.until))
