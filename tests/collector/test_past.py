"""Traces that left memory: what is sent again counts once, what is new makes a new version."""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.collector.hops.classify import Classifier
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.past import HOUR_NS, ClosedTraces
from tailburn.collector.pipeline import Pipeline
from tailburn.collector.stitch.readback import read_back
from tailburn.collector.stitch.rows import PromptClasses, Rows, requests_table
from tailburn.collector.stitch.table import Bounds
from tailburn.engine.schema import REQUESTS, SPANS
from tailburn.engine.store.api import TraceIds
from tests.captures.scenarios.drive import shipped_rules
from tests.captures.scenarios.hops import chain
from tests.captures.scenarios.otlp import Delivery, at, body

SECOND_NS = 1_000_000_000
FORGETFUL = Bounds(keep_ns=SECOND_NS, keep_spans=0)


class Published:
    """All rows given so far, found again by trace."""

    def __init__(self) -> None:
        self.tables = {"requests": REQUESTS.empty_table(), "spans": SPANS.empty_table()}

    def take(self, tables: dict[str, pa.Table]) -> None:
        for name in self.tables:
            if name in tables:
                both = [self.tables[name], tables[name]]
                self.tables[name] = pa.concat_tables(both).unify_dictionaries()

    def spans_of(self, traces: TraceIds) -> pa.Table:
        ids = pa.array([one.ljust(16, b"\0") for one in traces.tolist()], pa.binary())
        held = self.tables["spans"]["trace_id"].cast(pa.binary())
        return self.tables["spans"].filter(pc.is_in(held, ids))

    def requests_of(self, traces: TraceIds) -> pa.Table:
        ids = pa.array([one.ljust(16, b"\0").hex() for one in traces.tolist()])
        return self.tables["requests"].filter(pc.is_in(self.tables["requests"]["trace_id"], ids))


def given(
    deliveries: Sequence[Delivery], head: bytes = b"", published_until_s: float = math.inf
) -> tuple[list[dict[str, object]], Pipeline]:
    """Every version of every row, from a pipeline that forgets a second after closing.

    With a `head` every trace's id begins with it. The store is behind: it has what was given
    up to `published_until_s`.
    """
    rules = shipped_rules()
    decoder = Decoder(rules.wanted)
    published = Published()
    classes = PromptClasses(rules.dimensions.prompt_bounds, rules.dimensions.prompt_classes)
    pipeline = Pipeline(
        Classifier(rules, decoder.dictionary, decoder.resources),
        decoder.dictionary,
        decoder.resources,
        classes=classes,
        past=published,
        bounds=FORGETFUL,
    )
    for delivery in deliveries:
        pipeline.advance(delivery.received_ns)
        sent = headed(body(delivery.spans), head)
        decoder.add(sent, received_ns=delivery.received_ns, tenant="default")
        pipeline.add(decoder.take(), decoder.take_rejected())
        if delivery.at_s <= published_until_s:
            published.take(pipeline.take_rows())
    pipeline.advance(deliveries[-1].received_ns + 100 * SECOND_NS)
    published.take(pipeline.take_rows())
    return published.tables["requests"].to_pylist(), pipeline


def headed(sent: bytes, head: bytes) -> bytearray:
    """A body with the begin of every trace id replaced."""
    request = ExportTraceServiceRequest.FromString(sent)
    for group in request.resource_spans:
        for span in group.scope_spans[0].spans:
            span.trace_id = head + span.trace_id[len(head) :]
    return bytearray(request.SerializeToString())


OTHERS = [at(40 + 60 * i, *chain(f"other {i}")) for i in range(3)]
"""Traffic meanwhile: time passes on it, and what is over is let go of."""


WITHOUT_SENDS = [span for span in chain() if not span.name.endswith("http send")]


