"""The compiled classifier against the rules asked span by span."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.collector.hops import classify
from tailburn.collector.hops.classify import Classifier
from tailburn.collector.hops.columns import INTEGER_COLUMNS, HopColumns, empty
from tailburn.collector.hops.conditions import Facts
from tailburn.collector.hops.rules import Rules, load_rules
from tailburn.collector.hops.verdict import Verdict, decide
from tailburn.collector.spans import SpanBatch
from tests.collector.hops.batches import Resources, Span, Texts, make_batch
from tests.collector.hops.examples import EXAMPLES

RULES = load_rules()

_KEYS = sorted({w.key for w in RULES.wanted})
_VALUES = st.one_of(
    st.sampled_from(["chat", "*", "http.response.body", "/v1/chat/completions", "LLM", "proxy"]),
    st.integers(-5, 600),
    st.floats(allow_nan=True, allow_infinity=True),
    st.booleans(),
)
SPANS = st.builds(
    Span,
    name=st.sampled_from(sorted({span.name for span in EXAMPLES.values()})),
    scope=st.sampled_from(sorted({span.scope for span in EXAMPLES.values()})),
    kind=st.integers(0, 5),
    status=st.integers(0, 2),
    attributes=st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=6),
    resource=st.sampled_from([span.resource for span in EXAMPLES.values()]),
    events=st.lists(
        st.tuples(st.sampled_from([*RULES.events, "other"]), st.integers(0, 2**62)), max_size=4
    ),
)


class Known:
    """A classifier with what it needs, for spans written by hand."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.texts, self.resources = Texts(), Resources()
        self.classifier = Classifier(rules, self.texts, self.resources)

    def batch(self, spans: list[Span]) -> SpanBatch:
        return make_batch(spans, self.classifier.wanted, self.texts, self.resources)

    def columns(self, spans: list[Span]) -> HopColumns:
        return self.classifier.classify(self.batch(spans))


SHIPPED = Known()


def as_table(columns: HopColumns) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(columns, name).tolist() for name in INTEGER_COLUMNS), strict=True))


@settings(max_examples=150, deadline=None)
@given(st.lists(SPANS, min_size=1, max_size=12))
def test_every_span_gets_the_rule_that_asking_one_by_one_gives(spans: list[Span]) -> None:
    batch = SHIPPED.batch(spans)
    columns = SHIPPED.classifier.classify(batch)
    for i in range(len(batch)):
        verdict = decide(RULES, SHIPPED.classifier.facts(batch, i))
        assert columns.class_id[i] == (0 if verdict.rule is None else verdict.rule + 1)


@settings(max_examples=100, deadline=None)
@given(st.lists(SPANS, min_size=2, max_size=10), st.integers(1, 9))
def test_it_makes_no_difference_how_spans_are_batched(spans: list[Span], cut: int) -> None:
    whole = as_table(SHIPPED.columns(spans))
    parts = as_table(SHIPPED.columns(spans[:cut])) + as_table(SHIPPED.columns(spans[cut:]))
    assert parts == whole


@settings(max_examples=100, deadline=None)
@given(SPANS)
def test_the_order_of_attributes_makes_no_difference(span: Span) -> None:
    turned = replace(span, attributes=dict(reversed(list(span.attributes.items()))))
    first, second = as_table(SHIPPED.columns([span, turned]))
    assert first == second


@settings(max_examples=150, deadline=None)
@given(st.lists(SPANS, min_size=1, max_size=12))
def test_no_value_is_out_of_its_bounds(spans: list[Span]) -> None:
    columns = SHIPPED.columns(spans)
    for name in ("queue_ns", "prefill_ns", "decode_ns", "prompt_tokens", "output_tokens"):
        assert (getattr(columns, name) >= -1).all()
    for name in ("first_token_ns", "last_token_ns"):
        assert (getattr(columns, name) >= 0).all()
    assert set(np.unique(columns.streamed)) <= {-1, 0, 1}
    assert set(np.unique(columns.outcome)) <= {0, 1, 2, 3}
    assert ((columns.http_status >= 0) & (columns.http_status <= 999)).all()


