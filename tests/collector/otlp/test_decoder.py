"""The decoder against protobuf's own, and against what OTLP allows."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bench.bodies import bodies, key_values
from tailburn.collector.errors import BadBody
from tailburn.collector.otlp.decoder import Decoder, Dropped
from tailburn.collector.otlp.dictionary import Dictionary
from tailburn.collector.otlp.ids import id_hash
from tailburn.collector.otlp.limits import Limits
from tailburn.collector.otlp.resources import Resources
from tailburn.collector.otlp.wanted import Want, Wanted
from tailburn.collector.spans import SpanBatch
from tests.collector.otlp.oracle import expected, rows_of
from tests.collector.otlp.strategies import requests, unknown_fields

NOW_NS = 1_790_000_000_000_000_000


@pytest.fixture(scope="module")
def shared() -> Decoder:
    """One decoder for many tests: its dictionary only grows."""
    return Decoder([])


def add(decoder: Decoder, request: ExportTraceServiceRequest | bytes) -> SpanBatch:
    """Decode one body into a batch of its own."""
    body = request if isinstance(request, bytes) else request.SerializeToString()
    decoder.add(bytearray(body), received_ns=NOW_NS, tenant="acme")
    return decoder.take()


def one_span(**fields: object) -> ExportTraceServiceRequest:
    """A request of one span with good ids."""
    request = ExportTraceServiceRequest()
    span = Span(**{"trace_id": b"t" * 16, "span_id": b"s" * 8, "name": "chat", **fields})  # type: ignore[arg-type]
    request.resource_spans.add().scope_spans.add().spans.append(span)
    return request


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests)
def test_columns_hold_what_protobuf_reads(request: ExportTraceServiceRequest) -> None:
    decoder = Decoder([])
    assert rows_of(decoder, add(decoder, request)) == expected(request)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests, st.lists(unknown_fields, min_size=1, max_size=4), st.randoms())
def test_unknown_fields_change_nothing(
    request: ExportTraceServiceRequest, unknown: list[bytes], random: object
) -> None:
    rows = expected(request)
    for field in unknown:
        for group in request.resource_spans:
            group.MergeFromString(field)
            group.resource.MergeFromString(field)
            for scoped in group.scope_spans:
                scoped.MergeFromString(field)
                for span in scoped.spans:
                    span.MergeFromString(field)
    request.MergeFromString(b"".join(unknown))
    decoder = Decoder([])
    assert rows_of(decoder, add(decoder, request)) == rows


@pytest.mark.parametrize("spans", [512, 8])
def test_realistic_bodies_hold_what_protobuf_reads(spans: int, shared: Decoder) -> None:
    for body in bodies(3, spans):
        rows = rows_of(shared, add(shared, body))
        wanted = expected(ExportTraceServiceRequest.FromString(body))
        assert rows == wanted
        assert len(rows) == spans


def captured(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Protobuf bodies of traces."""
    for path in sorted(folder.glob("captures/**/spans/**/*.bin")):
        body = path.read_bytes()
        if body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        if body[:1] != b"{":
            yield path, body


def test_captures_hold_what_protobuf_reads_but_for_what_is_blanked(
    shared_dir: Path, shared: Decoder
) -> None:
    spans = 0
    for path, body in captured(shared_dir):
        rows = rows_of(shared, add(shared, body))
        wanted = expected(ExportTraceServiceRequest.FromString(body))
        assert len(rows) == len(wanted), path
        for row, want in zip(rows, wanted, strict=True):
            spans += 1
            assert (row.trace, row.span, row.parent) == (want.trace, want.span, want.parent)
            assert (row.start_ns, row.end_ns) == (want.start_ns, want.end_ns)
            assert (row.kind, row.status, row.flags) == (want.kind, want.status, want.flags)
            assert (row.name, row.scope) == (want.name, want.scope)
            assert [time for _, time in row.events] == [time for _, time in want.events]
            assert row.numbers.items() <= want.numbers.items()
            wanted_strings = {**dict.fromkeys(want.numbers, ""), **want.strings}
            for key, text in row.strings.items():
                assert wanted_strings[key].startswith(text), key
            assert len(row.strings) + len(row.numbers) == len(wanted_strings)
    assert spans > 20_000


def test_a_body_cut_anywhere_leaves_no_trace(shared: Decoder) -> None:
    body = bodies(1, 3)[0]
    for length in range(len(body)):
        try:
            ExportTraceServiceRequest.FromString(body[:length])
        except DecodeError:
            with pytest.raises(BadBody, match=r"byte \d+ of \d+"):
                shared.add(bytearray(body[:length]), received_ns=NOW_NS, tenant="acme")
            assert len(shared.take()) == 0
        else:
            shared.add(bytearray(body[:length]), received_ns=NOW_NS, tenant="acme")
            shared.take()


