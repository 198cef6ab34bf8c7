"""Spans to hops: the rules are asked once per distinct kind of span, the rest is compiled."""

import secrets
from dataclasses import dataclass
from typing import Final

import numpy as np

from tailburn.collector.hops import kernels
from tailburn.collector.hops.columns import HOP_BY_POSITION, EndIs, HopColumns, Role
from tailburn.collector.hops.conditions import Facts
from tailburn.collector.hops.fields import FORMS, Form
from tailburn.collector.hops.origins import Origins, ResourceTexts, Texts
from tailburn.collector.hops.plan import ABSENT, COLUMN_OF, IDS, MOST_BY_FIELD, NUMBERS, make_plan
from tailburn.collector.hops.ruleset import Rules
from tailburn.collector.hops.verdict import TEXTS, Verdict, decide
from tailburn.collector.otlp.wanted import Wanted
from tailburn.collector.spans import I32, I64, U64, SpanBatch

MOST_KEYS: Final = 1 << 17
"""Kinds of spans remembered; past this, all are forgotten and learnt anew."""


@dataclass(frozen=True)
class SpanClass:
    """What every span of one rule has in common. Class 0 is the unrecognised, without a rule."""

    rule: str
    stack: str
    role: Role
    hop: int
    end_is: EndIs
    first_token_with_headers: bool


UNRECOGNISED: Final = SpanClass(
    "", "", Role.UNRECOGNISED, HOP_BY_POSITION, EndIs.END, first_token_with_headers=False
)