def of_first(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The rows of the trace that came first."""
    return [row for row in rows if row["trace_id"] == rows[0]["trace_id"]]


def test_what_is_sent_again_after_it_left_memory_counts_once() -> None:
    rows, pipeline = given([at(2, *chain()), *OTHERS, at(400, *chain())])
    assert [row["version"] for row in of_first(rows)] == [1]
    duplicates = sum(line.fates["duplicate"] for line in pipeline.balance.lines())
    assert duplicates == len(WITHOUT_SENDS)
    assert all(line.unaccounted == 0 for line in pipeline.balance.lines())


@pytest.mark.parametrize("head", [b"", bytes(8)], ids=["128 bits", "64 bits"])
def test_new_traces_bring_nothing_back(head: bytes) -> None:
    rows, pipeline = given([at(2, *chain()), *OTHERS, at(400, *chain("new"))], head)
    assert [row["version"] for row in rows] == [1] * len(rows)
    assert len({row["trace_id"] for row in rows}) == len(OTHERS) + 2
    held = sum(line.received for line in pipeline.balance.lines()) / len(rows)
    assert len(pipeline.state()[0]["wide"]) <= 2 * held


@pytest.mark.parametrize("head", [b"", bytes(8)], ids=["128 bits", "64 bits"])
def test_of_traces_whose_ids_begin_alike_the_right_one_comes_back(head: bytes) -> None:
    rows, pipeline = given([at(2, *chain()), *OTHERS, at(400, *chain())], head)
    assert [row["version"] for row in rows] == [1] * len(rows)
    assert sum(line.fates["duplicate"] for line in pipeline.balance.lines()) == len(WITHOUT_SENDS)


@pytest.mark.parametrize("published_until_s", [math.inf, 2, 0], ids=["all", "spans", "nothing"])
def test_a_span_that_comes_long_after_makes_the_row_it_would_have_made(
    published_until_s: float,
) -> None:
    early = [span for span in WITHOUT_SENDS if span.span != "engine"]
    late = [span for span in WITHOUT_SENDS if span.span == "engine"]
    rows, _ = given([at(2, *early), *OTHERS, at(400, *late)], b"", published_until_s)
    whole, _ = given([at(2, *WITHOUT_SENDS)])
    versions = of_first(rows)
    assert [row["version"] for row in versions] == [1, 2]
    when = {"version", "received_ns", "clock_offset_half_width_s", "digests"}
    assert {k: v for k, v in versions[1].items() if k not in when} == {
        k: v for k, v in whole[0].items() if k not in when
    }


def test_token_times_are_not_kept_so_no_late_span_makes_a_row_without_them() -> None:
    early = [span for span in chain() if span.span != "engine"]
    late = [span for span in chain() if span.span == "engine"]
    rows, _ = given([at(2, *early), *OTHERS, at(400, *late)])
    assert [(row["version"], row["token_sends"]) for row in of_first(rows)] == [(1, 2)]


def ids(*words: tuple[int, int]) -> NDArray[np.uint64]:
    return np.array(words, np.uint64)


def test_only_traces_that_were_let_go_of_are_known_as_closed() -> None:
    closed = ClosedTraces()
    closed.add(ids((5, 0), (0, 9)), 0)
    asked = ids((0, 9), (0, 5), (9, 0), (5, 0))
    assert closed.contains(asked).tolist() == [True, False, False, True]


@pytest.mark.parametrize(("hours", "known"), [(1, True), (23, True), (24, False)])
def test_closed_traces_are_remembered_for_a_day(hours: int, known: bool) -> None:
    closed = ClosedTraces()
    closed.add(ids((5, 1)), 0)
    closed.add(ids((6, 1)), hours * HOUR_NS)
    assert closed.contains(ids((5, 1))).tolist() == [known]


def test_closed_traces_outlive_a_restart() -> None:
    closed = ClosedTraces()
    for hour in range(3):
        closed.add(ids(*((0, hour * 10 + i) for i in range(5))), hour * HOUR_NS)
    again = ClosedTraces()
    again.restore(closed.state())
    asked = ids(*((0, i) for i in range(30)))
    assert again.contains(asked).tolist() == closed.contains(asked).tolist()
    assert closed.contains(asked).sum() == 15


def test_rows_read_back_and_written_again_are_the_same() -> None:
    rows, pipeline = given([at(2, *chain()), *OTHERS])
    table = pa.Table.from_pylist(rows, REQUESTS)
    out, hops_ns = read_back(table, pipeline.dictionary.code)
    ids = b"".join(bytes.fromhex(str(row["trace_id"])) for row in rows)
    again = requests_table(
        Rows(
            out=out,
            hops_ns=hops_ns,
            replaces=np.zeros(len(rows), np.int64),
            version=np.ones(len(rows), np.int32),
            tombstone=np.zeros(len(rows), np.bool_),
            trace_words=np.frombuffer(ids, np.int64).reshape(-1, 2),
            digests=np.zeros(0, np.int64),
            digest_offset=np.zeros(len(rows) + 1, np.int64),
        ),
        pipeline.dictionary.texts,
        PromptClasses((128, 512), ("<=128", "129-512", ">512")),
    )
    for mine, theirs in zip(again.to_pylist(), rows, strict=True):
        assert {**mine, "digests": theirs["digests"]} == {**theirs, "prompt_class": "<=128"}
