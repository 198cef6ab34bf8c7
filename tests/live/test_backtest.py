"""`tailburn backtest --prometheus` on a real one says what the same history says from a store."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tailburn.engine import histogram
from tailburn.engine.backtest.minutes import count
from tailburn.engine.evaluation.quantiles import BOUND_STEP, BOUNDS_S
from tailburn.engine.names import (
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_BAD_METRIC,
    SLO_DEADLINE_MISSED_METRIC,
    SLO_DEADLINE_REQUESTS_METRIC,
    SLO_IN_FLIGHT_METRIC,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_UNMEASURED_METRIC,
)
from tailburn.engine.rollup import fold
from tailburn.engine.slo.lateness import DEADLINE
from tailburn.engine.slo.model import Slo
from tailburn.engine.slo.parse import parse
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tailburn.rules.alerting import Kind
from tailburn.rules.promql import selector
from tests.app.conftest import Run
from tests.app.conftest import run as run
from tests.app.planning.answers import iso, told
from tests.app.verdicts import verdict, verdicts
from tests.engine.store.samples import HOUR_NS, MINUTE_NS, T0
from tests.engine.suggest.rows import healthy
from tests.live.monitoring import fill, prometheus

pytestmark = [pytest.mark.program("promtool"), pytest.mark.timeout(600)]

HOURS: Final = 30
MINUTES: Final = HOURS * 60
SLOW: Final = range(26 * 60, 27 * 60)  # minutes of one model in which every second is slow
FAILING: Final = range(6 * 60, 6 * 60 + 30)  # of the other: a third fails
NOBODY: Final = range(12 * 60, 12 * 60 + 20)  # no request of one model ends, some are in flight
HOLE: Final = range(9 * 60, 9 * 60 + 50)  # nothing is there
RESET: Final = 20 * 60  # the counters begin again
SLO: Final = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec:
  by: [model]
  clocks: {ttft: {acceptable: {p95: 600ms, p99: 1s}, critical: {p50: 1s}}}
  availability: 99%
  regression: {ratio: 1.5, days: 1}
  scale_out: {at: 0.8, for: 5m}
"""
Series = dict[str, list[float | None]]


@dataclass(frozen=True)
class Places:
    slo: Path
    store: Path
    url: str


