"""Spans of stacks that were not recorded, as their projects wrote them down."""

import json
from pathlib import Path

import pytest

from tailburn.collector.hops.explain import ExplainedSpan, Explainer
from tailburn.collector.hops.rules import load_rules
from tests.collector.hops.recorded import protobuf_of

START_NS = 1_796_145_000_000_000_000


@pytest.fixture(scope="module")
def samples(shared_dir: Path) -> Path:
    return shared_dir / "samples"


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer(load_rules())


def test_a_request_of_sglang_is_tokenizer_queue_prefill_and_decode(
    samples: Path, explainer: Explainer
) -> None:
    sent = json.loads((samples / "constructed_sglang_0.5.23_request.otlp.json").read_text())
    spans = list(explainer.explain(protobuf_of(sent)))
    assert all(span.rule for span in spans)
    hops = {span.name: span.hop for span in spans if span.role in ("server", "part")}
    assert hops == {
        " Req *": "engine",
        "tokenize": "tokenizer",
        "prefill_waiting": "queue",
        "prefill_forward": "prefill",
        "decode_forward": "decode",
    }
    request = next(span for span in spans if span.role == "server")
    assert request.fields["cached_tokens"] == 16
    assert request.sources["first_token_ms"] == "gen_ai.latency.time_to_first_token"


def test_a_request_of_vllm_is_one_span(samples: Path, explainer: Explainer) -> None:
    sent = json.loads((samples / "constructed_vllm_0.32_llm_request.otlp.json").read_text())
    (span,) = explainer.explain(protobuf_of(sent))
    assert (span.rule, span.outcome) == ("vllm/llm_request", "unknown")
    assert {"queue_ms", "prefill_ms", "decode_ms", "first_token_ms"} <= set(span.fields)


def _of_envoy(span: dict[str, object], explainer: Explainer) -> ExplainedSpan:
    """A span of Envoy AI Gateway, which is written down without ids and times."""
    span |= {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "b7ad6b7169203331",
        "startTimeUnixNano": str(START_NS),
        "endTimeUnixNano": str(START_NS + 2_000_000_000),
    }
    events = span.get("events")
    for event in events if isinstance(events, list) else ():
        event["timeUnixNano"] = str(START_NS + 250_000_000)
    scope_spans = {"scope": {"name": "envoyproxy/ai-gateway"}, "spans": [span]}
    request = {"resourceSpans": [{"scopeSpans": [scope_spans]}]}
    (found,) = explainer.explain(protobuf_of(request))
    return found


@pytest.mark.parametrize(
    ("name", "outcome", "streamed"),
    [
        ("chat-streaming", "ok", True),
        ("chat-basic", "ok", None),
        ("chat-bad-request", "error", None),
    ],
)
def test_envoy_ai_gateway_is_a_gateway_whatever_its_spans_are_called(
    name: str, outcome: str, streamed: bool | None, samples: Path, explainer: Explainer
) -> None:
    written = json.loads((samples / f"envoy_aigw_openinference_span_{name}.json").read_text())
    found = _of_envoy(written, explainer)
    assert (found.rule, found.hop) == ("envoy-ai-gateway/request", "gateway")
    assert (found.outcome, found.fields.get("streamed")) == (outcome, streamed)
    if streamed:
        assert found.fields["first_token_ms"] == 250.0
