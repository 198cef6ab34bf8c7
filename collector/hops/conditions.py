"""What a rule asks of a span before it applies."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from tailburn.collector.hops.document import Value

KINDS = {"unspecified": 0, "internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
KIND_NAMES = {number: name for name, number in KINDS.items()}
REGEX = "re:"
ANY = "*"
_SHOWN = 4


@dataclass(frozen=True)
class Facts:
    """A span as the rules see it. An attribute whose text nobody asked for is ''."""

    scope: str
    name: str
    kind: int
    status: int
    tenant: str
    resource: Mapping[str, str]
    attributes: Mapping[str, str]
    events: frozenset[str]
    route_keys: tuple[str, ...]
    model: str = ""

    @property
    def service(self) -> str:
        return self.resource.get("service.name", "")

    def with_model(self, model: str) -> "Facts":
        """The same facts once the model is known."""
        facts = replace(self, model=model)
        facts.__dict__["routes"] = self.routes
        return facts

    @cached_property
    def routes(self) -> tuple[str, ...]:
        """Paths of the request, from every attribute that holds one, without query strings."""
        found = (path_of(self.attributes.get(key, "")) for key in self.route_keys)
        return tuple(dict.fromkeys(path for path in found if path))


def path_of(url: str) -> str:
    """The path of a URL or of a path with a query; '' where there is none."""
    path = re.split(r"[?#]", url, maxsplit=1)[0]
    if "://" in path:
        path = "/" + path.split("://", 1)[1].partition("/")[2]
    return path if path.startswith("/") else ""


class Place(StrEnum):
    """Where a condition looks."""

    SCOPE = "scope"
    NAME = "name"
    KIND = "kind"
    SERVICE = "service"
    TENANT = "tenant"
    ROUTE = "route"
    MODEL = "model"
    EVENT = "event"
    RESOURCE = "resource"
    ATTRIBUTE = "attribute"
    WITHOUT = "without"


def _look(place: Place, key: str, facts: Facts) -> tuple[str, ...]:
    if place is Place.ATTRIBUTE or place is Place.WITHOUT:
        return (facts.attributes[key],) if key in facts.attributes else ()
    if place is Place.RESOURCE:
        return (facts.resource[key],) if key in facts.resource else ()
    return _LOOKS[place](facts)


_LOOKS: dict[Place, Callable[[Facts], tuple[str, ...]]] = {
    Place.SCOPE: lambda facts: (facts.scope,),
    Place.NAME: lambda facts: (facts.name,),
    Place.KIND: lambda facts: (KIND_NAMES.get(facts.kind, str(facts.kind)),),
    Place.SERVICE: lambda facts: (facts.service,),
    Place.TENANT: lambda facts: (facts.tenant,),
    Place.ROUTE: lambda facts: facts.routes,
    Place.MODEL: lambda facts: (facts.model,) if facts.model else (),
    Place.EVENT: lambda facts: tuple(sorted(facts.events)),
}


def _regex(pattern: str) -> str:
    if pattern.startswith(REGEX):
        return f"(?:{pattern[len(REGEX) :]})"
    words = {"*": ".*", "?": "."}
    return "".join(words.get(letter, re.escape(letter)) for letter in pattern)


class Patterns:
    """Alternatives, each a text with `*` and `?`, or a regular expression after `re:`."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        """Raises re.error."""
        self.texts = texts
        self._regex = re.compile("|".join(map(_regex, texts)), re.DOTALL)

    def __call__(self, text: str) -> bool:
        return self._regex.fullmatch(text) is not None

    @property
    def takes_anything(self) -> bool:
        return ANY in self.texts

    @property
    def are_exact(self) -> bool:
        return not any(map(_is_pattern, self.texts))

    @property
    def in_short(self) -> str:
        """The first few alternatives."""
        more = len(self.texts) - _SHOWN
        return " | ".join(self.texts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Condition:
    """One thing that must hold: some value at `place` fits a pattern (`WITHOUT`: none is there)."""

    place: Place
    key: str
    patterns: Patterns = field(compare=False)

    def holds(self, facts: Facts) -> bool:
        values = _look(self.place, self.key, facts)
        if self.place is Place.WITHOUT:
            return not values
        return any(map(self.patterns, values)) if values else False

    def explain(self, facts: Facts) -> str:
        """What the span has there, and the pattern it fits or those it should."""
        values = _look(self.place, self.key, facts)
        has = ", ".join(value or "(present)" for value in values) or "nothing"
        if self.place is Place.WITHOUT:
            return f"{self}: {has}"
        where = f"{self.place} {self.key}" if self.key else str(self.place)
        fitting = next((t for t in self.patterns.texts if any(map(Patterns((t,)), values))), "")
        if fitting:
            return f"{where}: {has}" if fitting in (has, ANY) else f"{where}: {has} ({fitting})"
        return f"{where}: {has}, wanted {self.patterns.in_short}"

    def __str__(self) -> str:
        where = f"{self.place} {self.key}" if self.key else str(self.place)
        if self.place is Place.WITHOUT:
            return where
        return f"{where} = {' | '.join(self.patterns.texts)}"

    @property
    def reads_value(self) -> bool:
        """Whether the attribute's text matters, not only that it is there."""
        return self.place is Place.ATTRIBUTE and not self.patterns.takes_anything


_PLAIN = (
    Place.SCOPE,
    Place.NAME,
    Place.KIND,
    Place.SERVICE,
    Place.TENANT,
    Place.ROUTE,
    Place.MODEL,
    Place.EVENT,
)
_KEYED = {"resource": Place.RESOURCE, "attributes": Place.ATTRIBUTE}
ACCEPTED = (*map(str, _PLAIN), *_KEYED, "without")


def read_conditions(value: Value) -> tuple[Condition, ...]:
    """The conditions under `when`; faults are noted in the document."""
    return tuple(_conditions(value))


def _conditions(value: Value) -> Iterator[Condition]:
    found = value.mapping(ACCEPTED)
    if value.is_mapping and not found:
        value.fault("want at least one condition")
    for name, given in found.items():
        if name in _KEYED:
            for key, wanted in given.entries():
                yield from _condition(_KEYED[name], key, wanted)
        elif name == "without":
            for item in given.items():
                key_text = item.text()
                if key_text is not None:
                    yield Condition(Place.WITHOUT, key_text, Patterns((ANY,)))
        elif name == "kind":
            for item in given.items():
                item.word(KINDS)
            yield from _condition(Place.KIND, "", given)
        else:
            if name == Place.EVENT and any(map(_is_pattern, given.texts())):
                given.fault("want the exact name of an event")
            yield from _condition(Place(name), "", given)


def _is_pattern(text: str) -> bool:
    return text.startswith(REGEX) or "*" in text or "?" in text


def _condition(place: Place, key: str, value: Value) -> Iterator[Condition]:
    texts = value.texts()
    if not texts:
        return
    try:
        yield Condition(place, key, Patterns(texts))
    except re.error as error:
        value.fault(f"is no regular expression: {error}")
