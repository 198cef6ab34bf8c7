"""The shipped rules: each reached by the span it is for, and what is read off the known stacks."""

import pytest

from tailburn.collector.hops.classify import Classifier
from tailburn.collector.hops.columns import HopColumns, Role
from tailburn.collector.hops.rules import Rules, load_rules
from tailburn.collector.otlp.ids import id_hash
from tailburn.engine.names import HOPS, OUTCOMES
from tests.collector.hops.batches import Resources, Span, Texts, make_batch
from tests.collector.hops.examples import CHAT, CLIENT, EXAMPLES, SERVER, span


@pytest.fixture(scope="module")
def rules() -> Rules:
    return load_rules()


class Known:
    """A classifier with what it needs, for hand-made spans."""

    def __init__(self, rules: Rules) -> None:
        self.texts, self.resources = Texts(), Resources()
        self.classifier = Classifier(rules, self.texts, self.resources)

    def columns(self, *spans: Span) -> HopColumns:
        batch = make_batch(spans, self.classifier.wanted, self.texts, self.resources)
        return self.classifier.classify(batch)

    def rule(self, columns: HopColumns, i: int = 0) -> str:
        return self.classifier.classes[columns.class_id[i]].rule


@pytest.fixture
def known(rules: Rules) -> Known:
    return Known(rules)


def test_every_rule_has_an_example_span(rules: Rules) -> None:
    assert {rule.name for rule in rules.rules} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_earlier_rule_takes_the_span_a_rule_is_for(name: str, known: Known) -> None:
    assert known.rule(known.columns(EXAMPLES[name])) == name


def test_one_vllm_span_tells_queue_prefill_and_decode(known: Known) -> None:
    request = span(
        "llm_request",
        SERVER,
        "vllm.tracing.otel",
        gen_ai__latency__time_to_first_token=0.5,
        gen_ai__latency__time_in_queue=0.3,
        gen_ai__latency__time_in_model_prefill=0.15,
        gen_ai__latency__time_in_model_decode=1.25,
        gen_ai__latency__e2e=1.8,
        gen_ai__usage__prompt_tokens=700,
        gen_ai__usage__completion_tokens=64,
        gen_ai__request__max_tokens=128,
        gen_ai__request__id="chatcmpl-af386d92869305f4",
    )
    found = known.columns(request)
    assert HOPS[found.hop[0]] == "engine"
    assert found.first_token_ns[0] == request.start_ns + 500_000_000
    assert (found.queue_ns[0], found.prefill_ns[0], found.decode_ns[0]) == (
        300_000_000,
        150_000_000,
        1_250_000_000,
    )
    assert found.e2e_ns[0] == 1_800_000_000
    assert (found.prompt_tokens[0], found.output_tokens[0], found.max_output_tokens[0]) == (
        700,
        64,
        128,
    )
    assert found.cached_tokens[0] == -1
    assert found.own_id[0] == id_hash("af386d92869305f4")


def test_litellms_call_and_the_clients_have_one_name_and_two_hops(known: Known) -> None:
    own = EXAMPLES["genai/call"]
    litellms = EXAMPLES["litellm/call-v2"]
    found = known.columns(own, litellms)
    assert list(found.role) == [Role.CALL, Role.EDGE]


def test_a_failed_try_of_litellm_is_named_by_its_call_id(known: Known) -> None:
    call_id = "cb4168e7-6a6c-4cdc-bda2-5b4d84d6e88b"
    failed = span(
        "litellm_request",
        scope="litellm",
        gen_ai__response__id=call_id,
        litellm__call_id=call_id,
        error__type="InternalServerError",
    )
    found = known.columns(failed)
    assert found.own_id[0] == found.peer_id[0] == id_hash(call_id)
    assert OUTCOMES[found.outcome[0]] == "error"


def test_a_gateway_that_calls_cancels_ok_is_not_believed(known: Known) -> None:
    cancelled = span(
        "Received Proxy Server Request",
        SERVER,
        "litellm",
        http__route=CHAT,
        http__response__status_code=200,
    )
    cancelled.status = 1
    assert OUTCOMES[known.columns(cancelled).outcome[0]] == "unknown"


