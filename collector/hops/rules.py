"""The rules by which spans become hops, read from data.

`hops.yaml` and `dimensions.yaml` in this folder are ours; files of users have the same form
and come first. `docs/hops.md` teaches the form.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from tailburn.collector.hops.columns import HOP_BY_POSITION, EndIs, Role
from tailburn.collector.hops.conditions import Condition, Facts, Place, read_conditions
from tailburn.collector.hops.dimensions import (
    Dimensions,
    Places,
    Step,
    read_bounds,
    read_dimensions,
    read_places,
)
from tailburn.collector.hops.document import Document, Value
from tailburn.collector.hops.fields import (
    FORMS,
    Form,
    OutcomeStep,
    Source,
    Witness,
    read_fields,
    read_outcome,
)
from tailburn.collector.hops.problems import Problem, RulesError
from tailburn.collector.hops.shortlist import Shortlist
from tailburn.collector.otlp.wanted import Want, Wanted
from tailburn.engine.names import HOP_INDEX

FOLDER: Final = Path(__file__).parent
SHIPPED: Final = (FOLDER / "hops.yaml", FOLDER / "dimensions.yaml")

ROLES: Final = {role.name.lower(): role for role in Role if role is not Role.UNRECOGNISED}
ENDS: Final = {"last_byte": EndIs.END, "headers": EndIs.HEADERS, "loose": EndIs.LOOSE}
BY_POSITION: Final = "by_position"
HOPS_ACCEPTED: Final = (*HOP_INDEX, BY_POSITION)
NEEDS_HOP: Final = (Role.CALL, Role.SERVER, Role.EDGE, Role.PART, Role.LOAD)


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


@dataclass
class _Draft:
    """What the files read so far add up to."""

    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    route_keys: tuple[str, ...] = ()
    stacks: list[Stack] = field(default_factory=list)
    steps: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    places: Places = field(default_factory=Places)
    bounds: tuple[int, ...] = ()
    default_fields: dict[str, tuple[Source, ...]] = field(default_factory=dict)
    default_outcome: tuple[OutcomeStep, ...] = ()
    problems: list[Problem] = field(default_factory=list)


def load_rules(user_files: Sequence[Path] = ()) -> Rules:
    """Our rules, after those of the users' files in the order given.

    Raises `RulesError` with every problem of every file.
    """
    ours, theirs = _shipped(), _Draft()
    theirs.lists = dict(ours.lists)
    theirs.default_fields, theirs.default_outcome = ours.default_fields, ours.default_outcome
    for file in user_files:
        _read_file(file, theirs)
    problems = [*ours.problems, *theirs.problems]
    stacks = (*theirs.stacks, *ours.stacks)
    if problems:
        raise RulesError(problems)
    return Rules(
        stacks=stacks,
        route_keys=tuple(dict.fromkeys((*theirs.route_keys, *ours.route_keys))),
        dimensions=Dimensions(
            steps={
                name: (*theirs.steps.get(name, ()), *ours.steps.get(name, ()))
                for name in {**ours.steps, **theirs.steps}
            },
            places=theirs.places,
            prompt_bounds=theirs.bounds or ours.bounds,
        ),
    )


@cache
def _shipped() -> _Draft:
    """What our own files say; not to be changed."""
    draft = _Draft()
    for file in SHIPPED:
        _read_file(file, draft)
    return draft


_TOP: Final = (
    "lists",
    "route_from",
    "defaults",
    "stacks",
    "rules",
    "prompt_class",
    "dimensions",
    "replicas",
)


def _read_file(file: Path, draft: _Draft) -> None:
    document = Document(file, draft.lists)
    top = document.read()
    if top is not None:
        _read_top(document, top.mapping(_TOP), draft)
    draft.problems += document.problems


def _read_top(document: Document, parts: dict[str, Value], draft: _Draft) -> None:
    if "lists" in parts:
        for name, given in parts["lists"].entries():
            document.lists[name] = given.texts()
        draft.lists.update(document.lists)
    if "route_from" in parts:
        draft.route_keys += parts["route_from"].texts()
    if "defaults" in parts:
        defaults = parts["defaults"].mapping(("fields", "outcome"))
        if "fields" in defaults:
            draft.default_fields = read_fields(defaults["fields"])
        if "outcome" in defaults:
            draft.default_outcome = read_outcome(defaults["outcome"])
    if "stacks" in parts:
        for item in parts["stacks"].items():
            _read_stack(document, item, draft)
    if "rules" in parts:
        rules = _read_rules(document, document.file.stem, parts["rules"], draft)
        draft.stacks.append(Stack(document.file.stem, document.file.name, (), rules))
    if "prompt_class" in parts:
        draft.bounds = read_bounds(parts["prompt_class"])
    if "dimensions" in parts:
        for dimension, steps in read_dimensions(parts["dimensions"]).items():
            draft.steps[dimension] = draft.steps.get(dimension, ()) + steps
    if "replicas" in parts:
        draft.places = draft.places.extended(read_places(parts["replicas"]))


def _read_stack(document: Document, value: Value, draft: _Draft) -> None:
    parts = value.mapping(("stack", "title", "versions", "rules"))
    name = parts["stack"].text() if "stack" in parts else None
    if name is None or "rules" not in parts:
        value.fault("want stack and rules")
        return
    draft.stacks.append(
        Stack(
            name=name,
            title=(parts["title"].text() if "title" in parts else None) or name,
            versions=parts["versions"].texts() if "versions" in parts else (),
            rules=_read_rules(document, name, parts["rules"], draft),
        )
    )


_RULE: Final = (
    "rule",
    "when",
    "role",
    "hop",
    "end",
    "first_token_with_headers",
    "fields",
    "outcome",
)


def _read_rules(document: Document, stack: str, value: Value, draft: _Draft) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for item in value.items():
        rule = _read_rule(document, stack, item, draft)
        if rule is None:
            continue
        before = (*(r for s in draft.stacks for r in s.rules), *rules)
        same = next((r for r in before if r.name == rule.name), None)
        if same is not None:
            item.fault(f"rule {rule.name} is already at {same.file.name}:{same.line}")
        rules.append(rule)
    return tuple(rules)


def _read_rule(document: Document, stack: str, value: Value, draft: _Draft) -> Rule | None:
    parts = value.mapping(_RULE)
    missing = [name for name in ("rule", "when", "role") if name not in parts]
    if missing:
        value.fault(f"want {', '.join(missing)}")
        return None
    name, role_word = parts["rule"].text(), parts["role"].word(ROLES)
    hop_word = parts["hop"].word(HOPS_ACCEPTED) if "hop" in parts else None
    end_word = parts["end"].word(ENDS) if "end" in parts else "last_byte"
    when = read_conditions(parts["when"])
    fields = dict(draft.default_fields)
    if "fields" in parts:
        fields |= read_fields(parts["fields"])
    outcome = read_outcome(parts["outcome"]) if "outcome" in parts else draft.default_outcome
    with_headers = False
    if "first_token_with_headers" in parts:
        with_headers = parts["first_token_with_headers"].flag() or False
    if name is None or role_word is None:
        return None
    role = ROLES[role_word]
    if hop_word is None and "hop" not in parts and role in NEEDS_HOP:
        value.fault(f"want hop, which every {role_word} has; one of {', '.join(HOPS_ACCEPTED)}")
    return Rule(
        name=name,
        stack=stack,
        file=document.file,
        line=value.line,
        when=when,
        role=role,
        hop=HOP_INDEX.get(hop_word or BY_POSITION, HOP_BY_POSITION),
        end_is=ENDS[end_word or "last_byte"],
        first_token_with_headers=with_headers,
        fields=fields,
        outcome=outcome,
    )
