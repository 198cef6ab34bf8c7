"""Why a span is what it is: the rule that matched, what it was asked, what was read off it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.hops.classify import Classifier
from tailburn.collector.hops.columns import HOP_BY_POSITION, HopColumns, Role
from tailburn.collector.hops.conditions import KIND_NAMES, Facts, Place
from tailburn.collector.hops.fields import FORMS, Form, Source
from tailburn.collector.hops.plan import ABSENT, COLUMN_OF
from tailburn.collector.hops.rules import BY_POSITION, ENDS
from tailburn.collector.hops.ruleset import Rule, Rules
from tailburn.collector.hops.verdict import TEXTS
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.spans import SpanBatch
from tailburn.engine.names import HOPS, OUTCOMES

Shown = str | int | float | bool
NEAR_MISSES: Final = 3
KEYS_SHOWN: Final = 12


@dataclass(frozen=True)
class ExplainedSpan:
    """One span and what recognition made of it. Unrecognised: `rule` is '', `near` may help."""

    trace_id: str
    span_id: str
    service: str
    scope: str
    name: str
    kind: str
    rule: str
    place: str  # file:line of the rule
    role: str
    hop: str
    end: str
    outcome: str
    because: tuple[str, ...]  # the conditions, each with what the span has there
    fields: Mapping[str, Shown]  # what was read; times as ms after the span's start
    sources: Mapping[str, str]  # where a field was read from
    near: tuple[str, ...]  # rules that fail on one condition alone
    attributes: tuple[str, ...]  # keys


@dataclass(frozen=True)
class Unrecognised:
    """Spans of one kind that no rule knows."""

    count: int
    service: str
    scope: str
    name: str
    kind: str
    attributes: tuple[str, ...]
    near: tuple[str, ...]

    def draft(self) -> str:
        """A rule to start from, as YAML."""
        word = re.sub(r"[^\w.-]+", "-", self.name)[:40].strip("-") or "span"
        given = {"name": self.name, "scope": self.scope}
        if not self.name:
            given["service"] = self.service
        when = "".join(f", {key}: {json.dumps(text)}" for key, text in given.items() if text)
        return (
            f"  - rule: mine/{word}\n"
            f"    when: {{kind: {self.kind}{when}}}\n"
            f"    role: {_likely_role(self.kind)}\n"
            f"    hop: by_position\n"
        )


def _likely_role(kind: str) -> str:
    return {"server": "server", "client": "edge"}.get(kind, "inner")


class Explainer:
    """Takes bodies and explains their spans."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._decoder = Decoder(rules.wanted)
        self._texts = self._decoder.dictionary
        self._classifier = Classifier(rules, self._texts, self._decoder.resources)

    def explain(self, body: bytearray) -> Iterator[ExplainedSpan]:
        """The spans of one ExportTraceServiceRequest in protobuf. Raises BadBody."""
        self._decoder.add(body, received_ns=0, tenant="")
        batch = self._decoder.take()
        columns = self._classifier.classify(batch)
        for i in range(len(batch)):
            yield self._span(batch, columns, i)

    def _span(self, batch: SpanBatch, columns: HopColumns, i: int) -> ExplainedSpan:
        facts = self._classifier.facts(batch, i)
        class_id = int(columns.class_id[i])
        rule = self._rules.rules[class_id - 1] if class_id else None
        attributes = self._attributes(batch, i)
        fields = self._fields(columns, int(batch.start_ns[i]), i)
        sources = _sources(rule, facts, attributes) if rule else {}
        for name in ("own_id", "peer_id"):
            if name in fields and name in sources:
                fields[name] = attributes.get(sources[name], fields[name])
        return ExplainedSpan(
            trace_id=batch.trace[i].tobytes().hex(),
            span_id=batch.span[i : i + 1].tobytes().hex(),
            service=facts.service,
            scope=facts.scope,
            name=facts.name,
            kind=KIND_NAMES.get(facts.kind, str(facts.kind)),
            rule=rule.name if rule else "",
            place=f"{rule.file.name}:{rule.line}" if rule else "",
            role=Role(int(columns.role[i])).name.lower(),
            hop=_hop(int(columns.hop[i]), rule),
            end=_end(rule),
            outcome=OUTCOMES[int(columns.outcome[i])],
            because=tuple(c.explain(facts) for c in rule.when) if rule else (),
            fields=fields,
            sources={name: key for name, key in sources.items() if name in fields},
            near=() if rule else near_misses(self._rules, facts),
            attributes=tuple(sorted(attributes)),
        )

    def _attributes(self, batch: SpanBatch, i: int) -> dict[str, Shown]:
        found: dict[str, Shown] = {}
        for j in _entries(batch.num_offset, i):
            found[self._texts.text(int(batch.num_key[j]))] = float(batch.num_value[j])
        for j in _entries(batch.str_offset, i):
            first, end = batch.str_bytes_offset[j : j + 2]
            text = batch.str_bytes[first:end].tobytes().decode(errors="replace")
            found[self._texts.text(int(batch.str_key[j]))] = text.rstrip()
        return found

    def _fields(self, columns: HopColumns, start_ns: int, i: int) -> dict[str, Shown]:
        found: dict[str, Shown] = {}
        for (name, column), absent in zip(COLUMN_OF.items(), ABSENT, strict=True):
            value = int(getattr(columns, column)[i])
            if value == absent:
                continue
            if FORMS[name] is Form.TIME:
                found[f"{name}_ms"] = round((value - start_ns) / 1e6, 3)
            elif FORMS[name] is Form.DURATION:
                found[f"{name}_ms"] = round(value / 1e6, 3)
            else:
                found[name] = bool(value) if FORMS[name] is Form.FLAG else value
        for name in ("own_id", "peer_id"):
            if value := int(getattr(columns, name)[i]):
                found[name] = f"{value:016x}"
        for name in TEXTS:
            if code := int(getattr(columns, name)[i]):
                found[name] = self._texts.text(code)
        return found