def test_a_client_call_without_usage_did_not_come_to_its_end(known: Known) -> None:
    given_up = span("chat llama", CLIENT, gen_ai__operation__name="chat")
    finished = span(
        "chat llama", CLIENT, gen_ai__operation__name="chat", gen_ai__usage__output_tokens=16
    )
    found = known.columns(given_up, finished)
    assert [OUTCOMES[o] for o in found.outcome] == ["unknown", "ok"]


def test_dynamo_writes_numbers_as_text_and_the_status_into_an_event(known: Known) -> None:
    request = Span(
        "http-request",
        "dynamo-frontend",
        status=2,
        attributes={
            "uri": CHAT,
            "request_id": "df2d41d6-3b4b-4b4c-b385-3e1313988217",
            "x_request_id": "a31fc2dc425c4179",
            "ttft_ms": "1512.88",
            "input_tokens": "44",
            "output_tokens": "32",
            "request.outcome": "success",
        },
        events=[("http response sent", 1_100_000_000)],
        event_attributes={"status": "200"},
    )
    found = known.columns(request)
    assert found.first_token_ns[0] - request.start_ns == 1_512_880_000
    assert (found.prompt_tokens[0], found.output_tokens[0]) == (44, 32)
    assert found.http_status[0] == 200
    assert OUTCOMES[found.outcome[0]] == "ok", "it moved to another worker and went well"
    assert found.own_id[0] == id_hash("chatcmpl-df2d41d6-3b4b-4b4c-b385-3e1313988217")
    assert found.peer_id[0] == id_hash("a31fc2dc425c4179")


def test_triton_tells_its_queue_by_two_events(known: Known) -> None:
    request = Span(
        "llama",
        "triton-server",
        SERVER,
        attributes={"triton.model_name": "llama"},
        events=[
            ("COMPUTE_START", 1_900_000_000),
            ("QUEUE_START", 1_200_000_000),
            ("INFER_RESPONSE_COMPLETE", 1_950_000_000),
            ("INFER_RESPONSE_COMPLETE", 1_940_000_000),
        ],
    )
    found = known.columns(request)
    assert found.queue_ns[0] == 700_000_000
    assert found.first_token_ns[0] == 1_940_000_000
    assert known.texts.text(int(found.model[0])) == "llama"


def test_an_end_that_comes_late_is_known_as_such(known: Known) -> None:
    late = ("sglang-router/request", "vllm-router/try")
    in_time = ("sglang-router/smg-request", "vllm-router/request")
    ends = {c.rule: c.end_is.name for c in known.classifier.classes}
    assert [ends[name] for name in (*late, *in_time)] == ["LOOSE", "LOOSE", "END", "END"]


@pytest.mark.parametrize(
    ("attributes", "outcome"),
    [
        ({"http.response.status_code": 200}, "ok"),
        ({"http.response.status_code": 404}, "error"),
        ({"http.status_code": "503"}, "error"),
        ({"http.response.status_code": 499}, "cancelled"),
        ({"http.response.status_code": 200, "error.type": "asyncio.CancelledError"}, "cancelled"),
        ({"http.response.status_code": 200, "error.type": "timeout"}, "error"),
        ({}, "unknown"),
    ],
)
def test_the_outcome_of_a_plain_server(
    attributes: dict[str, str | int], outcome: str, known: Known
) -> None:
    server = Span("POST", kind=SERVER, attributes={"url.path": CHAT, **attributes})
    assert OUTCOMES[known.columns(server).outcome[0]] == outcome


@pytest.mark.parametrize(
    ("example", "request_type"),
    [
        (span("chat m", CLIENT, gen_ai__operation__name="chat"), "chat"),
        (
            span("text_completion m", CLIENT, gen_ai__operation__name="text_completion"),
            "completion",
        ),
        (span("embeddings m", CLIENT, gen_ai__operation__name="embeddings"), "embedding"),
        (span("x", scope="litellm", gen_ai__operation__name="acompletion"), "chat"),
        (span("POST", SERVER, url__path="/v1/completions"), "completion"),
        (span("POST", SERVER, url__path="/openai/v1/chat/completions"), "chat"),
        (span("POST", SERVER, http__target="/v1/embeddings?user=1"), "embedding"),
        (span("POST", SERVER, http__url="http://a:1/v1/rerank"), "rerank"),
    ],
)
def test_the_request_type_follows_from_operation_or_route(
    example: Span, request_type: str, known: Known
) -> None:
    assert known.texts.text(int(known.columns(example).request_type[0])) == request_type