@pytest.mark.parametrize(
    ("fields", "reason", "says"),
    [
        ({"trace_id": b"t" * 32}, "trace_id", "trace_id has 32 bytes, accepted: 16 bytes"),
        ({"trace_id": b""}, "trace_id", "trace_id has 0 bytes"),
        ({"trace_id": bytes(16)}, "trace_id", "trace_id has 16 bytes of zero"),
        ({"span_id": b"s" * 7}, "span_id", "span_id has 7 bytes, accepted: 8 bytes"),
        ({"span_id": bytes(8)}, "span_id", "span_id has 8 bytes of zero"),
        ({"parent_span_id": b"p" * 16}, "parent_span_id", "parent_span_id has 16 bytes"),
    ],
)
def test_a_span_with_a_bad_id_is_rejected_alone(
    fields: dict[str, bytes], reason: str, says: str
) -> None:
    decoder = Decoder([])
    request = ExportTraceServiceRequest.FromString(bodies(1, 512)[0])
    bad = one_span(**fields).resource_spans[0].scope_spans[0].spans[0]
    bad.attributes.extend(key_values({"llm.replica": "lost", "n": 1, "gen_ai.request.id": "x"}))
    spans = request.resource_spans[2].scope_spans[0].spans
    place = sum(len(g.scope_spans[0].spans) for g in request.resource_spans[:2]) + 1
    spans[1].CopyFrom(bad)
    decoded = decoder.add(bytearray(request.SerializeToString()), received_ns=1, tenant="acme")
    assert (decoded.spans, decoded.rejected) == (511, 1)
    assert f"span {place}: {says}" in decoded.message
    batch = decoder.take()
    assert rows_of(decoder, batch) == expected(request)
    [(resource, why, count)] = decoder.take_rejected()
    assert (why, count) == (reason, 1)
    assert decoder.resources.service(resource) == "llm-router"
    assert decoder.take_rejected() == []


def test_spans_without_ids_are_counted_for_their_resource() -> None:
    decoder = Decoder([])
    request = ExportTraceServiceRequest()
    for service in ("a", "b"):
        group = request.resource_spans.add()
        group.resource.attributes.extend(key_values({"service.name": service}))
        for _ in range(3 if service == "a" else 5):
            group.scope_spans.add().spans.add(name="log")
    decoded = decoder.add(bytearray(request.SerializeToString()), received_ns=1, tenant="acme")
    assert (decoded.spans, decoded.rejected) == (0, 8)
    counts = {decoder.resources.service(code): n for code, _, n in decoder.take_rejected()}
    assert counts == {"a": 3, "b": 5}


def test_the_last_of_equal_keys_counts(shared: Decoder) -> None:
    attributes: list[KeyValue] = []
    for value in ("first", 1, 2.5, True, "longer than the first", ["list"], "last"):
        attributes += key_values({"a": value, f"between {value}": 1})
    attributes += key_values({"b": "text", "c": "kept"}) + key_values({"b": 7})
    request = one_span(attributes=attributes)
    assert rows_of(shared, add(shared, request)) == expected(request)


def test_resource_and_scope_may_follow_the_spans(shared: Decoder) -> None:
    request = ExportTraceServiceRequest.FromString(bodies(1, 8)[0])
    turned = b""
    for group in request.resource_spans:
        resource = group.resource.SerializeToString()
        groups = b""
        for scoped in group.scope_spans:
            spans = b"".join(_field(2, span.SerializeToString()) for span in scoped.spans)
            groups += _field(2, spans + _field(1, scoped.scope.SerializeToString()))
        turned += _field(1, groups + _field(1, resource))
    assert rows_of(shared, add(shared, turned)) == expected(request)


def _field(number: int, content: bytes) -> bytes:
    length = len(content)
    return bytes([number << 3 | 2, length & 127 | 128, length >> 7 & 127 | 128, length >> 14]) + (
        content
    )


