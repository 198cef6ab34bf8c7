"""Tails from rollups and from rows, judged by exact quantiles."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine import histogram, rollup
from tailburn.engine.names import QUANTILES
from tailburn.engine.store import LogRange, Store, UnknownColumn, Window
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.tails import Source, Tail, tails, weighted_quantile
from tests.engine.store import samples
from tests.engine.store.samples import MINUTE_NS, SECOND_NS, T0


def store_of(folder: Path, rows: list[dict[str, Any]]) -> Store:
    store = ParquetStore(folder)
    table = samples.requests(*rows)
    store.publish("requests", table, LogRange(1, 1))
    store.publish("rollups", rollup.fold(table), LogRange(1, 1))
    return store


def only(found: list[Tail]) -> Tail:
    [tail] = found
    return tail


@pytest.fixture(scope="module")
def values() -> list[float]:
    return np.random.default_rng(5).lognormal(-1, 1, 3000).tolist()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> Store:
    rows = [
        samples.request(
            i % 600, model="ab"[i % 2], node="n1", ttft_client_s=v, tpot_client_s=v / 10,
            output_tokens=15 if i % 3 else 200,
        )
        for i, v in enumerate(values)
    ]  # fmt: skip
    # Six hundred traces: a request id of its own for each row keeps them apart.
    numbered = [row | {"request_id": f"{i:016x}"} for i, row in enumerate(rows)]
    return store_of(tmp_path_factory.mktemp("store"), numbered)


def exact(values: list[float], q: float) -> float:
    return sorted(values)[histogram.rank_of(q, len(values)) - 1]


def test_rollups_answer_within_their_bound_and_say_so(store: Store, values: list[float]) -> None:
    for tail in tails(store, by=["model"], clocks=["ttft_client_s"]):
        mine = values["ab".index(tail.group["model"]) :: 2]
        assert (tail.source, tail.count, tail.unmeasured) == (Source.ROLLUPS, 1500, 0)
        assert tail.error_ratio == histogram.RELATIVE_ERROR
        assert (tail.min_s, tail.max_s) == (min(mine), max(mine))
        for q in QUANTILES:
            assert tail.value_s(q) == pytest.approx(exact(mine, q), rel=tail.error_ratio)


def test_rows_answer_exactly_when_asked_or_when_rollups_lack_the_dimension(
    store: Store, values: list[float]
) -> None:
    asked = only(tails(store, clocks=["ttft_client_s"], exact=True))
    lacking = only(tails(store, clocks=["ttft_client_s"], by=["node"]))
    filtered = only(tails(store, clocks=["ttft_client_s"], where={"node": "n1"}))
    for tail in (asked, lacking, filtered):
        assert (tail.source, tail.error_ratio, tail.count) == (Source.ROWS, 0.0, 3000)
        assert [tail.value_s(q) for q in QUANTILES] == [exact(values, q) for q in QUANTILES]
    assert lacking.group == {"node": "n1"}


def test_tpot_rests_on_long_outputs_either_way(store: Store) -> None:
    for answer in (False, True):
        tail = only(tails(store, clocks=["tpot_client_s"], exact=answer))
        assert (tail.count, tail.unmeasured) == (1000, 2000)


def test_a_clock_nobody_measured_is_no_data_and_never_zero(store: Store) -> None:
    for answer in (False, True):
        tail = only(tails(store, clocks=["e2e_gateway_s"], exact=answer))
        assert (tail.count, tail.unmeasured) == (0, 3000)
        assert (tail.quantiles, tail.min_s, tail.max_s) == ((), None, None)
        assert tail.value_s(0.5) is None


def test_a_quantile_that_too_few_samples_carry_is_marked_thin(tmp_path: Path) -> None:
    rows = [samples.request(i, ttft_client_s=1.0 + i) for i in range(100)]
    store = store_of(tmp_path, rows)
    for answer in (False, True):
        tail = only(tails(store, clocks=["ttft_client_s"], exact=answer))
        assert [(x.q, x.thin) for x in tail.quantiles] == [
            (0.5, False), (0.95, False), (0.99, False), (0.999, True),
        ]  # fmt: skip
    ninety_nine = only(tails(store, where={"model": "llama"}, clocks=["ttft_client_s"], exact=True,
                             window=Window(T0 + SECOND_NS, None)))  # fmt: skip
    assert [x.thin for x in ninety_nine.quantiles] == [False, False, True, True]


def test_uneven_weights_make_a_tail_thinner(tmp_path: Path) -> None:
    heavy = samples.request(0, ttft_client_s=1.0, weight=1000.0)
    light = [samples.request(i, ttft_client_s=2.0, weight=1.0) for i in range(1, 1000)]
    tail = only(tails(store_of(tmp_path, [heavy, *light]), clocks=["ttft_client_s"], exact=True))
    assert tail.count == 1999
    assert [x.thin for x in tail.quantiles] == [False, True, True, True]
    assert tail.value_s(0.5) == 1.0
    assert tail.value_s(0.95) == 2.0


def test_a_window_of_rollups_is_widened_to_whole_minutes(store: Store) -> None:
    window = Window(T0 + 90 * SECOND_NS, T0 + 150 * SECOND_NS)
    wide = only(tails(store, window, clocks=["ttft_client_s"]))
    assert wide.count == 5 * 120
    narrow = only(tails(store, window, clocks=["ttft_client_s"], exact=True))
    assert narrow.count == 5 * 60
    whole = Window(T0 + MINUTE_NS, T0 + 3 * MINUTE_NS)
    assert only(tails(store, whole, clocks=["ttft_client_s"])).count == wide.count


def test_groups_come_in_order_and_null_is_unknown(tmp_path: Path) -> None:
    rows = [samples.request(i, pool=p, ttft_client_s=0.1) for i, p in enumerate(["b", None, "a"])]
    store = store_of(tmp_path, rows)
    for answer in (False, True):
        found = tails(store, by=["pool", "model"], clocks=["ttft_client_s"], exact=answer)
        assert [t.group["pool"] for t in found] == ["a", "b", "unknown"]
        assert {t.group["model"] for t in found} == {"llama"}


def test_an_empty_store_has_no_tails(tmp_path: Path) -> None:
    for answer in (False, True):
        assert tails(ParquetStore(tmp_path), by=["model"], exact=answer) == []
        assert tails(ParquetStore(tmp_path), exact=answer) == []


def test_names_that_are_none_are_refused(store: Store) -> None:
    with pytest.raises(UnknownColumn):
        tails(store, clocks=["mood_s"])
    with pytest.raises(UnknownColumn):
        tails(store, by=["mood"])


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 9)), min_size=1), st.floats(0, 1))
def test_a_weighted_quantile_is_that_of_repeated_values(
    pairs: list[tuple[float, int]], q: float
) -> None:
    values, weights = (np.array(x, float) for x in zip(*pairs, strict=True))
    repeated = np.repeat(values, weights.astype(int))
    assert weighted_quantile(values, weights, round(q, 3)) == exact(repeated.tolist(), round(q, 3))
