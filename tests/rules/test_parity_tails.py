"""Both faces of the alerts on percentiles: Prometheus on exposed buckets, and ours."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pytest

from tailburn.engine import histogram
from tailburn.engine.evaluation import AlertKey, State, evaluate, history_of
from tailburn.engine.names import CLOCK_METRICS, VANTAGE_LABEL
from tailburn.engine.schema import ROLLUPS
from tailburn.engine.slo.model import Clock, Completion, Regression, ScaleOut, Slo, Tier
from tailburn.rules.alerting import Kind
from tailburn.rules.promql import selector
from tailburn.rules.ruleset import build, watches_of
from tests.app.verdicts import MINUTE_NS
from tests.rules.parity import BEGIN, minutes_of, steps_around
from tests.rules.promtool import Asked, firing, judge, slo

pytestmark = pytest.mark.program("promtool")

TAILS: Final = (Kind.TIER, Kind.SCALE_OUT, Kind.CONSISTENCY, Kind.REGRESSION)
STEP: Final = 16  # as `/metrics` exposes buckets
CHAT: Final = slo(
    clocks={Clock.TTFT: {Tier.ACCEPTABLE: {"p99": 1.0}, Tier.CRITICAL: {"p50": 1.5}}},
    scale_out=ScaleOut(at_ratio=0.8, for_s=300),
)
BATCH: Final = slo(completion=Completion(3600, 0.9), consistency_p99_over_p50=3.0)
COMPARED: Final = slo(
    clocks={Clock.TTFT: {Tier.ACCEPTABLE: {"p99": 30.0}}}, regression=Regression(1.5, 1)
)

OF_DAYS: Final = replace(COMPARED, regression=Regression(1.5, 3))


@dataclass(frozen=True)
class Stretch:
    """So many minutes in which requests took `usual_s`, and a share of them `slow_s`."""

    minutes: int
    requests: int | None  # None: the service was down
    usual_s: float = 0.1
    slow_s: float = 0.1
    slow_ratio: float = 0.0


Course = Sequence[Stretch]
WELL: Final = Stretch(30, 600)
COURSES: Final[dict[str, tuple[Slo, Clock, Course, int]]] = {
    "critical": (CHAT, Clock.TTFT, (WELL, Stretch(30, 600, 3.0), Stretch(40, 600)), 1),
    "near": (CHAT, Clock.TTFT, (WELL, Stretch(30, 600, 0.1, 2.0, 0.05), Stretch(40, 600)), 1),
    "too few": (CHAT, Clock.TTFT, (WELL, Stretch(40, 3, 3.0), Stretch(20, 600)), 1),
    "gap": (
        CHAT,
        Clock.TTFT,
        (WELL, Stretch(20, 600, 3.0), Stretch(30, None), Stretch(40, 600)),
        1,
    ),
    "uneven": (BATCH, Clock.E2E, (Stretch(80, 60), Stretch(100, 60, 0.1, 3.0, 0.1), WELL), 4),
    "worse than yesterday": (
        COMPARED,
        Clock.TTFT,
        (Stretch(1500, 100), Stretch(60, 100, 0.4), Stretch(40, 100)),
        4,
    ),
    "few have a longer tail, then all are slow": (
        OF_DAYS,
        Clock.TTFT,
        (Stretch(1500, 100), Stretch(60, 100, 0.1, 0.4, 0.02), Stretch(60, 100, 0.4), WELL),
        4,
    ),
    "many have a longer tail": (
        OF_DAYS,
        Clock.TTFT,
        (Stretch(1500, 100), Stretch(60, 400, 0.1, 0.4, 0.02), WELL),
        4,
    ),
}


def counts_of(one: Stretch) -> np.ndarray:
    """A minute's requests by fine bucket."""
    counts = np.zeros(histogram.BUCKETS, np.int64)
    slow = round((one.requests or 0) * one.slow_ratio)
    counts[histogram.bucket_of(np.array([one.usual_s]))] += (one.requests or 0) - slow
    counts[histogram.bucket_of(np.array([one.slow_s]))] += slow
    return counts


