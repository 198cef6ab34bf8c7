"""Senders that make up names, and those beside them."""

import json

import numpy as np
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.collector.hops.classify import Classifier
from tailburn.collector.hops.columns import Role
from tailburn.collector.hops.rules import load_rules
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.otlp.dictionary import Dictionary
from tailburn.collector.otlp.resources import Resources
from tailburn.collector.spans import SpanBatch

RULES = load_rules()


def spans(names: list[str], service: str = "s", model: str = "") -> bytearray:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = service
    scope = resource.scope_spans.add()
    for number, name in enumerate(names, 1):
        span = scope.spans.add(trace_id=b"t" * 16, span_id=number.to_bytes(8), name=name, kind=3)
        span.start_time_unix_nano, span.end_time_unix_nano = 1, 2
        if model:
            span.attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
            span.attributes.add(key="gen_ai.request.model").value.string_value = model
    return bytearray(request.SerializeToString())


def taken(decoder: Decoder, tenant: str, body: bytearray) -> SpanBatch:
    decoder.add(body, received_ns=1, tenant=tenant)
    return decoder.take()


def flood(decoder: Decoder, tenant: str) -> None:
    """More names than there is room for."""
    for part in range(3):
        taken(decoder, tenant, spans([f"{tenant}{part}x{i}y" for i in range(30_000)]))


def test_a_tenant_that_makes_up_names_takes_none_of_another_s() -> None:
    decoder = Decoder(RULES.wanted)
    classifier = Classifier(RULES, decoder.dictionary, decoder.resources)
    for hostile in ("mallory", "trudy", "eve"):
        flood(decoder, hostile)
    assert decoder.dictionary.overflowed > 100_000
    batch = taken(decoder, "acme", spans(["chat new-model"], model="new-model"))
    columns = classifier.classify(batch)
    assert decoder.dictionary.text(int(batch.name[0])) == "chat new-model"
    assert decoder.dictionary.text(int(columns.model[0])) == "new-model"
    assert decoder.dictionary.text(int(batch.tenant[0])) == "acme"
    assert columns.role[0] == Role.CALL


def test_what_rules_look_for_is_known_even_to_who_has_filled_its_share() -> None:
    decoder = Decoder(RULES.wanted)
    classifier = Classifier(RULES, decoder.dictionary, decoder.resources)
    flood(decoder, "mallory")
    batch = taken(decoder, "mallory", spans(["llm_request", "x"], model="made-up"))
    columns = classifier.classify(batch)
    texts = [decoder.dictionary.text(code) for code in batch.name.tolist()]
    assert texts == ["llm_request", ""]
    assert (columns.role != Role.UNRECOGNISED).all()
    assert decoder.dictionary.text(int(columns.request_type[0])) == "chat"


def test_tenants_are_told_apart_when_nothing_else_is() -> None:
    decoder = Decoder([], dictionary=Dictionary(capacity=640))
    codes = [int(taken(decoder, f"t{i}", spans([f"{i}n{j}" for j in range(999)])).tenant[0])
             for i in range(10)]  # fmt: skip
    assert 0 not in codes
    assert len(set(codes)) == 10


def test_a_share_outlives_a_restart() -> None:
    decoder = Decoder([], dictionary=Dictionary(capacity=640))
    names = [f"n{i}x" for i in range(2000)]
    taken(decoder, "mallory", spans(names[:200]))
    held = len(decoder.dictionary)
    dumped = json.loads(json.dumps(decoder.dictionary.dump()))
    assert dumped["shares"]["mallory"][0] >= 200
    again = Decoder([], dictionary=Dictionary.load(dumped))
    again.dictionary.shares.load({"mallory": (65_536, 0)})
    batch = taken(again, "mallory", spans(names))
    assert np.count_nonzero(batch.name) == 200
    assert len(again.dictionary) == held


def test_resources_are_shared_out_alike() -> None:
    decoder = Decoder([], resources=Resources(capacity=64))
    for number in range(200):
        taken(decoder, "mallory", spans(["a"], service=f"made-up-{number}"))
    batch = taken(decoder, "acme", spans(["a"], service="chat"))
    assert decoder.resources.service(int(batch.resource[0])) == "chat"
    assert decoder.resources.overflowed > 100