def test_columns_have_the_types_that_the_stitcher_reads() -> None:
    columns, unknown = SHIPPED.columns(list(EXAMPLES.values())), empty(1)
    for name in INTEGER_COLUMNS:
        assert getattr(columns, name).dtype == getattr(unknown, name).dtype, name


def test_rules_are_asked_once_per_kind_of_span(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(rules: Rules, facts: Facts) -> Verdict:
        asked.append(facts.name)
        return decide(rules, facts)

    monkeypatch.setattr(classify, "decide", counted)
    spans = [
        Span("llm_request", "vllm.tracing.otel", attributes={"gen_ai.latency.e2e": i / 7})
        for i in range(500)
    ]
    Known().columns([*spans, Span("other")])
    assert asked == ["llm_request", "other"]


def test_more_kinds_than_are_remembered_are_still_recognised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(classify, "MOST_KEYS", 300)
    known = Known()
    for start in range(0, 6000, 500):
        spans = [
            Span(f"name {i}", attributes={"gen_ai.operation.name": "chat"})
            for i in range(start, start + 500)
        ]
        found = known.columns(spans).class_id
        assert {known.classifier.classes[c].rule for c in found} == {"genai/call"}


def test_an_empty_batch_gives_empty_columns() -> None:
    columns = SHIPPED.columns([])
    assert all(len(getattr(columns, name)) == 0 for name in INTEGER_COLUMNS)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Known:
    file = tmp_path_factory.mktemp("rules") / "own.yaml"
    file.write_text(
        """
rules:
  - rule: own/all
    when: {name: own}
    role: server
    hop: engine
    fields:
      first_token:
        - {attribute: a.ms, unit: ms}
        - {attribute: b.us, unit: us, from: end}
        - {attribute: c.s, unit: s, from: epoch}
        - {event: early}
        - {event: late}
      last_token: {event: late}
      queue: {event: early, until: late}
      e2e: {attribute: e.ns, unit: ns}
      streamed: [{attribute: s}, {event: early}]
      attempt: [n, {value: 2}]
      own_id: [id.a, id.b]
"""
    )
    return Known(load_rules([file]))


@pytest.mark.parametrize(
    ("attributes", "events", "first_token_ns"),
    [
        ({"a.ms": 250.5, "b.us": 1, "c.s": 3}, (), 1_250_500_000),
        ({"c.s": 3, "b.us": 2.0}, (), 2_000_002_000),
        ({"c.s": "3.25"}, (), 3_250_000_000),
        ({"a.ms": -1, "c.s": 3}, (), 3_000_000_000),
        ({"a.ms": math.nan, "c.s": 3}, (), 3_000_000_000),
        ({"a.ms": math.inf}, (), 0),
        ({"a.ms": "soon"}, (("late", 1_700_000_000),), 1_700_000_000),
        ({}, (("late", 1_700_000_000), ("early", 1_800_000_000)), 1_800_000_000),
        ({}, (("early", 1_800_000_000), ("early", 1_300_000_000)), 1_300_000_000),
        ({"a.ms": 5}, (("early", 1_800_000_000),), 1_005_000_000),
        ({}, (), 0),
    ],
)
def test_a_first_token_is_read_from_the_first_source_that_tells(
    attributes: dict[str, str | float],
    events: tuple[tuple[str, int], ...],
    first_token_ns: int,
    own: Known,
) -> None:
    columns = own.columns([Span("own", attributes=attributes, events=events)])
    assert columns.first_token_ns[0] == first_token_ns


def test_durations_flags_and_constants_come_from_events_and_rules(own: Known) -> None:
    events = (("late", 1_900_000_000), ("early", 1_200_000_000), ("late", 1_500_000_000))
    bare, told = Span("own", events=events), Span("own", attributes={"n": 0, "s": "False"})
    columns = own.columns([bare, told])
    assert columns.queue_ns.tolist() == [300_000_000, -1]
    assert columns.last_token_ns.tolist() == [1_900_000_000, 0]
    assert columns.streamed.tolist() == [1, 0]
    assert columns.attempt.tolist() == [2, 0]


def test_an_event_before_the_one_it_lasts_from_tells_no_duration(own: Known) -> None:
    events = (("late", 1_100_000_000), ("early", 1_200_000_000))
    columns = own.columns([Span("own", events=events)])
    assert columns.queue_ns[0] == -1
