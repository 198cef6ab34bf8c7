"""Bodies that are nearly right: never a crash, never a read past the end, and the same verdict
as protobuf's own decoder."""

import random

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.bodies import bodies
from tailburn.collector.errors import BadBody
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.otlp.wanted import Want, Wanted
from tests.collector.otlp.mutations import GuardedMemory, mutated

WANTED = [
    Wanted("gen_ai.request.id", Want.ID | Want.TEXT),
    Wanted("http.response.status_code", Want.NUMBER | Want.TEXT),
    Wanted("gen_ai.response.finish_reasons", Want.TEXT),
    Wanted("exception.type", Want.TEXT, "event"),
]


def spans_in(body: bytes) -> int | None:
    """How many spans protobuf's decoder finds; None if it refuses the body."""
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError:
        return None
    return sum(len(s.spans) for g in request.resource_spans for s in g.scope_spans)


def try_mutations(count: int, seed: int) -> int:
    """Mutate, decode and compare `count` bodies; how many were accepted."""
    rng = random.Random(seed)
    memory = GuardedMemory()
    seeds = [*bodies(20, 8), *bodies(5, 1)]
    decoder = Decoder(WANTED)
    accepted = 0
    for i in range(count):
        body = mutated(rng, seeds)
        wanted = spans_in(body)
        try:
            decoded = decoder.add(memory.at_the_end(body), received_ns=1, tenant="acme")
        except BadBody:
            assert wanted is None, body.hex()
        else:
            accepted += 1
            assert decoded.spans + decoded.rejected == wanted, body.hex()
            assert spans_in(bytes(decoded.body)) == wanted, body.hex()
        if i % 100 == 0:
            batch = decoder.take()
            assert np.all(np.diff(batch.str_bytes_offset) >= 0)
            assert batch.str_bytes_offset[-1] == batch.str_bytes.size
            batch.str_bytes.tobytes().decode()
        if len(decoder.dictionary) > 50_000:
            decoder = Decoder(WANTED)
    return accepted


def test_mutated_bodies_get_protobufs_verdict() -> None:
    assert try_mutations(20_000, seed=1) > 1000


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_million_mutated_bodies_get_protobufs_verdict() -> None:
    assert try_mutations(1_000_000, seed=2) > 50_000