def series_of(slo: Slo, clock: Clock, course: Course) -> dict[str, str]:
    """The exposed buckets as a scrape each minute would have seen them."""
    bounds = [repr(float(b)) for b in histogram.exposition_bounds_s(STEP)[:-1]] + ["+Inf"]
    total, seen = np.zeros(histogram.BUCKETS, np.int64), []
    seen.append(histogram.cumulative(total, STEP).tolist())
    for one in minutes_of(course):
        total = total + counts_of(one)
        down = one.requests is None
        seen.append(None if down else histogram.cumulative(total, STEP).tolist())
    metric = f"{CLOCK_METRICS[str(clock)][0]}_bucket"
    return {
        selector(metric, {VANTAGE_LABEL: slo.vantage, "le": bound}): " ".join(
            "_" if row is None else str(row[i]) for row in seen
        )
        for i, bound in enumerate(bounds)
    }


def rollup_of(slo: Slo, clock: Clock, minute_ns: int, one: Stretch) -> pa.Table:
    counts = counts_of(one)
    used = np.flatnonzero(counts)
    row = {
        **dict.fromkeys(ROLLUPS.names),
        "minute_ns": minute_ns,
        "clock": f"{clock}_{slo.vantage}_s",
        "count": int(counts.sum()),
        "sum_s": 0.0,
        "buckets": used.tolist(),
        "counts": counts[used].tolist(),
    }
    return pa.table(
        [pa.array([row[f.name]]).cast(f.type) if row[f.name] is not None else pa.nulls(1, f.type)
         for f in ROLLUPS],
        schema=ROLLUPS,
    )  # fmt: skip


def ours(slo: Slo, clock: Clock, course: Course) -> list[dict[AlertKey, State]]:
    """The states at each whole minute; the first is the begin."""
    watches = watches_of([slo])
    history, states = history_of(watches), dict[AlertKey, State]()
    found = [states]
    for number, one in enumerate(minutes_of(course)):
        begin_ns = (BEGIN + number) * MINUTE_NS
        if one.requests is not None:
            history.cover(begin_ns, begin_ns + MINUTE_NS)
            history.take_rollups(rollup_of(slo, clock, begin_ns, one))
        states, _ = evaluate(watches, history, states, (), begin_ns + MINUTE_NS)
        found.append(states)
    return found


def asked(slo: Slo, found: list[dict[AlertKey, State]], every: int) -> Iterator[Asked]:
    """On either side of each change, one evaluation away; at the end where there is none."""
    for watch in watches_of([slo]):
        key = watch.key
        if watch.interval_s != every * 60 or key.alertname not in TAILS:
            continue
        fires = np.array([key in s and s[key].status.fires for s in found[::every]])
        for step in steps_around(fires, {len(fires) - 2}):
            labels = {"severity": key.severity, "objective": key.objective, "long": key.long}
            named = {name: value for name, value in labels.items() if value}
            yield firing(step * every * 60.0, int(fires[step]), Kind(key.alertname), **named)


@pytest.mark.parametrize("course", COURSES)
def test_alerts_on_percentiles_fire_and_end_as_in_prometheus(
    course: str, need_program: Callable[[str], str], tmp_path: Path
) -> None:
    one, clock, stretches, every = COURSES[course]
    questions = list(asked(one, ours(one, clock, stretches), every))
    assert questions
    series = series_of(one, clock, stretches)
    judge(need_program("promtool"), tmp_path, build([one]), series, questions, every * 60)


def test_what_is_compared_does_fire() -> None:
    fired = {
        Kind(key.alertname)
        for one, clock, stretches, _ in COURSES.values()
        for states in ours(one, clock, stretches)
        for key, state in states.items()
        if state.status.fires
    }
    assert fired >= set(TAILS)