def _entries(offset: NDArray[np.int32], i: int) -> range:
    return range(int(offset[i]), int(offset[i + 1]))


def _hop(hop: int, rule: Rule | None) -> str:
    if hop != HOP_BY_POSITION:
        return HOPS[hop]
    by_position = rule is not None and rule.role in (Role.SERVER, Role.EDGE)
    return BY_POSITION if by_position else ""


def _end(rule: Rule | None) -> str:
    return "" if rule is None else next(word for word, end in ENDS.items() if end is rule.end_is)


def _sources(rule: Rule, facts: Facts, attributes: Mapping[str, Shown]) -> dict[str, str]:
    """By field, the first source that the span has."""
    found: dict[str, str] = {}
    for name, sources in rule.fields.items():
        timed = FORMS[name] in (Form.TIME, Form.DURATION)
        for source in sources:
            if _is_there(source, facts, attributes):
                found[f"{name}_ms" if timed else name] = str(source)
                break
    return found


def _is_there(source: Source, facts: Facts, attributes: Mapping[str, Shown]) -> bool:
    if source.event:
        return source.event in facts.events
    if source.resource:
        return source.resource in facts.resource
    if source.event_attribute:
        return True
    return source.value >= 0 or source.attribute in attributes


def near_misses(rules: Rules, facts: Facts) -> tuple[str, ...]:
    """Rules that would match but for one condition, and that condition. That the kind is right
    makes no near miss."""
    found: list[str] = []
    for rule in rules.rules:
        failing = [condition for condition in rule.when if not condition.holds(facts)]
        holding = [c for c in rule.when if c not in failing and c.place is not Place.KIND]
        if len(failing) == 1 and holding:
            found.append(f"{rule.name}: {failing[0].explain(facts)}")
    return tuple(found[:NEAR_MISSES])


def unrecognised(spans: Sequence[ExplainedSpan]) -> list[Unrecognised]:
    """What no rule knows, by kind of span, the most frequent first."""
    groups: dict[tuple[str, ...], list[ExplainedSpan]] = {}
    for span in spans:
        if not span.rule:
            groups.setdefault((span.service, span.scope, span.name, span.kind), []).append(span)
    found = [_kind_of(group[0], len(group)) for group in groups.values()]
    return sorted(found, key=lambda kind: -kind.count)


def _kind_of(span: ExplainedSpan, count: int) -> Unrecognised:
    return Unrecognised(
        count=count,
        service=span.service,
        scope=span.scope,
        name=span.name,
        kind=span.kind,
        attributes=span.attributes[:KEYS_SHOWN],
        near=span.near,
    )
