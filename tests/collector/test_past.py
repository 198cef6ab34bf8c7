"""Traces that left memory: what is sent again counts once, what is new makes a new version."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

from tailburn.collector.hops.classify import Classifier
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.past import HOUR_NS, ClosedTraces
from tailburn.collector.pipeline import Pipeline
from tailburn.collector.stitch.readback import read_back
from tailburn.collector.stitch.rows import PromptClasses, Rows, requests_table
from tailburn.collector.stitch.table import Bounds
from tailburn.engine.schema import REQUESTS, SPANS
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

    def spans_of(self, trace_words: NDArray[np.uint64]) -> pa.Table:
        ids = [bytes(w) for w in trace_words.view("S8").tolist()]
        heads = pc.binary_slice(self.tables["spans"]["trace_id"].cast(pa.binary()), 0, 8)
        return self.tables["spans"].filter(pc.is_in(heads, pa.array(ids, pa.binary())))

    def requests_of(self, trace_words: NDArray[np.uint64]) -> pa.Table:
        ids = [w.tobytes().hex() for w in trace_words]
        heads = pc.utf8_slice_codeunits(self.tables["requests"]["trace_id"], 0, 16)
        return self.tables["requests"].filter(pc.is_in(heads, pa.array(ids)))


def given(deliveries: Sequence[Delivery]) -> tuple[list[dict[str, object]], Pipeline]:
    """Every version of every row, from a pipeline that forgets a second after closing."""
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
        decoder.add(
            bytearray(body(delivery.spans)), received_ns=delivery.received_ns, tenant="default"
        )
        pipeline.add(decoder.take(), decoder.take_rejected())
        published.take(pipeline.take_rows())
    pipeline.advance(deliveries[-1].received_ns + 100 * SECOND_NS)
    published.take(pipeline.take_rows())
    return published.tables["requests"].to_pylist(), pipeline


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


def test_a_span_that_comes_long_after_makes_the_row_it_would_have_made() -> None:
    early = [span for span in WITHOUT_SENDS if span.span != "engine"]
    late = [span for span in WITHOUT_SENDS if span.span == "engine"]
    rows, _ = given([at(2, *early), *OTHERS, at(400, *late)])
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


def test_only_traces_that_were_let_go_of_are_known_as_closed() -> None:
    closed = ClosedTraces()
    closed.add(np.array([5, 9], np.uint64), 0)
    assert closed.contains(np.array([9, 7, 5], np.uint64)).tolist() == [True, False, True]


@pytest.mark.parametrize(("hours", "known"), [(1, True), (23, True), (24, False)])
def test_closed_traces_are_remembered_for_a_day(hours: int, known: bool) -> None:
    closed = ClosedTraces()
    closed.add(np.array([5], np.uint64), 0)
    closed.add(np.array([6], np.uint64), hours * HOUR_NS)
    assert closed.contains(np.array([5], np.uint64)).tolist() == [known]


def test_closed_traces_outlive_a_restart() -> None:
    closed = ClosedTraces()
    for hour in range(3):
        closed.add(np.arange(hour * 10, hour * 10 + 5, dtype=np.uint64), hour * HOUR_NS)
    again = ClosedTraces()
    again.restore(closed.state())
    words = np.arange(30, dtype=np.uint64)
    assert again.contains(words).tolist() == closed.contains(words).tolist()


def test_rows_read_back_and_written_again_are_the_same() -> None:
    rows, pipeline = given([at(2, *chain()), *OTHERS])
    table = pa.Table.from_pylist(rows, REQUESTS)
    out, hops_ns = read_back(table, pipeline.dictionary.code)
    ids = b"".join(bytes.fromhex(str(row["trace_id"])) for row in rows)
    again = requests_table(
        Rows(
            out=out,
            hops_ns=hops_ns,
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
