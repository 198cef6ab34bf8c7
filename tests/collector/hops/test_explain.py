"""Why a span is what it is, and what to do about one that no rule knows."""

from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from tailburn.collector.hops.check import check_files
from tailburn.collector.hops.explain import Explainer, unrecognised
from tailburn.collector.hops.rules import Rules, load_rules
from tests.collector.hops.batches import Plain, Span
from tests.collector.hops.examples import CHAT, EXAMPLES, SERVER, span

TRACE, SPAN = bytes(range(1, 17)), bytes(range(1, 9))


def _any(value: Plain) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    return (
        AnyValue(double_value=value) if isinstance(value, float) else AnyValue(string_value=value)
    )


def body_of(*spans: Span) -> bytearray:
    """The spans as a sender would send them, each with its resource and scope."""
    request = ExportTraceServiceRequest()
    for number, given in enumerate(spans, 1):
        resource_spans = request.resource_spans.add()
        for key, value in given.resource.items():
            resource_spans.resource.attributes.append(KeyValue(key=key, value=_any(value)))
        scope_spans = resource_spans.scope_spans.add()
        scope_spans.scope.name = given.scope
        sent = scope_spans.spans.add(
            trace_id=TRACE,
            span_id=number.to_bytes(8, "big"),
            name=given.name,
            kind=given.kind,
            start_time_unix_nano=given.start_ns,
            end_time_unix_nano=given.end_ns,
        )
        sent.status.code = given.status
        for key, value in given.attributes.items():
            sent.attributes.append(KeyValue(key=key, value=_any(value)))
        for name, at in given.events:
            sent.events.add(name=name, time_unix_nano=at)
    return bytearray(request.SerializeToString())


@pytest.fixture(scope="module")
def rules() -> Rules:
    return load_rules()


@pytest.fixture(scope="module")
def explainer(rules: Rules) -> Explainer:
    return Explainer(rules)


def test_a_recognised_span_says_its_rule_its_reasons_and_what_was_read(
    explainer: Explainer,
) -> None:
    request = span(
        "llm_request",
        SERVER,
        "vllm.tracing.otel",
        "vllm",
        gen_ai__latency__time_to_first_token=0.25,
        gen_ai__latency__time_in_queue=0.125,
        gen_ai__request__id="chatcmpl-af386d92869305f4",
        gen_ai__usage__completion_tokens=16,
    )
    (found,) = explainer.explain(body_of(request))
    assert (found.rule, found.role, found.hop) == ("vllm/llm_request", "server", "engine")
    file, _, line = found.place.partition(":")
    assert file == "hops.yaml"
    assert line.isdecimal()
    assert found.because == ("scope: vllm.tracing.otel", "name: llm_request")
    assert found.fields["first_token_ms"] == 250.0
    assert found.fields["queue_ms"] == 125.0
    assert found.fields["output_tokens"] == 16
    assert found.fields["own_id"] == "chatcmpl-af386d92869305f4"
    assert found.sources["queue_ms"] == "gen_ai.latency.time_in_queue"
    assert found.sources["own_id"] == "gen_ai.request.id"
    assert found.trace_id == TRACE.hex()


def test_a_place_that_the_trace_decides_is_said_to_be_open(explainer: Explainer) -> None:
    (found,) = explainer.explain(body_of(EXAMPLES["http/call"]))
    assert (found.hop, found.end) == ("by_position", "headers")
    assert f"route: {CHAT} (*/chat/completions)" in found.because


def test_a_near_miss_names_the_condition_that_failed(explainer: Explainer) -> None:
    renamed = span("llm_request", SERVER, "vllm.telemetry", "vllm")
    (found,) = explainer.explain(body_of(renamed))
    assert found.rule == ""
    assert (
        "vllm/llm_request: scope: vllm.telemetry, wanted vllm.tracing.otel | vllm.llm_engine"
        in found.near
    )


def test_that_only_the_kind_is_right_makes_no_near_miss(explainer: Explainer) -> None:
    (found,) = explainer.explain(body_of(span("ask")))
    assert found.near == ()


def test_unrecognised_spans_are_counted_by_kind_the_most_frequent_first(
    explainer: Explainer,
) -> None:
    spans = [span("rare", tool="x"), *[span("ask", lab__phase="idle")] * 3]
    rare_and_ask = unrecognised(list(explainer.explain(body_of(*spans, EXAMPLES["genai/call"]))))
    assert [(kind.name, kind.count) for kind in rare_and_ask] == [("ask", 3), ("rare", 1)]
    assert rare_and_ask[0].attributes == ("lab.phase",)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("serve model", 2), ('a "b"', 1), ("a: \\ b", 3), ("", 4), ("multi\nline: x", 1)],
)
def test_the_drafted_rule_is_a_rule_that_matches(
    name: str, kind: int, explainer: Explainer, tmp_path: Path
) -> None:
    unknown = span(name, kind, "new.stack")
    (draft,) = unrecognised(list(explainer.explain(body_of(unknown))))
    file = tmp_path / "ours.yaml"
    file.write_text("rules:\n" + draft.draft())
    assert check_files([file]).problems == ()
    (found,) = Explainer(load_rules([file])).explain(body_of(unknown))
    assert found.place == "ours.yaml:2"
