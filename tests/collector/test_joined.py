"""Deliveries that wait are worked in together, and nothing tells them from one that came whole."""

import random
from dataclasses import fields
from queue import SimpleQueue

import numpy as np
import pyarrow as pa

from bench.bodies import bodies
from tailburn.collector import keeper
from tailburn.collector.group import Delivery, Tick, joined
from tailburn.collector.hops.rules import load_rules
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.spans import SpanBatch
from tailburn.collector.spans import joined as joined_spans
from tailburn.engine.schema import SIGNALS

NOW_NS = 1_790_000_001_000_000_000


def spans_of(count: int) -> SpanBatch:
    decoder = Decoder(load_rules().wanted)
    for data in bodies(count, 97, seed=count):
        decoder.add(bytearray(data), received_ns=NOW_NS, tenant="acme")
    return decoder.take()


def assert_equal(found: SpanBatch, expected: SpanBatch, but_for: str = "none") -> None:
    for field in fields(SpanBatch):
        if not field.name.startswith(but_for):
            column, wanted = getattr(found, field.name), getattr(expected, field.name)
            assert column.dtype == wanted.dtype, field.name
            assert np.array_equal(column, wanted, equal_nan=column.dtype.kind == "f"), field.name


def delivery(batch: SpanBatch, position: int, *ticks: Tick) -> Delivery:
    signals = [SIGNALS.empty_table()]
    return Delivery(position, position + 10, batch, [(position, "span_id", 1)], signals, ticks, 7)


def test_batches_joined_are_the_batch_they_were_cut_from() -> None:
    whole = spans_of(12)
    cuts = [0, *sorted(random.Random(5).sample(range(1, len(whole)), 3)), len(whole)]
    parts = [whole.part(a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
    parts.insert(2, whole.part(cuts[1], cuts[1]))  # one without spans

    assert len(whole.str_key) > len(whole)
    assert len(whole.event_name) > 0
    assert_equal(joined_spans(parts), whole)
    assert_equal(joined_spans(parts, wanted=False), whole, but_for="wanted_")


def test_deliveries_joined_keep_their_order_and_the_place_of_their_ticks() -> None:
    whole = spans_of(1)
    first = delivery(whole.part(0, 11), 21, Tick(0, 1), Tick(5, 2))
    second = delivery(whole.part(11, 11), 32, Tick(0, 3, closes_all=True))
    third = delivery(whole.part(11, 97), 43, Tick(13, 4))

    one = joined([first, second, third])

    assert (one.first_position, one.last_position, one.body_bytes) == (21, 53, 21)
    assert one.ticks == [Tick(0, 1), Tick(5, 2), Tick(11, 3, closes_all=True), Tick(24, 4)]
    assert [code for code, _, _ in one.rejected] == [21, 32, 43]
    assert pa.concat_tables(one.signals).num_rows == 0
    assert len(one.signals) == 3
    assert_equal(one.batch, whole)


def test_what_waits_is_taken_together_up_to_a_bound_and_the_end_stays_the_end() -> None:
    batch = spans_of(1)
    most = keeper._SPANS_AT_ONCE // len(batch) + 1
    waiting: SimpleQueue[Delivery | None] = SimpleQueue()
    for n in range(1, most + 3):
        waiting.put(delivery(batch, 11 * n))
    waiting.put(None)

    one = keeper._with_those_behind(delivery(batch, 0), waiting)
    assert (one.first_position, one.last_position) == (0, 11 * (most - 1) + 10)

    following = waiting.get()
    assert following is not None
    rest = keeper._with_those_behind(following, waiting)
    assert (rest.first_position, rest.last_position) == (11 * most, 11 * (most + 2) + 10)
    assert waiting.get() is None
    assert waiting.empty()