class Classifier:
    """Recognises spans. One instance per thread; codes are those of its dictionary."""

    def __init__(self, rules: Rules, dictionary: Texts, resources: ResourceTexts) -> None:
        self._rules = rules
        self._dictionary = dictionary
        self._origins = Origins(rules, dictionary, resources)
        self.wanted: tuple[Wanted, ...] = rules.wanted
        self.classes: list[SpanClass] = [UNRECOGNISED] + [
            SpanClass(r.name, r.stack, r.role, r.hop, r.end_is, r.first_token_with_headers)
            for r in rules.rules
        ]
        self._plan = make_plan(rules)
        self._class_columns = np.array(
            [(c.role, c.hop, c.end_is) for c in self.classes], np.int8
        ).T.copy()
        self._event_of_code = self._event_codes()
        for word in rules.words:  # so that a full dictionary never hides what rules look for
            dictionary.own_code(word)
        self._seed = secrets.randbits(62)
        self._forget()

    def classify(self, batch: SpanBatch) -> HopColumns:
        """One entry per span, in the batch's order."""
        entry = self._entries(batch)
        class_id = self._entry_class[entry]
        numbers, ids = self._extract(batch, class_id)
        outcome = np.empty(len(batch), np.int8)
        kernels.judge(entry, self._entry_words, self._entry_http, numbers, outcome)
        role, hop, end_is = self._class_columns[:, class_id]
        texts = dict(zip(TEXTS, self._entry_texts[entry].T, strict=True))
        self._origins.fill(texts, batch.resource)
        wide = {COLUMN_OF[name]: numbers[i] for i, name in enumerate(NUMBERS)}
        for name in ("streamed", "http_status", "attempt"):
            wide[name] = wide[name].astype(np.int8 if name == "streamed" else np.int32)
        return HopColumns(
            class_id=class_id,
            role=role,
            hop=hop,
            end_is=end_is,
            outcome=outcome,
            **wide,
            **{name: ids[i] for i, name in enumerate(IDS)},
            **texts,
        )

    def facts(self, batch: SpanBatch, i: int) -> Facts:
        """Span `i` as the rules see it."""
        text = self._dictionary.text
        attributes: dict[str, str] = {}
        for j in range(batch.wanted_offset[i], batch.wanted_offset[i + 1]):
            wanted = self.wanted[batch.wanted_key[j]]
            if wanted.where == "span":
                attributes[wanted.key] = text(max(int(batch.wanted_code[j]), 0))
        events = batch.event_name[batch.event_offset[i] : batch.event_offset[i + 1]]
        return Facts(
            scope=text(int(batch.scope[i])),
            name=text(int(batch.name[i])),
            kind=int(batch.kind[i]),
            status=int(batch.status[i]),
            tenant=text(int(batch.tenant[i])),
            resource=self._origins.attributes(int(batch.resource[i])),
            attributes=attributes,
            events=frozenset(text(int(code)) for code in np.unique(events)),
            route_keys=self._rules.route_keys,
        )

    def _event_codes(self) -> I32:
        """Index into `Rules.events` by dictionary code, -1 for all others."""
        codes = [self._dictionary.own_code(name) for name in self._rules.events]
        table = np.full(max(codes, default=0) + 1, -1, np.int32)
        for index, code in enumerate(codes):
            if code > 0:
                table[code] = index
        return table

    def _forget(self) -> None:
        self._slots: U64 = np.zeros(1 << 12, np.uint64)
        self._entry_at: I32 = np.zeros(1 << 12, np.int32)
        self._entry_keys: list[int] = []
        self._entry_class: I32 = np.zeros(256, np.int32)
        self._entry_words = np.zeros((256, 3), np.int8)
        self._entry_http = np.zeros((256, 2), np.int8)
        self._entry_texts: I32 = np.zeros((256, len(TEXTS)), np.int32)

    def _entries(self, batch: SpanBatch) -> I32:
        """Which remembered kind each span is; new kinds are decided and remembered."""
        if len(self._entry_keys) > MOST_KEYS:
            self._forget()
        self._origins.learn(batch.resource)
        n = len(batch)
        key: U64 = np.empty(n, np.uint64)
        kernels.keys_of(
            batch.name,
            batch.scope,
            batch.kind,
            batch.status,
            self._origins.group[batch.resource],
            batch.tenant,
            batch.wanted_offset,
            batch.wanted_key,
            batch.wanted_code,
            self._plan.decisive,
            batch.event_offset,
            batch.event_name,
            self._event_of_code,
            self._plan.event_decisive,
            self._seed,
            key,
        )
        entry: I32 = np.empty(n, np.int32)
        missing: I32 = np.empty(n, np.int32)
        count = kernels.find_known(key, self._slots, self._entry_at, entry, missing)
        if count:
            self._learn(batch, key, missing[:count], entry)
        return entry

    def _learn(self, batch: SpanBatch, key: U64, missing: I32, entry: I32) -> None:
        fresh: dict[int, int] = {}
        for i in missing.tolist():
            k = int(key[i])
            number = fresh.get(k)
            if number is None:
                number = fresh[k] = self._remember(k, decide(self._rules, self.facts(batch, i)))
            entry[i] = number

    def _remember(self, key: int, verdict: Verdict) -> int:
        number = len(self._entry_keys)
        self._entry_keys.append(key)
        if number == len(self._entry_class):
            self._grow()
        if 2 * len(self._entry_keys) > len(self._slots):
            self._rehash()
        else:
            kernels.remember(np.uint64(key), number, self._slots, self._entry_at)
        outcome = verdict.outcome
        self._entry_class[number] = 0 if verdict.rule is None else verdict.rule + 1
        self._entry_words[number] = outcome.words
        self._entry_http[number] = outcome.http_error, outcome.http_ok
        codes = [self._dictionary.code(text) if text else 0 for text in verdict.texts]
        self._entry_texts[number] = codes
        return number

    def _grow(self) -> None:
        more = 2 * len(self._entry_class)
        self._entry_class = np.resize(self._entry_class, more)
        self._entry_words = np.resize(self._entry_words, (more, 3))
        self._entry_http = np.resize(self._entry_http, (more, 2))
        self._entry_texts = np.resize(self._entry_texts, (more, len(TEXTS)))

    def _rehash(self) -> None:
        size = 2 * len(self._slots)
        self._slots = np.zeros(size, np.uint64)
        self._entry_at = np.zeros(size, np.int32)
        for number, key in enumerate(self._entry_keys):
            kernels.remember(np.uint64(key), number, self._slots, self._entry_at)

    def _extract(self, batch: SpanBatch, class_id: I32) -> tuple[I64, U64]:
        plan = self._plan
        numbers: I64 = np.empty((len(NUMBERS), len(batch)), np.int64)
        numbers[:] = _ABSENT[:, np.newaxis]
        ids: U64 = np.zeros((len(IDS), len(batch)), np.uint64)
        feeds = plan.attributes
        kernels.extract(
            class_id,
            batch.start_ns,
            batch.end_ns,
            batch.wanted_offset,
            batch.wanted_key,
            batch.wanted_num,
            batch.wanted_id,
            feeds.inputs,
            feeds.first,
            feeds.field,
            feeds.rank,
            feeds.factor,
            feeds.base,
            plan.has_defaults,
            plan.defaults,
            plan.default_rank,
            _MOST,
            numbers,
            ids,
        )
        feeds = plan.events
        kernels.extract_from_events(
            class_id,
            plan.reads_events,
            batch.event_offset,
            batch.event_name,
            batch.event_ns,
            self._event_of_code,
            feeds.inputs,
            feeds.first,
            feeds.field,
            feeds.rank,
            feeds.until,
            _IS_FLAG,
            _IS_LAST,
            _ABSENT,
            numbers,
        )
        return numbers, ids


_MOST: Final = np.array(MOST_BY_FIELD, np.int64)
_ABSENT: Final = np.array(ABSENT, np.int64)
_IS_FLAG: Final = np.array([FORMS[name] is Form.FLAG for name in NUMBERS], np.int8)
_IS_LAST: Final = np.array([name == "last_token" for name in NUMBERS], np.int8)
