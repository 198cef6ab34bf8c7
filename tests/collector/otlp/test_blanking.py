"""No text of a user leaves the decoder: not in the body that is logged, not in a column."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from bench.bodies import bodies, key_values, value_of
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.otlp.json import to_protobuf
from tailburn.collector.otlp.wanted import Want, Wanted
from tailburn.collector.spans import SpanBatch
from tests.collector.otlp.as_json import as_json
from tests.collector.otlp.test_decoder import NOW_NS, add, captured, one_span

SECRET = "zzsecret"

BLANKED = [
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt", "gen_ai.prompt.0.content",
    "gen_ai.completion.0.content", "gen_ai.system_instructions", "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result", "llm.hosted_vllm.messages", "llm.openai.messages",
    "llm.openai.choices", "llm.openai.stringified_raw_response", "llm.openai.extra_headers",
    "llm.input_messages.0.message.content", "llm.output_messages.0.message.content",
    "llm.prompts.0", "llm.invocation_parameters", "input.value", "output.value",
    "retrieval.documents.0.document.content", "embedding.embeddings.0.embedding.text",
    "db.query.result.document", "llm.user", "user.id", "enduser.id", "hidden_params",
    "metadata.user_api_key_end_user_id", "metadata.user_api_key_hash", "litellm.api_key.hash",
    "metadata.requester_metadata", "metadata.requester_custom_headers",
    "litellm.metadata.user_api_key_end_user_id", "http.request.header.authorization",
    "Authorization", "http.request.header.cookie", "set-cookie", "x-api-key", "OPENAI_API_KEY",
    "access_token", "auth-token", "client_secret", "password", "url.query", "db.statement",
    "exception.stacktrace", "error.stack_trace", "process.command_line", "user_email", "prompt",
]  # fmt: skip

KEPT = [
    "gen_ai.usage.prompt_tokens", "gen_ai.request.max_tokens", "llm.token_count.prompt",
    "gen_ai.token.type", "ttft_first_token", "gen_ai.request.model", "gen_ai.response.id",
    "gen_ai.system", "gen_ai.response.finish_reasons", "user_agent.original", "url.full",
    "http.route", "x_request_id", "request_id", "input_tokens", "llm.request.type",
    "metadata.usage_object", "http.request.header.x-request-id", "tokenizer.name",
    "gen_ai.latency.time_to_first_token", "llm.openai.model", "message_count", "exception.type",
]  # fmt: skip

TAINTED = [
    "write to bob@corp.example", "user=a.b+c@x-y.co.uk;", "Bearer abc.def", "bearer  x Bearer y",
    "sk-proj-0123456789", "key is sk-FAKE-123456", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x",
    "{'x-api-key': 'abc'}", '{"Authorization": "Basic eHg="}', "Cookie: a=b", "password=hunter2",
    r'{\"api_key\": \"abc\"}', "redis://u:pw@10.0.0.1:6379/0", "token=abc", "漢字 bob@corp.example",
]  # fmt: skip

CLEAN = [
    "chatcmpl-b9c49b13-144a-49e2", "task-1234567890", "npm install langgraph@1.2.3", "a @ b",
    "meta-llama/Llama-3.3-70B-Instruct", "{'prompt_tokens': 86, 'total_tokens': 102}",
    "what is this?", "10.3.4.5:8000", "a=b", "unbearable", "disk-full", "token: ", "['stop']",
    "Status code: 503 Service Unavailable", "HTTP/1.1", "key: value", "ear", "sk-1",
]  # fmt: skip


def visible(decoder: Decoder, batch: SpanBatch) -> bytes:
    """Everything that a batch, its dictionary and its resources hold as text."""
    dictionary = "\n".join(decoder.dictionary.texts)
    resources = "\n".join(decoder.resources.json(i) for i in range(len(decoder.resources)))
    return batch.str_bytes.tobytes() + dictionary.encode() + resources.encode()


def text_of(key: str, value: AnyValue) -> tuple[str, bytes]:
    """What the columns hold of one attribute of a span, and the blanked body."""
    decoder = Decoder([])
    body = bytearray(one_span(attributes=[KeyValue(key=key, value=value)]).SerializeToString())
    decoder.add(body, received_ns=NOW_NS, tenant="acme")
    return decoder.take().str_bytes.tobytes().decode(), bytes(body)


def lists_around(value: AnyValue) -> Iterator[AnyValue]:
    """The value itself, in arrays and in kvlists."""
    yield value
    array, kvlist = AnyValue(), AnyValue()
    array.array_value.values.extend([value_of(1), value])
    kvlist.kvlist_value.values.add(key="inner").value.CopyFrom(array)
    yield array
    yield kvlist


@pytest.mark.parametrize("key", BLANKED)
def test_listed_names_lose_their_text(key: str) -> None:
    raw = AnyValue(bytes_value=SECRET.encode())
    for value in (*lists_around(value_of(SECRET)), *lists_around(raw)):
        text, body = text_of(key, value)
        assert text == ""
        assert SECRET.encode() not in body
        assert key.encode() in body


@pytest.mark.parametrize("key", KEPT)
def test_other_names_keep_theirs(key: str) -> None:
    assert text_of(key, value_of("plain"))[0] == "plain"


def test_names_inside_lists_count_too() -> None:
    headers = AnyValue()
    headers.kvlist_value.values.add(key="Authorization").value.string_value = SECRET
    headers.kvlist_value.values.add(key="accept").value.string_value = "all"
    text, body = text_of("headers", headers)
    assert text == '{"Authorization":"","accept":"all"}'
    assert SECRET.encode() not in body


def test_identities_lose_numbers_but_counts_of_tokens_do_not() -> None:
    decoder = Decoder([])
    attributes = key_values({"user.id": 12345678, "gen_ai.usage.input_tokens": 7, "my_token": 8})
    attributes += key_values({"enduser.id": 0.123456789})
    body = bytearray(one_span(attributes=attributes).SerializeToString())
    length = len(body)
    decoder.add(body, received_ns=NOW_NS, tenant="acme")
    assert decoder.take().num_value.tolist() == [7.0, 8.0]
    span = (
        ExportTraceServiceRequest.FromString(bytes(body)).resource_spans[0].scope_spans[0].spans[0]
    )
    assert span.attributes[0].value.int_value == 0
    assert span.attributes[3].value.double_value == 0
    assert len(body) == length


@pytest.mark.parametrize("text", TAINTED)
def test_texts_that_hold_a_secret_are_blanked_under_any_name(text: str) -> None:
    for value in lists_around(value_of(text)):
        shown, body = text_of("anything", value)
        assert text not in shown
        assert text.encode() not in body
    request = one_span(name=text)
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.events.add(name=text)
    span.status.message = text
    decoder = Decoder([])
    whole = bytearray(request.SerializeToString())
    decoder.add(whole, received_ns=NOW_NS, tenant="acme")
    assert text.encode() not in visible(decoder, decoder.take()) + bytes(whole)


@pytest.mark.parametrize("text", CLEAN)
def test_texts_without_a_secret_stay(text: str) -> None:
    for padding in ("", "x" * 13 + " ", "x" * 14 + " ", "x" * 15 + " ", "漢 "):
        assert text_of("anything", value_of(padding + text))[0] == padding + text


@settings(max_examples=300, deadline=None)
@given(st.text("ab -=:漢", max_size=40), st.sampled_from(TAINTED), st.text("ab -=:漢", max_size=40))
def test_a_secret_is_found_at_any_place(before: str, secret: str, after: str) -> None:
    text = f"{before} {secret} {after}"
    assert secret.encode() not in text_of("anything", value_of(text))[1]


@pytest.mark.parametrize(
    ("key", "text", "shown"),
    [
        ("http.url", "http://h/p?q=zzsecret", "http://h/p"),
        ("anything", "http://h/p?q=zzsecret", "http://h/p"),
        ("anything", "/v1/chat?q=zzsecret", "/v1/chat"),
        ("http.target", "/v1/chat#zzsecret", "/v1/chat"),
        ("url.full", "h?zzsecret", "h"),
        ("anything", "error for url (http://h/p?q=zzsecret)", "error for url (http://h/p"),
        ("http.url", "http://h/p", "http://h/p"),
        ("http.url", "http://h/p?", "http://h/p"),
        ("http.url", "http://bob:zzsecret@h/p", ""),
    ],
)
def test_urls_lose_their_query(key: str, text: str, shown: str) -> None:
    found, body = text_of(key, value_of(text))
    assert found == shown
    assert SECRET.encode() not in body


def test_long_texts_are_kept_only_of_listed_and_wanted_names() -> None:
    text = "zzsecret " * 40
    decoder = Decoder([Wanted("wanted", Want.TEXT)])
    attributes = key_values({"anything": text, "error.type": text, "wanted": text})
    batch = add(decoder, one_span(attributes=attributes))
    assert np.diff(batch.str_bytes_offset).tolist() == [0, len(text), len(text)]


def planted() -> ExportTraceServiceRequest:
    """A request with a secret wherever text can stand."""
    request = one_span(name=f"name {SECRET}" * 30, trace_state=f"v=bob@corp.example{SECRET}")
    listed = key_values({"gen_ai.prompt": SECRET, "http.url": f"http://h/?{SECRET}"})
    listed += key_values({"note": f"mail {SECRET}@corp.example", "authorization": [SECRET]})
    listed += key_values({f"{SECRET}@corp.example": "x", "long": SECRET * 40})
    group = request.resource_spans[0]
    group.schema_url = f"http://h/?{SECRET}"
    group.resource.attributes.extend(listed)
    scoped = group.scope_spans[0]
    scoped.schema_url = f"http://h/?{SECRET}"
    scoped.scope.name = SECRET * 40
    scoped.scope.version = f"{SECRET}@corp.example"
    scoped.scope.attributes.extend(listed)
    span = scoped.spans[0]
    span.status.message = SECRET * 40
    span.attributes.extend(listed)
    span.events.add(name=f"Error: {SECRET}" * 20).attributes.extend(listed)
    link = span.links.add(trace_id=b"t" * 16, span_id=b"s" * 8, trace_state=f"a=b?{SECRET}" * 60)
    link.attributes.extend(listed)
    rejected = scoped.spans.add(trace_id=b"short", name=f"{SECRET}@corp.example")
    rejected.attributes.extend(listed)
    return request


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_planted_secrets_are_nowhere(encoding: str) -> None:
    request = planted()
    if encoding == "json":
        body = to_protobuf(as_json(request)).body
    else:
        body = bytearray(request.SerializeToString())
        for message in (request, request.resource_spans[0], request.resource_spans[0].resource):
            message.MergeFromString(b"\xa2\x1f\x08zzsecret")  # an unknown field of text
        body = bytearray(request.SerializeToString())
    decoder = Decoder([Wanted("note", Want.TEXT), Wanted("gen_ai.prompt", Want.TEXT | Want.ID)])
    decoded = decoder.add(body, received_ns=NOW_NS, tenant="acme")
    batch = decoder.take()
    assert SECRET.encode() not in bytes(decoded.body)
    assert SECRET.encode() not in visible(decoder, batch)
    assert batch.wanted_id.tolist() == [0, 0]
    decoder.add(decoded.body, received_ns=NOW_NS, tenant="acme")
    again = decoder.take()
    for name, array in vars(batch).items():
        np.testing.assert_array_equal(array, getattr(again, name), name)
    ExportTraceServiceRequest.FromString(bytes(decoded.body))


def test_captures_hold_no_prompt_document_or_address(shared_dir: Path) -> None:
    decoder = Decoder([])
    for path, body in captured(shared_dir):
        decoded = decoder.add(bytearray(body), received_ns=NOW_NS, tenant="acme")
        for marker in (b"zzprompt", b"zzdoc", b"example.invalid"):
            assert marker not in decoded.body, path
    held = visible(decoder, decoder.take())
    for marker in (b"zzprompt", b"zzdoc", b"example.invalid"):
        assert marker not in held


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.sampled_from(BLANKED + KEPT), st.text("ab@.?=:/ {}'#漢-", max_size=60))),
    st.text("ab@.?=:/ {}'#漢-", max_size=60),
)
def test_blanking_twice_changes_nothing(pairs: list[tuple[str, str]], name: str) -> None:
    attributes = [KeyValue(key=key, value=value_of(text)) for key, text in pairs]
    request = one_span(name=name, attributes=attributes)
    request.resource_spans[0].resource.attributes.extend(attributes)
    decoder = Decoder([Wanted("url.full", Want.TEXT | Want.ID | Want.NUMBER)])
    body = bytearray(request.SerializeToString())
    length = len(body)
    decoder.add(body, received_ns=NOW_NS, tenant="acme")
    first, once = decoder.take(), bytes(body)
    decoder.add(body, received_ns=NOW_NS, tenant="acme")
    second = decoder.take()
    assert bytes(body) == once
    assert len(body) == length
    for column, array in vars(first).items():
        np.testing.assert_array_equal(array, getattr(second, column), column)
    ExportTraceServiceRequest.FromString(once)


def test_realistic_bodies_lose_nothing() -> None:
    for body in bodies(3, 512):
        blanked = bytearray(body)
        Decoder([]).add(blanked, received_ns=NOW_NS, tenant="acme")
        assert blanked == body
