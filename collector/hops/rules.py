"""The rules by which spans become hops, read from data.

`hops.yaml` and `dimensions.yaml` in this folder are ours; files of users have the same form
and come first. `docs/hops.md` teaches the form.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from tailburn.collector.hops.columns import HOP_BY_POSITION, EndIs, Role
from tailburn.collector.hops.conditions import read_conditions
from tailburn.collector.hops.dimensions import (
    Dimensions,
    Places,
    Step,
    read_bounds,
    read_dimensions,
    read_places,
)
from tailburn.collector.hops.document import Document, Value
from tailburn.collector.hops.fields import OutcomeStep, Source, read_fields, read_outcome
from tailburn.collector.hops.ruleset import Rule, Rules, Stack
from tailburn.engine.names import HOP_INDEX
from tailburn.engine.problems import BadFiles, Problem

FOLDER: Final = Path(__file__).parent
SHIPPED: Final = (FOLDER / "hops.yaml", FOLDER / "dimensions.yaml")

ROLES: Final = {role.name.lower(): role for role in Role if role is not Role.UNRECOGNISED}
ENDS: Final = {
    "last_byte": EndIs.END,
    "headers": EndIs.HEADERS,
    "loose": EndIs.LOOSE,
    "child": EndIs.CHILD,
}
BY_POSITION: Final = "by_position"
HOPS_ACCEPTED: Final = (*HOP_INDEX, BY_POSITION)
NEEDS_HOP: Final = (Role.CALL, Role.SERVER, Role.EDGE, Role.PART, Role.LOAD)


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

    Raises `BadFiles` with every problem of every file.
    """
    ours, theirs = _shipped(), _Draft()
    theirs.lists = dict(ours.lists)
    theirs.default_fields, theirs.default_outcome = ours.default_fields, ours.default_outcome
    for file in user_files:
        _read_file(file, theirs)
    problems = [*ours.problems, *theirs.problems]
    stacks = (*theirs.stacks, *ours.stacks)
    if problems:
        raise BadFiles(problems)
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


__all__ = ["BY_POSITION", "ENDS", "ROLES", "SHIPPED", "Rule", "Rules", "Stack", "load_rules"]