def test_wanted_attributes_come_in_the_wanted_form() -> None:
    all_forms = Want.NUMBER | Want.TEXT | Want.ID
    keys = ("text", "number", "flag", "id", "list", "listed", "big", "half", "none", "absent")
    decoder = Decoder([Wanted(key, all_forms) for key in keys])
    big = (1 << 60) + 1
    request = one_span(
        attributes=[
            *key_values({"text": "stop", "number": "63.23", "flag": True, "id": "chatcmpl-abc-1"}),
            *key_values({"list": ["length", "stop"], "listed": '["stop"]', "big": big}),
            *key_values({"half": 0.5, "unwanted": "x"}),
            KeyValue(key="none", value=AnyValue()),
        ]
    )
    batch = add(decoder, request)
    found = {
        keys[key]: (num, decoder.dictionary.text(code) if code >= 0 else None, id_)
        for key, num, code, id_ in zip(
            batch.wanted_key.tolist(),
            batch.wanted_num.tolist(),
            batch.wanted_code.tolist(),
            batch.wanted_id.tolist(),
            strict=True,
        )
    }
    assert found["number"][0] == 63.23
    assert found["flag"][:2] == (1.0, "true")
    assert found["id"][1:] == ("chatcmpl-abc-1", id_hash("abc-1"))
    assert found["text"][1] == "stop"
    assert np.isnan(found["text"][0])
    assert found["list"][1] == "length"
    assert found["listed"][1] == "stop"
    assert found["big"] == (float(big), str(big), id_hash(str(big)))
    assert found["half"][:2] == (0.5, None)
    assert found["none"][1:] == ("", 0)
    assert "absent" not in found


def test_wanted_attributes_of_events_are_told_from_those_of_spans() -> None:
    wanted = [Wanted("status", Want.NUMBER, "event"), Wanted("status", Want.TEXT)]
    decoder = Decoder(wanted)
    request = one_span(attributes=key_values({"status": "fine"}))
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.events.add(name="http response sent").attributes.extend(key_values({"status": "200"}))
    span.events.add(name="closed").attributes.extend(key_values({"status": 499, "other": 1}))
    batch = add(decoder, request)
    assert batch.wanted_key.tolist() == [1, 0, 0]
    assert batch.wanted_num.tolist()[1:] == [200.0, 499.0]
    assert decoder.dictionary.text(int(batch.wanted_code[0])) == "fine"
    assert batch.str_offset.tolist() == [0, 1]


def test_a_key_is_wanted_once() -> None:
    with pytest.raises(ValueError, match="'x' is wanted twice of a span"):
        Decoder([Wanted("x", Want.TEXT), Wanted("x", Want.NUMBER)])


@pytest.mark.parametrize(
    ("state", "rate", "weight"),
    [
        ("ot=th:8", None, 2.0),
        ("vendor=x, ot=rv:1;th:c", None, 4.0),
        ("ot=th:0", None, 1.0),
        ("ot=th:fffffffffffff8", None, 2.0**53),
        ("ot=th:zz", 5, 5.0),
        ("", 20, 20.0),
        ("", "20", 20.0),
        ("", 0.5, 1.0),
        ("ot=th:8", 20, 2.0),
        ("not=th:8", None, 1.0),
    ],
)
def test_sampling_weights(
    state: str, rate: int | float | str | None, weight: float, shared: Decoder
) -> None:
    attributes = key_values({} if rate is None else {"SampleRate": rate})
    batch = add(shared, one_span(trace_state=state, attributes=attributes))
    assert batch.weight.tolist() == [weight]


def test_a_batch_is_its_receivers_own(shared: Decoder) -> None:
    first = add(shared, bodies(1, 64, seed=1)[0])
    before = {name: array.copy() for name, array in vars(first).items()}
    add(shared, bodies(1, 64, seed=2)[0])
    for name, array in vars(first).items():
        np.testing.assert_array_equal(array, before[name], name)
        assert array.base is None or array.flags.owndata


def test_bodies_append_to_one_batch(shared: Decoder) -> None:
    data = bodies(5, 300, seed=3)
    for i, body in enumerate(data):
        shared.add(bytearray(body), received_ns=i, tenant=f"tenant {i % 2}")
    batch = shared.take()
    assert len(batch) == 1500
    assert batch.received_ns.tolist() == [i for i in range(5) for _ in range(300)]
    assert shared.dictionary.text(int(batch.tenant[300])) == "tenant 1"
    wanted = [row for b in data for row in expected(ExportTraceServiceRequest.FromString(b))]
    assert rows_of(shared, batch) == wanted


def test_ids_in_names_become_stars(shared: Decoder) -> None:
    names = {
        " Req 0a1b2c3d": " Req *",
        "Tokenizer(host:0a1b2c3d | pid:1001)": "Tokenizer(host:* | pid:1001)",
        "stream 0f9606b9-e47a-4b1c-9d3e-00112233aabb failed": "stream * failed",
        "chat claude-3-5-sonnet-20241022": "chat claude-3-5-sonnet-20241022",
        "chat Qwen3-235B-A22B": "chat Qwen3-235B-A22B",
        "GET /v1/files/17659869329830086728": "GET /v1/files/*",
        "decode_forward": "decode_forward",
    }
    for name, shown in names.items():
        for _ in range(2):
            batch = add(shared, one_span(name=name))
            assert shared.dictionary.text(int(batch.name[0])) == shown


