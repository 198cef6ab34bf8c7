"""The pool's prefix-hit ratio: by hand, however readings are split, and what rests on it."""

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from tailburn.engine.baseline import Learnt, Usual, fold
from tailburn.engine.baseline.deadline import MINIMUM_COUNT
from tailburn.engine.baseline.hits import FOUND, LOOKED_UP, RATIO, Hits
from tailburn.engine.baseline.load import Matched, hit_bin
from tailburn.engine.baseline.usual import CLOCKS
from tailburn.engine.schema import SIGNALS, USUAL, USUAL_DIMENSIONS
from tests.engine.baseline.traffic import MINUTE, TTFT, Fleet
from tests.engine.store import samples

SLOT = 10 * samples.SECOND_NS
FIRST = samples.T0 // SLOT


def readings(*told: tuple[int, str, float], replica: str = "r1", **labels: str) -> pa.Table:
    """(seconds after T0, signal, value) of one target."""
    names = json.dumps({"model": "llama", "replica": replica} | labels, sort_keys=True)
    rows = [
        {
            "received_ns": samples.T0 + at_s * samples.SECOND_NS,
            "time_ns": samples.T0 + at_s * samples.SECOND_NS,
            "tenant": "default",
            "service": "vllm",
            "resource": "{}",
            "name": name,
            "kind": "sum",
            "unit": "tokens",
            "labels": names,
            "value": value,
        }
        for at_s, name, value in told
    ]
    return pa.Table.from_pylist(rows, schema=SIGNALS)


def counters(*asked: tuple[int, float, float], **labels: str) -> pa.Table:
    """(seconds after T0, tokens found, tokens looked up), both since the engine's start."""
    told = []
    for at_s, found, looked_up in asked:
        told += [(at_s, FOUND, found), (at_s, LOOKED_UP, looked_up)]
    return readings(*told, **labels)


def ratio(hits: Hits, slot: int, pool: str = "") -> float:
    return float(hits.ratios([("llama", pool)], FIRST + slot)[0])


def test_it_is_tokens_found_over_tokens_looked_up_on_all_replicas() -> None:
    hits = Hits()
    hits.hear(counters((0, 500, 900), (15, 530, 1_000), replica="r1"))
    hits.hear(counters((1, 0, 0), (16, 90, 100), replica="r2"))

    assert ratio(hits, 2) == pytest.approx((30 + 90) / 200)


def test_what_was_read_in_its_own_slot_or_later_is_not_known_yet() -> None:
    hits = Hits()
    hits.hear(counters((0, 0, 0), (15, 30, 100), (30, 130, 200)))

    assert np.isnan(ratio(hits, 1))
    assert ratio(hits, 2) == pytest.approx(0.3)
    assert ratio(hits, 4) == pytest.approx(0.65)
    assert ratio(hits, 33) == pytest.approx(1.0)  # the first increase is over 5 min ago
    assert np.isnan(ratio(hits, 34))


def test_an_engine_that_starts_anew_counts_from_nothing() -> None:
    hits = Hits()
    hits.hear(counters((0, 800, 900), (15, 20, 80)))
    assert ratio(hits, 2) == pytest.approx(20 / 80)


def test_what_was_not_read_for_long_has_no_increase() -> None:
    hits = Hits()
    hits.hear(counters((0, 0, 0), (600, 30, 100)))
    assert np.isnan(ratio(hits, 61))


def test_a_ratio_that_is_told_alone_is_averaged() -> None:
    hits = Hits()
    hits.hear(readings((0, RATIO, 0.4), (15, RATIO, 0.6)))
    assert ratio(hits, 2) == pytest.approx(0.5)


def test_pools_are_apart_where_metrics_tell_them() -> None:
    hits = Hits()
    hits.hear(counters((0, 0, 0), (15, 10, 100), pool="batch"))
    assert ratio(hits, 2, "batch") == pytest.approx(0.1)
    assert np.isnan(ratio(hits, 2, "chat"))
    hits.hear(counters((20, 0, 0), (35, 90, 100)))
    assert ratio(hits, 4, "chat") == pytest.approx(0.9)
    assert ratio(hits, 4, "batch") == pytest.approx(0.1)


def untold(requests: pa.Table) -> pa.Table:
    at = requests.column_names.index("cached_tokens")
    field = requests.schema.field(at)
    return requests.set_column(at, field, pa.nulls(len(requests), field.type))


@pytest.mark.parametrize("kill", [0, 1, 4, 8])
def test_a_kill_between_readings_and_requests_changes_nothing(kill: int) -> None:
    requests = untold(Fleet().requests(np.full(70, 1.0), seed=4))
    edges = samples.T0 + np.arange(0, 71, 7) * MINUTE
    received = requests["received_ns"].to_numpy()
    parts = [
        (
            counters(*((420 * i + s, 40.0 * i * i + s, 100.0 * i + 2 * s) for s in (0, 30))),
            requests.filter(pa.array((received >= begin) & (received < end))),
        )
        for i, (begin, end) in enumerate(pairwise(edges.tolist()))
    ]

    def run(killed: bool) -> tuple[list[np.ndarray], list[dict[str, object]]]:
        usual, found = Usual(lambda since_ns: USUAL.empty_table(), minimum=20), []
        rows: list[pa.Table] = []
        for i, (signals, some) in enumerate(parts):
            usual.hear(signals)
            found.append(usual.take(some)[TTFT])
            if killed and i == kill:
                state = json.loads(json.dumps(usual.state()))
                rows.append(usual.take_rows())
                before = pa.concat_tables(rows)
                usual = Usual(lambda since_ns: before, minimum=20)  # noqa: B023
                usual.restore(state)
        rows += [usual.take_rows(), usual.open_cells()]
        return found, [row for table in rows for row in table.to_pylist()]

    (whole, cells), (again, others) = run(False), run(True)

    for one, other in zip(whole, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert cells == others
    assert {row["hit_bin"] for row in cells if row["basis"] == "prompt"} > {-1}
    assert {row["hit_bin"] for row in cells if row["basis"] != "prompt"} == {-1}


def test_requests_that_are_counted_late_meet_the_ratio_of_their_own_time() -> None:
    prompt, late = Hits(), Hits()
    prompt.hear(counters((0, 0, 0), (15, 30, 100)))
    late.hear(counters((0, 0, 0), (15, 30, 100), (300, 330, 400), (600, 630, 700)))

    for slot in range(1, 31):
        assert ratio(late, slot) == pytest.approx(ratio(prompt, slot), nan_ok=True)


def test_a_deadline_says_whether_a_ratio_was_matched_on() -> None:
    requests = untold(Fleet().requests(np.full(20, 3.0), seed=5))
    size = len(requests)
    assert size > 2 * MINIMUM_COUNT
    rate = np.full(size, 1.5)
    known = Matched(rate, hit_bin(np.full(size, 0.45)))
    cells = fold(requests, known, USUAL_DIMENSIONS, CLOCKS)
    learnt = Learnt(cells, USUAL_DIMENSIONS)

    def told(seen: Matched) -> str:
        return learnt.deadlines(requests, seen, TTFT).told(0)

    assert "by arrival rate, prompt tokens and prefix-hit ratio: the engine does not" in told(known)
    assert "too rare" in told(Matched(rate, hit_bin(np.full(size, 0.95))))
    nothing = told(Matched(rate, hit_bin(np.full(size, np.nan))))
    assert "neither requests nor metrics tell what was cached" in nothing
