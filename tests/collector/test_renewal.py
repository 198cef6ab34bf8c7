"""A state with many names that nothing uses any more."""

import json
from typing import Any

import numpy as np

from tailburn.app.collecting import restored
from tailburn.app.settings import Settings
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.pipeline import Pipeline
from tailburn.collector.renewal import renewed
from tailburn.collector.snapshot import Snapshot
from tests.captures.scenarios.drive import TENANT, shipped_rules
from tests.captures.scenarios.hops import chain
from tests.captures.scenarios.otlp import Span, at, body

SETTINGS = Settings()


def started(found: Snapshot | None) -> tuple[Pipeline, Decoder]:
    pipeline, decoder = restored(SETTINGS, shipped_rules(), found)
    pipeline._table.seed = 0
    return pipeline, decoder


def deliver(pipeline: Pipeline, decoder: Decoder, at_s: float, *spans: Span) -> None:
    delivery = at(at_s, *spans)
    pipeline.advance(delivery.received_ns)
    decoder.add(bytearray(body(spans)), received_ns=delivery.received_ns, tenant=TENANT)
    pipeline.add(decoder.take(), decoder.take_rejected())


def state_with_many_names() -> Snapshot:
    """The engine's part of a request is open, another one has closed; 900 names are gone."""
    pipeline, decoder = started(None)
    made_up = [
        Span(f"s{i}", f"made-up-{i}x", 0, 1, trace=f"t{i}", service=f"service-{i}x")
        for i in range(900)
    ]
    deliver(pipeline, decoder, 3, *made_up)
    deliver(pipeline, decoder, 440, *chain(trace="closed"))
    deliver(pipeline, decoder, 455, *(s for s in chain() if s.span == "engine"))
    pipeline.take_rows()
    arrays, meta = pipeline.state()
    return Snapshot(7, arrays, json.loads(json.dumps(meta)))


def rest_of(found: Snapshot) -> dict[str, list[dict[str, Any]]]:
    """All rows after the caller's half came, and a span late for the one that had closed."""
    pipeline, decoder = started(found)
    deliver(pipeline, decoder, 456, *(s for s in chain() if s.span != "engine"))
    deliver(pipeline, decoder, 457, *chain(trace="closed"))
    pipeline.close_all(at(460).received_ns)
    return {
        name: sorted(table.to_pylist(), key=str)
        for name, table in pipeline.take_rows().items()
        if name != "rollups"
    }


def test_a_renewed_state_goes_on_to_the_same_rows() -> None:
    found = state_with_many_names()
    fresh = renewed(found, most_texts=0, most_resources=0)
    assert len(found.meta["dictionary"]["texts"]) > 1800
    assert len(fresh.meta["dictionary"]["texts"]) < 50
    wanted = rest_of(found)
    assert wanted["requests"], "the open request closed"
    assert rest_of(fresh) == wanted


def test_renewal_keeps_the_balance() -> None:
    found = state_with_many_names()
    fresh = renewed(found, most_texts=0, most_resources=0)
    assert len(fresh.meta["resources"]["messages"]) < len(found.meta["resources"]["messages"])
    before, after = found.meta["balance"], fresh.meta["balance"]
    assert sum(after["received"]) == sum(before["received"]) > 900
    assert np.array_equal(np.sum(after["fates"], axis=0), np.sum(before["fates"], axis=0))


def test_a_state_with_room_is_left_as_it_is() -> None:
    found = state_with_many_names()
    assert renewed(found) == found
