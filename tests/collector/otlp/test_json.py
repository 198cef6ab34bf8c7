"""OTLP/JSON in all the forms that exporters send."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.bodies import bodies
from tailburn.collector.errors import BadBody
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.otlp.json import to_protobuf
from tests.collector.otlp.as_json import as_dict, as_json
from tests.collector.otlp.oracle import expected, is_accepted, rows_of
from tests.collector.otlp.strategies import requests
from tests.collector.otlp.test_decoder import add

TRACE = "5b8efff798038103d269b633813fc60c"
SPAN = "eee19b7ec3c1b174"


def converted(*spans: dict[str, Any]) -> tuple[list[dict[str, Any]], int, str]:
    """The spans that came through, as protobuf reads them, how many did not, and why."""
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]})
    found = to_protobuf(body.encode())
    request = ExportTraceServiceRequest.FromString(bytes(found.body))
    rows = as_dict(request)["resourceSpans"][0]["scopeSpans"][0].get("spans", [])
    return rows, found.rejected, found.message


def span(**fields: Any) -> dict[str, Any]:
    return {"traceId": TRACE, "spanId": SPAN, "startTimeUnixNano": "1", **fields}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests)
def test_json_and_protobuf_give_the_same(request: ExportTraceServiceRequest) -> None:
    for group in request.resource_spans:
        for scoped in group.scope_spans:
            accepted = [s for s in scoped.spans if is_accepted(s)]
            del scoped.spans[:]
            scoped.spans.extend(accepted)
            for one in scoped.spans:
                del one.links[:]
    found = to_protobuf(as_json(request))
    assert found.rejected == 0
    decoder = Decoder([])
    from_json = add(decoder, bytes(found.body))
    from_protobuf = add(decoder, request)
    assert rows_of(decoder, from_json) == expected(request)
    np.testing.assert_array_equal(from_json.digest, from_protobuf.digest)


def test_realistic_bodies_become_the_very_bytes_of_protobuf() -> None:
    for body in bodies(2, 64):
        assert bytes(to_protobuf(as_json(ExportTraceServiceRequest.FromString(body))).body) == body


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"traceId": TRACE.upper(), "spanId": SPAN.upper()}, {"traceId": TRACE, "spanId": SPAN}),
        ({"kind": "SPAN_KIND_SERVER"}, {"kind": 2}),
        ({"kind": 3}, {"kind": 3}),
        ({"kind": "3"}, {"kind": 3}),
        ({"startTimeUnixNano": (1 << 63) + 1}, {"startTimeUnixNano": "9223372036854775809"}),
        ({"startTimeUnixNano": "17"}, {"startTimeUnixNano": "17"}),
        ({"status": {"code": "STATUS_CODE_ERROR"}}, {"status": {"code": 2}}),
        ({"status": None, "attributes": None, "parentSpanId": None}, {}),
        ({"parentSpanId": ""}, {}),
        ({"unknown": {"a": [1, {}]}, "traceID": 5}, {}),
        ({"flags": 257}, {"flags": 257}),
    ],
)  # fmt: skip
def test_lenient_forms(fields: dict[str, Any], want: dict[str, Any]) -> None:
    [row], rejected, message = converted(span(**fields))
    assert row == {"traceId": TRACE, "spanId": SPAN, "startTimeUnixNano": "1", **want}
    assert (rejected, message) == (0, "")


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ({"intValue": "-5"}, {"intValue": "-5"}),
        ({"intValue": 9_007_199_254_740_993}, {"intValue": "9007199254740993"}),
        ({"intValue": 1.0}, {"intValue": "1"}),
        ({"doubleValue": "NaN"}, {"doubleValue": "NaN"}),
        ({"doubleValue": "-Infinity"}, {"doubleValue": "-Infinity"}),
        ({"doubleValue": "0.5"}, {"doubleValue": 0.5}),
        ({"doubleValue": 7}, {"doubleValue": 7.0}),
        ({"boolValue": False}, {"boolValue": False}),
        ({"stringValue": ""}, {"stringValue": ""}),
        ({"bytesValue": "-_8"}, {"bytesValue": "+/8="}),
        ({}, {}),
        (None, None),
        (
            {"arrayValue": {"values": [{"intValue": 1}, {}, {"stringValue": "x"}]}},
            {"arrayValue": {"values": [{"intValue": "1"}, {}, {"stringValue": "x"}]}},
        ),
        (
            {"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}},
            {"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}},
        ),
    ],
)
def test_forms_of_values(value: Any, want: Any) -> None:
    [row], _, _ = converted(span(attributes=[{"key": "a", "value": value}]))
    assert row["attributes"] == [{"key": "a"} if want is None else {"key": "a", "value": want}]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"startTimeUnixNano": {"low": 1, "high": 2}}, "startTimeUnixNano"),
        ({"startTimeUnixNano": "abc"}, "startTimeUnixNano is 'abc', accepted: an integer"),
        ({"startTimeUnixNano": -1}, "startTimeUnixNano is -1"),
        ({"startTimeUnixNano": None}, "startTimeUnixNano is missing"),
        ({"endTimeUnixNano": 1.5}, "endTimeUnixNano is 1.5"),
        ({"traceId": "W47/95gDgQPSabYzgT/GDA=="}, "/GDA==', accepted: 32 hex digits"),
        ({"spanId": "7uGbfsPBsXQ="}, "spanId is '7uGbfsPBsXQ=', accepted: 16 hex digits"),
        ({"spanId": "zz" * 8}, "spanId"),
        ({"traceId": None}, "traceId is missing"),
        ({"parentSpanId": "12"}, "parentSpanId is '12'"),
        ({"kind": "SERVER"}, "kind is 'SERVER'"),
        ({"name": 5}, "name"),
        ({"attributes": {"a": 1}}, "attributes"),
        ({"attributes": [{"key": "a", "value": {"intValue": "many"}}]}, "intValue is 'many'"),
        ({"attributes": [{"key": "a", "value": {"intValue": 1 << 63}}]}, "intValue"),
        ({"attributes": [{"key": "a", "value": {"bytesValue": "?"}}]}, "bytesValue is '?'"),
    ],
)  # fmt: skip
def test_a_span_that_is_wrong_is_left_out_alone(fields: dict[str, Any], says: str) -> None:
    rows, rejected, message = converted(span(name="a"), span(**{"name": "b", **fields}), span())
    assert len(rows) == 2
    assert rejected == 1
    assert message.startswith("1 of 3 spans rejected; first: span 1")
    assert says in message


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b'{"resourceSpans": 5}', b"\n\x00", b"[" * 100_000,
     b'{"a":' * 100_000, b'{"resourceSpans":[{"resource":{"attributes":[{"key":1}]}}]}'],
)  # fmt: skip
def test_what_is_no_request_is_a_bad_body(body: bytes) -> None:
    with pytest.raises(BadBody, match="body is"):
        to_protobuf(body)


def test_where_json_breaks_is_said() -> None:
    with pytest.raises(BadBody, match="byte 19"):
        to_protobuf(b'{"resourceSpans": [}, ')


def test_deep_values_lose_what_lies_deeper() -> None:
    value: dict[str, Any] = {"stringValue": "deep"}
    for _ in range(60):
        value = {"arrayValue": {"values": [value]}}
    found = to_protobuf(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [
        span(attributes=[{"key": "a", "value": value}])]}]}]}).encode())  # fmt: skip
    decoder = Decoder([])
    batch = add(decoder, bytes(found.body))
    assert batch.str_bytes.tobytes().decode() == "[" * 16 + "null" + "]" * 16


def test_lone_surrogates_are_no_json_text() -> None:
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span(name="a")]}]}]})
    with pytest.raises(BadBody, match="surrogate"):
        to_protobuf(body.replace('"a"', r'"\ud800"').encode())
