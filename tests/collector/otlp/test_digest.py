"""The digest tells spans apart by content, and by nothing else."""

import random

from hypothesis import HealthCheck, given, settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from bench.bodies import bodies, key_values
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.otlp.dictionary import Dictionary
from tests.collector.otlp.strategies import requests
from tests.collector.otlp.test_decoder import add, one_span


def digests(
    request: ExportTraceServiceRequest | bytes, decoder: Decoder | None = None
) -> list[int]:
    """Of each span, by a decoder of its own unless given one."""
    return add(decoder or Decoder([]), request).digest.tolist()


def test_digests_of_many_spans_differ() -> None:
    decoder = Decoder([])
    found = [d for body in bodies(20, 512) for d in digests(body, decoder)]
    assert len(set(found)) == len(found) == 20 * 512


def test_the_digest_is_the_same_in_any_process() -> None:
    """It is kept with rows and in snapshots: a change of this figure breaks every store."""
    request = one_span(attributes=key_values({"a": "b", "n": 1, "f": 0.5, "l": ["x"]}))
    assert digests(request) == [LASTING]


def test_the_order_of_attributes_does_not_count() -> None:
    rng = random.Random(1)
    body = bodies(1, 64)[0]
    request = ExportTraceServiceRequest.FromString(body)
    for group in request.resource_spans:
        for message in (group.resource, *group.scope_spans[0].spans):
            shuffled = list(message.attributes)
            rng.shuffle(shuffled)
            del message.attributes[:]
            message.attributes.extend(shuffled)
    assert digests(request) == digests(body)


def test_codes_do_not_count() -> None:
    dictionary = Dictionary()
    for i in range(100):
        dictionary.code(f"other {i}")
    body = bodies(1, 64)[0]
    assert digests(body, Decoder([], dictionary=dictionary)) == digests(body)
    full = Decoder([], dictionary=Dictionary(capacity=2))
    assert digests(body, full) == digests(body)


def test_everything_said_of_a_span_counts() -> None:
    attributes = key_values({"a": "b"})
    changes: list[dict[str, object]] = [
        {},
        {"trace_id": b"u" * 16},
        {"span_id": b"u" * 8},
        {"parent_span_id": b"u" * 8},
        {"name": "other"},
        {"kind": Span.SPAN_KIND_SERVER},
        {"start_time_unix_nano": 1},
        {"end_time_unix_nano": 1},
        {"status": Status(code=Status.STATUS_CODE_ERROR)},
        {"attributes": key_values({"a": "c"})},
        {"attributes": key_values({"b": "a"})},
        {"attributes": key_values({"a": 1})},
        {"attributes": key_values({"a": 1.0})},
        {"attributes": key_values({"a": True})},
        {"attributes": key_values({"a": ["b"]})},
        {"attributes": key_values({"a": "b", "c": "d"})},
        {"attributes": key_values({"a": "d", "c": "b"})},
        {"events": [Span.Event(name="a", time_unix_nano=1)]},
        {"events": [Span.Event(name="a", time_unix_nano=2)]},
        {"events": [Span.Event(name="b", time_unix_nano=1)]},
    ]
    found = [digests(one_span(**{"attributes": attributes, **change}))[0] for change in changes]
    request = one_span(attributes=attributes)
    request.resource_spans[0].scope_spans[0].scope.name = "scope"
    found += digests(request)
    request.resource_spans[0].resource.attributes.extend(key_values({"service.name": "s"}))
    found += digests(request)
    assert len(set(found)) == len(found)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests)
def test_a_second_decoding_gives_the_same(request: ExportTraceServiceRequest) -> None:
    decoder = Decoder([])
    body = bytearray(request.SerializeToString())
    again = decoder.add(body, received_ns=1, tenant="acme").body
    first = decoder.take()
    decoder.add(bytearray(again), received_ns=1, tenant="acme")
    assert decoder.take().digest.tolist() == first.digest.tolist()


LASTING = 0x6F782F72495CC14B
