"""Courses of traffic for both faces of the scaling signals: as Prometheus scrapes, as rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.engine import histogram
from tailburn.engine.counted import rows_of
from tailburn.engine.evaluation import history_of
from tailburn.engine.evaluation.quantiles import BOUND_STEP
from tailburn.engine.gauges import KV, WAITING, EngineGauges
from tailburn.engine.names import (
    ALL_HOPS,
    CLOCK_METRICS,
    DEFINITION_LABEL,
    HOP_LABEL,
    OBJECTIVE_LABEL,
    SLO_BAD_METRIC,
    SLO_EXCESS_SECONDS_METRIC,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_SLOW_SECONDS_METRIC,
    VANTAGE_LABEL,
)
from tailburn.engine.scaling.signals import Signals, Standing
from tailburn.engine.schema import ROLLUPS
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Slo, objectives
from tailburn.rules.promql import selector
from tailburn.rules.scaling.signals import terms_of
from tests.app.verdicts import MINUTE_NS, verdict, verdicts
from tests.engine.test_gauges import reading

BEGIN: Final = 28_000_080  # minutes since the epoch: a multiple of an hour
_NS: Final = 1_000_000_000


@dataclass(frozen=True)
class Stretch:
    """So many minutes alike, of the first series; a second one is always well.

    `hops`: s that slow requests took over the baseline in a minute, by hop.
    """

    minutes: int
    requests: int | None  # None: the service was down
    usual_s: float = 0.1
    slow_s: float = 0.1
    slow_ratio: float = 0.0
    hops: Mapping[str, int] | None = None
    replicas: int | None = None  # None: no gauge of any is read
    waiting: float = 0.0
    kv_ratio: float = 0.1


Course = Sequence[Stretch]


def minutes_of(course: Course) -> list[Stretch]:
    return [one for stretch in course for one in [stretch] * stretch.minutes]


def series_of(slo: Slo) -> tuple[dict[str, str], ...]:
    """The labels of each series."""
    return ({"model": "a"}, {"model": "b"}) if slo.by else ({},)


def told(one: Stretch, labels: Mapping[str, str]) -> Stretch:
    """What a series sees of a minute."""
    if labels.get("model") != "b" or one.requests is None:
        return one
    return replace(one, slow_ratio=0.0, usual_s=0.1, hops=None)


def scraped(slo: Slo, course: Course) -> dict[str, str]:
    """All series as a scrape each minute would have seen them, the first at the begin."""
    found: dict[str, str] = {}
    for labels in series_of(slo):
        seen = [told(one, labels) for one in minutes_of(course)]
        found |= _buckets(slo, labels, seen) | _verdicts(slo, labels, seen)
        found |= _slow(slo, labels, seen) | _gauges(labels, seen)
    return found


def ours(slo: Slo, course: Course) -> list[Standing]:
    """The signals at each whole minute after the begin."""
    terms = terms_of(slo)
    assert terms is not None
    signals, gauges = Signals([terms]), EngineGauges([slo])
    history = history_of([], signals.needs)
    found = []
    for number, one in enumerate(minutes_of(course)):
        begin_ns, end_ns = ((BEGIN + number + i) * MINUTE_NS for i in (0, 1))
        if one.requests is not None:
            history.cover(begin_ns, end_ns)
            for labels in series_of(slo):
                for table, rows in rows_at(slo, labels, told(one, labels), begin_ns):
                    getattr(history, f"take_{table}")(rows)
        for labels in series_of(slo):
            for rows in readings(labels, one, end_ns // _NS):
                gauges.take(rows)
        history.record(end_ns)
        (standing,) = signals.at(history, gauges.replicas(end_ns), BEGIN + number + 1)
        found.append(standing)
        history.trim(end_ns)
        gauges.trim(end_ns)
    return found


def _counts(one: Stretch) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    counts = np.zeros(histogram.BUCKETS, np.int64)
    slow = round((one.requests or 0) * one.slow_ratio)
    counts[histogram.bucket_of(np.array([one.usual_s]))] += (one.requests or 0) - slow
    counts[histogram.bucket_of(np.array([one.slow_s]))] += slow
    return counts


def rows_at(
    slo: Slo, labels: dict[str, str], one: Stretch, at_ns: int
) -> Iterator[tuple[str, pa.Table]]:
    """What the service counts of a series in a minute: names of tables, and their rows."""
    if one.requests:
        counted = (
            verdict(slo, o.name, at_ns, one.requests, 0, 0, **labels) for o in objectives(slo)
        )
        yield "verdicts", verdicts(counted)
        yield "rollups", _rollup(slo, labels, one, at_ns)
    if one.hops:
        sums = {
            (at_ns, slo.name, json.dumps(labels), hop): [s * _NS]
            for hop, s in {**one.hops, ALL_HOPS: sum(one.hops.values())}.items()
        }
        yield "excess", rows_of("excess", sums)


def _rollup(slo: Slo, labels: Mapping[str, str], one: Stretch, at_ns: int) -> pa.Table:
    counts = _counts(one)
    used = np.flatnonzero(counts)
    row = {
        "minute_ns": at_ns,
        "clock": f"ttft_{slo.vantage}_s",
        "count": int(counts.sum()),
        "sum_s": 0.0,
        "buckets": used.tolist(),
        "counts": counts[used].tolist(),
        **labels,
    }
    columns = [
        pa.array([row[f.name]]).cast(f.type) if f.name in row else pa.nulls(1, f.type)
        for f in ROLLUPS
    ]
    return pa.table(columns, schema=ROLLUPS)


def readings(labels: Mapping[str, str], one: Stretch, at_s: int) -> Iterator[pa.Table]:
    for number in range(one.replicas or 0):
        values = {WAITING: one.waiting, KV: one.kv_ratio}
        name = f"{labels.get('model', 'x')}-{number}"
        yield reading(at_s, name, dict(labels), **values)


def _buckets(slo: Slo, labels: Mapping[str, str], seen: Sequence[Stretch]) -> dict[str, str]:
    bounds = [repr(float(b)) for b in histogram.exposition_bounds_s(BOUND_STEP)[:-1]] + ["+Inf"]
    total = np.cumsum([np.zeros(histogram.BUCKETS, np.int64), *map(_counts, seen)], axis=0)
    exposed = [histogram.cumulative(at, BOUND_STEP).tolist() for at in total]
    rows = [None if gone else at for gone, at in zip(_gone(seen), exposed, strict=True)]
    metric = f"{CLOCK_METRICS['ttft'][0]}_bucket"
    return {
        selector(metric, {VANTAGE_LABEL: slo.vantage, "le": bound, **labels}): " ".join(
            "_" if row is None else str(row[i]) for row in rows
        )
        for i, bound in enumerate(bounds)
    }


def _verdicts(slo: Slo, labels: Mapping[str, str], seen: Sequence[Stretch]) -> dict[str, str]:
    found = {}
    for objective in objectives(slo):
        told = {
            SLO_LABEL: slo.name,
            OBJECTIVE_LABEL: objective.name,
            DEFINITION_LABEL: definition_of(slo, objective),
            **labels,
        }
        found[selector(SLO_REQUESTS_METRIC, told)] = _risen(
            seen, [one.requests or 0 for one in seen]
        )
        found[selector(SLO_BAD_METRIC, told)] = _risen(seen, [0] * len(seen))
    return found


def _slow(slo: Slo, labels: Mapping[str, str], seen: Sequence[Stretch]) -> dict[str, str]:
    told = {SLO_LABEL: slo.name, **labels}
    hops = {hop for one in seen for hop in one.hops or ()} | {"queue"}
    whole = [sum((one.hops or {}).values()) for one in seen]
    found = {selector(SLO_EXCESS_SECONDS_METRIC, told): _risen(seen, whole)}
    for hop in sorted(hops):
        each = [(one.hops or {}).get(hop, 0) for one in seen]
        found[selector(SLO_SLOW_SECONDS_METRIC, {**told, HOP_LABEL: hop})] = _risen(seen, each)
    return found


def _gauges(labels: Mapping[str, str], seen: Sequence[Stretch]) -> dict[str, str]:
    most = max((one.replicas or 0 for one in seen), default=0)
    model = labels.get("model", "x")
    found = {}
    for number in range(most):
        who = {"job": "vllm", "instance": f"{model}-{number}:8000", "model_name": model}
        for metric, name in (
            ("vllm:num_requests_waiting", "waiting"),
            ("vllm:kv_cache_usage_perc", "kv_ratio"),
        ):
            values = [
                "_" if number >= (one.replicas or 0) else f"{getattr(one, name):g}" for one in seen
            ]
            found[selector(metric, who)] = " ".join(["_", *values])
    return found


def _risen(seen: Sequence[Stretch], amounts: Sequence[int]) -> str:
    total = [0, *np.cumsum(amounts).tolist()]
    return " ".join("_" if gone else str(at) for gone, at in zip(_gone(seen), total, strict=True))


def _gone(seen: Sequence[Stretch]) -> list[bool]:
    """At which scrapes nobody answered: those with a minute of none on either side."""
    down = [one.requests is None for one in seen]
    return [before and after for before, after in zip([True, *down], [*down, True], strict=True)]