def test_times_beyond_int64_are_the_latest_there_is(shared: Decoder) -> None:
    batch = add(shared, one_span(start_time_unix_nano=1 << 63, end_time_unix_nano=(1 << 64) - 1))
    assert batch.start_ns.tolist() == batch.end_ns.tolist() == [(1 << 63) - 1]


def test_ten_thousand_attributes_cost_the_limit() -> None:
    decoder = Decoder([])
    request = one_span(attributes=key_values({f"key {i}": i for i in range(10_000)}))
    batch = add(decoder, request)
    assert batch.num_offset.tolist() == [0, 1024]
    assert decoder.dropped == Dropped(attributes=8976, events=0, values_cut=0)


def test_ten_thousand_events_cost_the_limit() -> None:
    decoder = Decoder([], limits=Limits(events=10))
    request = one_span(events=[Span.Event(name="token", time_unix_nano=i) for i in range(10_000)])
    assert len(add(decoder, request).event_ns) == 10
    assert decoder.dropped.events == 9990


def test_long_values_are_cut_between_characters() -> None:
    decoder = Decoder([Wanted("wanted", Want.TEXT)])
    text = "g" + "漢" * 5000
    batch = add(decoder, one_span(attributes=key_values({"wanted": text})))
    assert batch.str_bytes.tobytes().decode() == text[: 1 + 4095 // 3]
    assert decoder.dictionary.text(int(batch.wanted_code[0])) == ""
    assert decoder.dropped.values_cut == 1


def test_one_attribute_of_64_mib_costs_nothing(shared: Decoder) -> None:
    body = one_span(attributes=key_values({"x": "g" * (64 << 20)})).SerializeToString()
    batch = add(shared, body)
    assert batch.str_bytes.size == 0
    assert batch.str_offset.tolist() == [0, 1]


def test_lists_nested_too_deep_lose_what_lies_deeper(shared: Decoder) -> None:
    value = AnyValue(string_value="deep")
    for _ in range(40):
        outer = AnyValue()
        outer.array_value.values.append(value)
        value = outer
    request = one_span(attributes=[KeyValue(key="x", value=value), *key_values({"y": 1})])
    batch = add(shared, request)
    assert batch.str_bytes.tobytes().decode() == "[" * 16 + "null" + "]" * 16
    assert batch.num_value.tolist() == [1.0]


def test_lists_nested_beyond_protobufs_own_limit_are_a_bad_body(shared: Decoder) -> None:
    content = _field(1, b"deep")
    for _ in range(200):
        content = _field(5, _field(1, content))
    span = one_span().resource_spans[0].scope_spans[0].spans[0].SerializeToString()
    span += _field(9, _field(1, b"x") + _field(2, content))
    with pytest.raises(BadBody):
        shared.add(bytearray(_field(1, _field(2, _field(2, span)))), received_ns=1, tenant="acme")


def test_a_full_dictionary_costs_names_not_spans() -> None:
    decoder = Decoder([], dictionary=Dictionary(capacity=20))
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for i in range(100):
        spans.add(trace_id=b"t" * 16, span_id=b"%08d" % i, name=f"name n{i}")
    batch = add(decoder, request)
    assert len(batch) == 100
    assert (batch.name[30:] == 0).all()
    assert decoder.dictionary.overflowed >= 80
    assert len(decoder.dictionary) == 1 + 10, "one sender alone fills half"


def test_full_resources_cost_the_resource_not_spans() -> None:
    decoder = Decoder([], resources=Resources(capacity=5))
    for i in range(6):
        request = one_span()
        request.resource_spans[0].resource.attributes.extend(key_values({"service.name": f"s{i}"}))
        decoder.add(bytearray(request.SerializeToString()), received_ns=1, tenant="acme")
    batch = decoder.take()
    services = [decoder.resources.service(code) for code in batch.resource.tolist()]
    assert services == ["s0", "s1", "", "", "", ""]
    assert len(set(batch.digest.tolist())) == 6


def test_dictionary_and_resources_survive_a_dump() -> None:
    decoder = Decoder([])
    first = add(decoder, bodies(1, 100)[0])
    dictionary = Dictionary.load(json.loads(json.dumps(decoder.dictionary.dump())))
    resources = Resources.load(json.loads(json.dumps(decoder.resources.dump())))
    assert dictionary.texts == decoder.dictionary.texts
    second = add(Decoder([], dictionary=dictionary, resources=resources), bodies(1, 100)[0])
    for name, array in vars(first).items():
        np.testing.assert_array_equal(array, getattr(second, name), name)


def test_empty_bodies_are_well(shared: Decoder) -> None:
    assert shared.add(bytearray(), received_ns=1, tenant="acme").spans == 0
    assert len(add(shared, ExportTraceServiceRequest())) == 0
