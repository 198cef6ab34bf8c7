"""What everything but numbers says of a span: decided once per kind of span, in plain Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tailburn.collector.hops.conditions import Facts
from tailburn.collector.hops.dimensions import BY_RULE, PLACED
from tailburn.collector.hops.fields import FORMS, Form, OutcomeStep, Source, Witness, Word
from tailburn.collector.hops.ruleset import Rule, Rules
from tailburn.engine.names import OUTCOMES

_FIELDS: Final = tuple(name for name, form in FORMS.items() if form is Form.TEXT)
TEXTS: Final = (
    *(name for name in _FIELDS if name not in BY_RULE),
    *BY_RULE,
    "service",
)
"""Columns of `HopColumns` that hold the code of a text."""

ERROR, OK = OUTCOMES.index("error"), OUTCOMES.index("ok")
_STATUS_OK, _STATUS_ERROR = 1, 2


@dataclass(frozen=True)
class OutcomeWords:
    """The outcome as far as no number is asked: before `http_error`, before `http_ok`, after."""

    words: tuple[int, int, int] = (0, 0, 0)
    http_error: bool = False
    http_ok: bool = False


@dataclass(frozen=True)
class Verdict:
    """Which rule a kind of span matches, and its texts in the order of `TEXTS`."""

    rule: int | None
    texts: tuple[str, ...]
    outcome: OutcomeWords


def decide(rules: Rules, facts: Facts) -> Verdict:
    """Ask the rules, then the dimensions."""
    index = rules.first_match(facts)
    if index is None:
        return Verdict(None, texts_of(rules, None, facts), OutcomeWords())
    rule = rules.rules[index]
    return Verdict(index, texts_of(rules, rule, facts), weigh(rule.outcome, facts))


def texts_of(rules: Rules, rule: Rule | None, facts: Facts) -> tuple[str, ...]:
    """The span's texts in the order of `TEXTS`, '' for unknown and for what its resource tells
    (`Dimensions.of_resource`)."""
    found = {"service": facts.service}
    if rule is not None:
        for name in _FIELDS:
            sources = rule.fields.get(name, ())
            found[name] = next(filter(None, (_text(source, facts) for source in sources)), "")
        found["route"] = found["route"] or route_of(rule, facts)
    facts = facts.with_model(found.get("model", ""))
    dimensions = rules.dimensions
    for name in BY_RULE:
        if not found.get(name) and name not in dimensions.by_resource:
            found[name] = dimensions.value_for(name, facts)
    for name in PLACED:
        placed = dimensions.places.value_for(name, found.get("replica", ""))
        found[name] = placed or found.get(name, "")
    return tuple(found.get(name, "") for name in TEXTS)


def _text(source: Source, facts: Facts) -> str:
    if source.resource:
        return facts.resource.get(source.resource, "")
    return facts.attributes.get(source.attribute, "")


def route_of(rule: Rule, facts: Facts) -> str:
    """The path that made the rule match, else the first there is."""
    for condition in rule.when:
        if condition.place == "route":
            fitting = next(filter(condition.patterns, facts.routes), "")
            if fitting:
                return fitting
    return facts.routes[0] if facts.routes else ""


def weigh(steps: Sequence[OutcomeStep], facts: Facts) -> OutcomeWords:
    """Let each witness speak in turn; the first word of each stretch counts."""
    words = [0, 0, 0]
    stretch = 0
    http_error = http_ok = False
    for step in steps:
        if step is Word.HTTP_ERROR:
            http_error, stretch = True, 1
        elif step is Word.HTTP_OK:
            http_ok, stretch = True, 2
        elif words[stretch] == 0:
            words[stretch] = _word(step, facts)
    return OutcomeWords((words[0], words[1], words[2]), http_error, http_ok)


def _word(step: OutcomeStep, facts: Facts) -> int:
    if isinstance(step, Witness):
        text = facts.attributes.get(step.attribute)
        return 0 if text is None else step.verdict(text)
    if step is Word.STATUS_ERROR:
        return ERROR if facts.status == _STATUS_ERROR else 0
    return OK if facts.status == _STATUS_OK else 0
