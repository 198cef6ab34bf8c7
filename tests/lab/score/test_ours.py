"""The service as a judged system: rows as it would have them, pages as it would ring."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench.truth.ours import MINUTE_NS, Ours
from bench.truth.proposal import REPLAYED, WANTED, Healthy, Lately, near_critical
from bench.truth.rows import CLOSED_AFTER_NS, rows_of
from tailburn.app.planning.proposing import told_by_replay
from tailburn.app.planning.stored import stretch_of
from tailburn.app.planning.suggesting import suggest
from tailburn.engine.backtest.minutes import columns_for, count
from tailburn.engine.rollup import fold, merge
from tailburn.engine.schema import REQUESTS
from tailburn.engine.store.api import ALWAYS, LogRange
from tailburn.engine.store.parquet import ParquetStore
from tailburn.lab.fleet import standard
from tailburn.lab.records import Attempts, Outcome, RequestType

HOUR = 60 * MINUTE_NS
S = 10**9


def test_rows_hold_the_gateway_s_clocks_in_order_of_closing() -> None:
    fleet = standard(10.0)
    a = Attempts.of(
        {
            "gateway_in": [10 * S, 0],
            "gateway_first": [12 * S, S // 2],
            "gateway_last": [15 * S, -1],
            "client_end": [16 * S, 3 * S],
            "streamed": [1, 1],
            "output_done": [31, 1],
            "prompt_tokens": [100, 50],
            "cached_tokens": [40, 0],
            "scheduled": [11 * S, -1],
            "request_type": [RequestType.CHAT, RequestType.AGENT],
            "model": 0,
            "replica": [1, -1],
            "outcome": [Outcome.OK, Outcome.CLIENT_TIMEOUT],
            "http_status": [200, 0],
        }
    )
    rows = rows_of(a, fleet)
    assert rows.schema == REQUESTS
    given_up, done = rows.to_pylist()
    assert done["received_ns"] == 16 * S + CLOSED_AFTER_NS
    assert (done["ttft_gateway_s"], done["tpot_gateway_s"], done["e2e_gateway_s"]) == (2, 0.1, 5)
    assert (done["request_type"], done["cached_tokens"]) == ("chat", 40)
    assert done["replica"] == fleet.replicas[1].name
    assert (given_up["outcome"], given_up["replica"], given_up["http_status"]) == (
        "cancelled", None, None,
    )  # fmt: skip
    assert (given_up["tpot_gateway_s"], given_up["cached_tokens"]) == (None, None)


def _minutes(draw: np.random.Generator, first: int, count: int, factor: float = 1.0) -> pa.Table:
    """Minutes of forty requests each, as quick as always or so many times slower."""
    rows = 40 * count
    start = np.sort(draw.integers(0, count * MINUTE_NS, rows)) + first * MINUTE_NS
    ttft = (0.2 * np.exp(0.3 * draw.standard_normal(rows)) * factor * S).astype(np.int64)
    pace = (0.02 * np.exp(0.1 * draw.standard_normal(rows)) * factor * S).astype(np.int64)
    a = Attempts.of(
        {
            "gateway_in": start,
            "gateway_first": start + ttft,
            "gateway_last": start + ttft + 20 * pace,
            "client_end": start + ttft + 20 * pace,
            "scheduled": start,
            "streamed": 1,
            "output_done": 21,
            "prompt_tokens": 500,
            "model": 0,
            "replica": 0,
            "http_status": 200,
        },
        rows,
    )
    return rows_of(a, standard(10.0))


@pytest.fixture(scope="module")
def warm() -> Ours:
    draw = np.random.default_rng(3)
    ours = Ours(standard(10.0))
    for hour in range(26):
        ours.take(_minutes(draw, hour * 60, 60), hour * HOUR, (hour + 1) * HOUR)
    return ours


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_it_pages_within_minutes_of_a_slowdown_and_not_without(warm: Ours, factor: float) -> None:
    draw = np.random.default_rng(4)
    forked = warm.fork()
    for first, of in ((1560, 1.0), (1590, factor), (1620, 1.0)):
        forked.take(_minutes(draw, first, 30, of), first * MINUTE_NS, (first + 30) * MINUTE_NS)
    pages = [p for p in forked.outcome([]).pages if p.severity == "page"]
    if factor == 1.0:
        assert not pages
        return
    first_page = min(pages, key=lambda p: p.start_ns)
    assert 1590 < first_page.start_ns / MINUTE_NS <= 1595
    assert first_page.dims["request_type"] == "chat"
    assert all(p.end_ns is not None for p in pages if p.alert.startswith("TailburnDeadline"))
    assert not warm.fork().outcome([]).pages, "a fork is nobody else's"


@pytest.mark.parametrize(("factor", "is_near"), [(1.0, False), (2.0, True), (3.0, True)])
def test_what_is_not_near_critical_has_no_critical_page(
    warm: Ours, factor: float, is_near: bool
) -> None:
    slos = warm._learning.healthy.slos()
    time = Lately().with_more(_minutes(np.random.default_rng(5), 1560, 30, factor))
    counted = [count(rows, slos) for rows in time.rows(columns_for(slos), "")]
    fired = told_by_replay(time, "", REPLAYED)(slos, pa.concat_tables(counted))
    near = near_critical(time, slos)
    assert bool(near) is is_near
    assert {f.key.slo for f in fired if f.key.objective.endswith("p50_critical")} <= near
    assert any(f.key.objective.endswith("p50_critical") for f in fired) is (factor == 3.0)


def _counts(rollups: pa.Table) -> list[dict[str, object]]:
    """By minute, class and clock; sums of seconds depend on the order of adding up."""
    merged = merge(rollups, ["minute_ns", "model", "request_type"]).drop_columns("sum_s")
    return list(merged.to_pylist())


def test_the_rows_kept_fold_to_the_rollups_of_all_rows_cut_at_the_minute() -> None:
    rows = _minutes(np.random.default_rng(5), 0, 60)
    last = Lately().with_more(rows.slice(0, 1_000)).with_more(rows.slice(1_000))
    cut_ns, clocks = 25 * MINUTE_NS, ["ttft_gateway_s", "tpot_gateway_s"]
    asked = [last.rollups(0, cut_ns, clocks), last.rollups(cut_ns, 2 * HOUR, clocks)]
    every = fold(rows)
    wanted = every.filter(pc.is_in(every["clock"], pa.array(clocks)))
    assert _counts(pa.concat_tables(asked)) == _counts(wanted) != []
    assert (asked[0]["minute_ns"].to_numpy() < cut_ns).all()
    assert not len(last.rollups(0, HOUR, []))


@pytest.mark.long
def test_its_slos_are_those_that_suggest_makes_of_the_same_requests(tmp_path: Path) -> None:
    draw = np.random.default_rng(6)
    a_while = [(0, 1500, 1.0), (1500, 12, 1.7), (1512, 48, 1.0)]
    rows = pa.concat_tables([_minutes(draw, *of) for of in a_while])
    rows = rows.unify_dictionaries().combine_chunks().sort_by("received_ns")
    rows = rows.filter(pc.less(rows["received_ns"], 26 * HOUR))
    healthy, store = Healthy(), ParquetStore(tmp_path)
    healthy.take(rows)
    store.publish("requests", rows, LogRange(1, 1))
    made = suggest(stretch_of(store, ALWAYS, {}), WANTED)
    assert healthy.slos() == tuple(p.slo for p in made.proposals) != ()
    assert any(p.raised for p in made.proposals)