@pytest.fixture(scope="module")
def places(
    tmp_path_factory: pytest.TempPathFactory, need_program: Callable[[str], str]
) -> Iterator[Places]:
    """One history, kept twice."""
    folder = tmp_path_factory.mktemp("backtest")
    (folder / "chat.yaml").write_text(SLO)
    (slo,) = parse([("chat.yaml", SLO)]).slos
    rows = requests()
    counted = pa.concat_tables([count(rows, [slo]), deadlines(slo)])
    store = ParquetStore(folder / "store")
    store.publish("requests", rows, LogRange(1, 1))
    store.publish("rollups", fold(rows), LogRange(1, 1))
    store.publish("verdicts", deadlines(slo), LogRange(1, 1))
    home, rules = folder / "prometheus", folder / "rules"
    rules.mkdir()
    past = {**counters(counted), **buckets(fold(rows)), **in_flight()}
    fill(need_program("promtool"), home, past, T0 // 10**9)
    with prometheus(need_program("prometheus"), home, rules) as running:
        yield Places(folder / "chat.yaml", folder / "store", running.url)


def requests() -> pa.Table:
    """Two models; what is slow, what fails, what is not there."""
    rows = healthy(250_000, HOURS)
    at = minute_of(rows["received_ns"])
    draw = np.random.default_rng(7).random(len(rows))
    is_qwen = draw < 0.4
    slow = ~is_qwen & np.isin(at, SLOW) & (draw < 0.7)
    told = {
        "model": np.where(is_qwen, "qwen", "llama"),
        "ttft_gateway_s": np.where(slow, 3.0, rows["ttft_gateway_s"].to_numpy()),
        "outcome": np.where(is_qwen & np.isin(at, FAILING) & (draw < 0.13), "error", "ok"),
    }
    for name, values in told.items():
        index = rows.schema.get_field_index(name)
        kind = rows.schema.field(name).type
        rows = rows.set_column(index, rows.schema.field(name), pa.array(values).cast(kind))
    gone = np.isin(at, HOLE) | (is_qwen & np.isin(at, NOBODY))
    return rows.filter(pa.array(~gone))


def deadlines(slo: Slo) -> pa.Table:
    """As the service counted them: a fifth misses them while one model is slow."""
    rows = []
    for minute in range(MINUTES):
        if minute not in HOLE:
            missed = 6 if minute in SLOW else 0
            one = verdict(slo, "availability", T0 + minute * MINUTE_NS, 30, missed, model="llama")
            rows.append({**one, "objective": DEADLINE, "definition": ""})
    return verdicts(rows)


def counters(counted: pa.Table) -> Series:
    found: Series = {}
    for row in added(counted, ["objective", "definition", "by"], ["requests", "bad", "unmeasured"]):
        labels = {SLO_LABEL: "chat", **json.loads(row["by"])}
        if row["objective"] == DEADLINE:
            names = [SLO_DEADLINE_REQUESTS_METRIC, SLO_DEADLINE_MISSED_METRIC]
        else:
            names = [SLO_REQUESTS_METRIC, SLO_BAD_METRIC, SLO_UNMEASURED_METRIC]
            told = {OBJECTIVE_LABEL: row["objective"], DEFINITION_LABEL: row["definition"]}
            labels |= told
        for name, values in zip(names, ("requests", "bad", "unmeasured"), strict=False):
            found[selector(name, labels)] = scraped(row["minutes"], row[values])
    return found


def buckets(rollups: pa.Table) -> Series:
    """The histograms of first tokens as `/metrics` exposes them."""
    chosen = rollups.filter(pc.equal(rollups["clock"].cast(pa.string()), "ttft_gateway_s"))
    bounds = [*(repr(float(bound)) for bound in BOUNDS_S), "+Inf"]
    found: Series = {}
    for model in ("llama", "qwen"):
        own = chosen.filter(pc.equal(chosen["model"].cast(pa.string()), model))
        per_minute = np.zeros((MINUTES, len(bounds)))
        for row in own.select(["minute_ns", "buckets", "counts"]).to_pylist():
            whole = np.zeros(histogram.BUCKETS, np.int64)
            np.add.at(whole, row["buckets"], row["counts"])
            minute = (row["minute_ns"] - T0) // MINUTE_NS
            per_minute[minute] += histogram.cumulative(whole, BOUND_STEP)
        for column, le in enumerate(bounds):
            labels = {"model": model, "tenant": "default", "vantage": "gateway", "le": le}
            series = selector("tailburn_ttft_seconds_bucket", labels)
            found[series] = scraped(range(MINUTES), per_minute[:, column])
    return found


def in_flight() -> Series:
    """Three requests of each model at all times, but for the hole."""
    values = [None if minute in HOLE[1:] else 3.0 for minute in range(MINUTES + 1)]
    return {
        selector(SLO_IN_FLIGHT_METRIC, {SLO_LABEL: "chat", "model": model}): list(values)
        for model in ("llama", "qwen")
    }


def scraped(minutes: Any, amounts: Any) -> list[float | None]:
    """A counter at each whole minute: none in the hole, begun again once."""
    each = np.zeros(MINUTES)
    np.add.at(each, np.array(minutes), np.array(amounts))
    total = np.concatenate([[0], np.cumsum(each)])
    total[RESET + 1 :] -= total[RESET]
    return [
        None if minute in HOLE[1:] else float(value) for minute, value in enumerate(total.tolist())
    ]


def added(table: pa.Table, keys: list[str], values: list[str]) -> list[dict[str, Any]]:
    """For each combination of keys its minutes, and its values in each of them."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in table.to_pylist():
        key = tuple(row[k] for k in keys)
        one = found.setdefault(
            key, {k: row[k] for k in keys} | {v: [] for v in ("minutes", *values)}
        )
        one["minutes"].append((row["minute_ns"] - T0) // MINUTE_NS)
        for value in values:
            one[value].append(row[value])
    return list(found.values())


def minute_of(column: pa.ChunkedArray) -> Any:
    return (column.to_numpy() - T0) // MINUTE_NS


def test_the_same_history_says_the_same_from_a_prometheus_as_from_a_store(
    run: Run, places: Places
) -> None:
    times = ("--since", iso(T0), "--until", iso(T0 + HOURS * HOUR_NS))
    stored = told(run, places.slo, "--store", places.store, *times)
    asked = told(run, places.slo, "--prometheus", places.url, *times)
    only_there = (Kind.STALLED, Kind.UNMEASURED)  # a store keeps no gauges, and no scrapes
    assert [one for one in asked["alert"] if one["alert"] not in only_there] == stored["alert"]
    fired = {one["alert"] for one in stored["alert"]}
    assert fired >= {Kind.BURN, Kind.TIER, Kind.DEADLINE, Kind.REGRESSION, Kind.SCALE_OUT}
    assert asked["budget"] == stored["budget"]
    [hole], [of_store] = asked["hole"], stored["hole"]
    assert hole["end_ns"] == of_store["end_ns"]
    # A value of the very begin of a minute stands for all of it.
    assert 0 <= hole["start_ns"] - of_store["start_ns"] <= MINUTE_NS


def test_what_only_a_prometheus_knows_is_judged_too(run: Run, places: Places) -> None:
    times = ("--since", iso(T0), "--until", iso(T0 + HOURS * HOUR_NS))
    asked = told(run, places.slo, "--prometheus", places.url, *times)
    [stalled] = [one for one in asked["alert"] if one["alert"] == Kind.STALLED]
    assert stalled["by"] == {"model": "qwen"}
    assert (stalled["start_ns"] - T0) // MINUTE_NS in NOBODY
    gone = [one for one in asked["alert"] if one["alert"] == Kind.UNMEASURED]
    assert {(one["start_ns"] - T0) // MINUTE_NS in HOLE for one in gone} == {True}
    [score] = asked["score"]
    assert score["not_judged"] == []
