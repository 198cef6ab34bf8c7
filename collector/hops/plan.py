"""Rules as tables of numbers, for compiled code: which attribute or event feeds which field."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.hops.conditions import Place
from tailburn.collector.hops.fields import FORMS, Form, Source, Witness
from tailburn.collector.hops.ruleset import Rules

I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

NUMBERS: Final = tuple(name for name, form in FORMS.items() if form not in (Form.ID, Form.TEXT))
IDS: Final = tuple(name for name, form in FORMS.items() if form is Form.ID)
COLUMN_OF: Final = {
    name: f"{name}_ns" if FORMS[name] in (Form.TIME, Form.DURATION) else name for name in NUMBERS
}
ABSENT: Final = tuple(
    0 if FORMS[name] is Form.TIME or name == "http_status" else -1 for name in NUMBERS
)
MOST: Final = {
    Form.TIME: 2**63 - 1,
    Form.DURATION: 2**62,
    Form.COUNT: 2**31 - 1,
    Form.FLAG: 1,
}
MOST_BY_FIELD: Final = tuple(
    999 if name == "http_status" else MOST[FORMS[name]] for name in NUMBERS
)
HTTP_STATUS: Final = NUMBERS.index("http_status")

# What an attribute is to the key under which a span's classification is remembered.
NOT_DECISIVE, BY_PRESENCE, BY_VALUE = 0, 1, 2


@dataclass(frozen=True)
class Feeds:
    """Entries of class `c` for input `k` (attribute or event): `first[c * inputs + k]` up to the
    next; each names a field, its rank among that field's sources (the lowest wins), the factor
    that makes ns of it, what it is counted from and, for events, the event it lasts until."""

    inputs: int
    first: I32
    field: I8
    rank: I8
    factor: F64
    base: I8
    until: I32


@dataclass(frozen=True)
class Plan:
    """Everything compiled code needs of the rules. Class 0 is the unrecognised."""

    decisive: I8  # by wanted attribute
    event_decisive: I8  # by event of `Rules.events`
    attributes: Feeds
    events: Feeds
    has_defaults: I8  # by class: some field is a constant
    defaults: I64  # (classes, NUMBERS)
    default_rank: I8  # (classes, NUMBERS)
    reads_events: I8  # by class


def make_plan(rules: Rules) -> Plan:
    """Compile the rules."""
    classes = len(rules.rules) + 1
    defaults = np.tile(np.array(ABSENT, np.int64), (classes, 1))
    default_rank = np.full((classes, len(NUMBERS)), 127, np.int8)
    for class_id, rule in enumerate(rules.rules, 1):
        for name, sources in rule.fields.items():
            for rank, source in enumerate(sources):
                if source.value >= 0 and name in NUMBERS:
                    defaults[class_id, NUMBERS.index(name)] = source.value
                    default_rank[class_id, NUMBERS.index(name)] = rank
                    break
    return Plan(
        decisive=_decisive(rules),
        event_decisive=_decisive_events(rules),
        attributes=_attribute_feeds(rules),
        events=_event_feeds(rules),
        has_defaults=(defaults != ABSENT).any(axis=1).astype(np.int8),
        defaults=defaults,
        default_rank=default_rank,
        reads_events=_reads_events(rules),
    )


def _decisive(rules: Rules) -> I8:
    by_key: dict[str, int] = dict.fromkeys(rules.route_keys, BY_VALUE)
    by_key |= dict.fromkeys(rules.dimensions.attributes, BY_VALUE)
    for rule in rules.rules:
        for name, sources in rule.fields.items():
            if FORMS[name] is Form.TEXT:
                by_key |= {s.attribute: BY_VALUE for s in sources if s.attribute}
        for step in rule.outcome:
            if isinstance(step, Witness):
                level = BY_VALUE if step.reads_value else BY_PRESENCE
                by_key[step.attribute] = max(by_key.get(step.attribute, NOT_DECISIVE), level)
    conditions = [c for rule in rules.rules for c in rule.when]
    for condition in (*conditions, *rules.dimensions.conditions):
        if condition.place in (Place.ATTRIBUTE, Place.WITHOUT):
            level = BY_VALUE if condition.reads_value else BY_PRESENCE
            by_key[condition.key] = max(by_key.get(condition.key, NOT_DECISIVE), level)
    levels = [by_key.get(w.key, 0) if w.where == "span" else 0 for w in rules.wanted]
    return np.array(levels, np.int8)


def _decisive_events(rules: Rules) -> I8:
    conditions = [c for rule in rules.rules for c in rule.when]
    tested = {
        text
        for condition in (*conditions, *rules.dimensions.conditions)
        if condition.place is Place.EVENT
        for text in condition.patterns.texts
    }
    return np.array([name in tested for name in rules.events], np.int8)


def _reads_events(rules: Rules) -> I8:
    reads = [
        any(source.event for sources in rule.fields.values() for source in sources)
        for rule in rules.rules
    ]
    return np.array([False, *reads], np.int8)


def _attribute_feeds(rules: Rules) -> Feeds:
    index = {(w.key, w.where): i for i, w in enumerate(rules.wanted)}

    def input_of(source: Source) -> int:
        if source.attribute:
            return index[source.attribute, "span"]
        return index[source.event_attribute, "event"] if source.event_attribute else -1

    rows = (
        (class_id, input_of(source), field, rank, source.factor, int(source.base), -1)
        for class_id, field, rank, source in _numeric_sources(rules)
    )
    return _feeds(len(rules.rules) + 1, len(rules.wanted), [r for r in rows if r[1] >= 0])


def _event_feeds(rules: Rules) -> Feeds:
    index = {name: i for i, name in enumerate(rules.events)}
    rows = [
        (class_id, index[source.event], field, rank, 1.0, 0, index.get(source.until, -1))
        for class_id, field, rank, source in _numeric_sources(rules)
        if source.event
    ]
    return _feeds(len(rules.rules) + 1, len(rules.events), rows)


def _numeric_sources(rules: Rules) -> Iterator[tuple[int, int, int, Source]]:
    """(class, field, rank, source) of every source of a number or id, field ids after numbers."""
    numbered = {name: i for i, name in enumerate((*NUMBERS, *IDS))}
    for class_id, rule in enumerate(rules.rules, 1):
        for name, sources in rule.fields.items():
            if name in numbered:
                for rank, source in enumerate(sources):
                    yield class_id, numbered[name], rank, source


_Row = tuple[int, int, int, int, float, int, int]


def _feeds(classes: int, inputs: int, rows: list[_Row]) -> Feeds:
    rows.sort(key=lambda row: row[:4])
    slots = np.array([class_id * inputs + k for class_id, k, *_ in rows], np.int64)
    first = np.searchsorted(slots, np.arange(classes * inputs + 1)).astype(np.int32)
    columns = list(zip(*rows, strict=True)) if rows else [()] * 7
    return Feeds(
        inputs=inputs,
        first=first,
        field=np.array(columns[2], np.int8),
        rank=np.array(columns[3], np.int8),
        factor=np.array(columns[4], np.float64),
        base=np.array(columns[5], np.int8),
        until=np.array(columns[6], np.int32),
    )
