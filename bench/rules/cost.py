"""Rules of 200 budgets in a real Prometheus with 30 days behind it, beside Sloth's shape of them.

1. The rules run on the counters alone, which tells what they record.
2. What they recorded is given a past as long as they read it, at the pace of its group.
3. They run again, and their evaluations are timed.

A group that is due each four minutes costs a quarter of its time a minute.

python -m bench.rules.cost
"""

import json
import math
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.figures import Figure, show
from bench.rules import sloth
from bench.rules.evaluation import Timed, prometheus
from bench.rules.history import Series, looked_back, write
from tailburn.engine import histogram
from tailburn.engine.names import (
    CLOCK_METRICS,
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_BAD_METRIC,
    SLO_BAD_RATE_RECORD,
    SLO_BUDGET_LEFT_RECORD,
    SLO_BUDGET_RECORD,
    SLO_BURN_RECORD,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_TOTAL_RATE_RECORD,
    SLO_UNMEASURED_METRIC,
    VANTAGE_LABEL,
)
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Clock, Place, Regression, Slo, Tier, objectives
from tailburn.rules.alerting import Kind
from tailburn.rules.formats.prometheus import written
from tailburn.rules.model import RuleSet
from tailburn.rules.ruleset import build

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAMS: Final = ROOT / ".make" / "programs" / "usr" / "bin"
MODELS: Final = 50
SLOTH_BUDGETS: Final = 20  # of the 200: each has groups of its own, so it costs as much
SCRAPED_S: Final = 15
AHEAD_S: Final = 480  # Prometheus takes ten minutes at most
REQUESTS_A_SCRAPE: Final = 1000.0  # of each model
EVALUATIONS: Final = 5
_MINUTE_S: Final = 60
_BOUND_STEP: Final = 16
_USUAL_S: Final = {Clock.TTFT: 0.1, Clock.TPOT: 0.012}  # well within the thresholds
_AS_SLOTH: Final = (SLO_BUDGET_RECORD, SLO_BUDGET_LEFT_RECORD, str(Kind.BURN))
_RATES: Final = (SLO_TOTAL_RATE_RECORD, SLO_BAD_RATE_RECORD, SLO_BURN_RECORD)
_BAD, _TOTAL = "bench_bad_total", "bench_requests_total"

SLO: Final = Slo(
    "bench",
    Place("bench.yaml", 1),
    labels={"team": "bench"},
    by=("model",),
    clocks={
        Clock.TTFT: {Tier.ACCEPTABLE: {"p95": 0.5}, Tier.CRITICAL: {"p50": 1.0}},
        Clock.TPOT: {Tier.ACCEPTABLE: {"p95": 0.06}},
    },
    availability_ratio=0.999,
    goodput_ratio=0.95,
    regression=Regression(),
)
BUDGETS: Final = MODELS * len(objectives(SLO))


@dataclass(frozen=True)
class _Setup:
    """Rules, the pace of their groups, and the counters that they rest on."""

    text: str
    expressions: Sequence[str]
    pace_s: dict[str, int]  # by name of a group
    records: dict[str, int]  # pace by name of a series
    counters: Sequence["Counter"]


@dataclass(frozen=True)
class Counter:
    """A series that is scraped, and by how much it rises between two scrapes."""

    metric: str
    labels: dict[str, str]
    rise: float


def figures() -> Iterator[Figure]:
    """The cost a minute: of what Sloth has as well, and of all; nothing without Prometheus."""
    programs = [_found(name) for name in ("prometheus", "promtool")]
    if None in programs:
        return
    setup = _ours()
    ours, theirs = _timed(setup, *map(str, programs)), _timed(_sloths(), *map(str, programs))
    baseline_ms = _a_minute_ms(theirs, {})[EVALUATIONS // 2] * BUDGETS / SLOTH_BUDGETS
    as_sloth = f"Sloth's shape of them, {SLOTH_BUDGETS} x {BUDGETS // SLOTH_BUDGETS}"
    burn = [timed for timed in ours if timed.name in _AS_SLOTH or timed.name.startswith(_RATES)]
    for what, rules in (("budgets and burn alerts", burn), ("all rules", ours)):
        yield Figure(
            f"{what} of {BUDGETS} budgets, a minute", _a_minute_ms(rules, setup.pace_s), "ms",
            baseline_ms, as_sloth, smaller_is_better=True,
        )  # fmt: skip


def _a_minute_ms(rules: Sequence[Timed], pace_s: dict[str, int]) -> list[float]:
    """The sum of each rule's quickest evaluation, of the next ones, ..., of the slowest.

    That in the middle is the sum of the medians.
    """
    sums = [0.0] * EVALUATIONS
    for rule in rules:
        share = _MINUTE_S / pace_s.get(rule.group, _MINUTE_S)
        for i, evaluated_s in enumerate(sorted(rule.seconds)):
            sums[i] += evaluated_s * 1e3 * share
    return sums


def _timed(setup: _Setup, program: str, promtool: str) -> list[Timed]:
    back_s = looked_back(setup.expressions)
    with TemporaryDirectory(prefix="tailburn-bench-") as name:
        first, second = Path(name, "first"), Path(name, "second")
        raw = [
            Series(one.metric, one.labels, SCRAPED_S, back_s.get(one.metric, 0), one.rise, AHEAD_S)
            for one in setup.counters
        ]
        _write(promtool, raw, first)
        with prometheus(program, first, setup.text) as running:
            running.wait_until_evaluated()
            recorded = [
                Series(metric, labels, setup.records[metric], back_s[metric])
                for metric in setup.records
                if metric in back_s
                for labels in map(_without_name, running.query(metric))
            ]
        _write(promtool, [*raw, *recorded], second)
        with prometheus(program, second, setup.text) as running:
            return running.timed(EVALUATIONS)


def _write(promtool: str, series: Sequence[Series], folder: Path) -> None:
    folder.mkdir()
    write(promtool, series, folder, int(time.time()))


def _without_name(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name != "__name__"}


def _ours() -> _Setup:
    ruleset: RuleSet = build([SLO])
    return _Setup(
        text=written("", ruleset.groups),
        expressions=[rule.expr for rule in ruleset.rules],
        pace_s={group.name: group.interval_s for group in ruleset.groups},
        records={r.record: g.interval_s for g in ruleset.groups for r in g.rules if r.record},
        counters=[*_verdicts(), *_buckets()],
    )


def _verdicts() -> Iterator[Counter]:
    for model in _models():
        for objective in objectives(SLO):
            labels = {
                SLO_LABEL: SLO.name,
                OBJECTIVE_LABEL: objective.name,
                DEFINITION_LABEL: definition_of(SLO, objective),
                "model": model,
            }
            yield Counter(SLO_REQUESTS_METRIC, labels, REQUESTS_A_SCRAPE)
            yield Counter(SLO_BAD_METRIC, labels, 0.0005 * REQUESTS_A_SCRAPE)
            yield Counter(SLO_UNMEASURED_METRIC, labels, 0.0005 * REQUESTS_A_SCRAPE)


def _buckets() -> Iterator[Counter]:
    bounds = [*(repr(float(b)) for b in histogram.exposition_bounds_s(_BOUND_STEP)[:-1]), "+Inf"]
    for model in _models():
        for clock in (Clock.TTFT, Clock.TPOT):
            for bound in bounds:
                labels = {VANTAGE_LABEL: SLO.vantage, "model": model, "le": bound}
                rise = REQUESTS_A_SCRAPE * _share_below(float(bound), _USUAL_S[clock])
                yield Counter(f"{CLOCK_METRICS[clock][0]}_bucket", labels, rise)


def _share_below(bound_s: float, usual_s: float) -> float:
    """Of a healthy clock: lognormal, p99 at 3.2 times the median."""
    return 0.5 + 0.5 * math.erf(math.log(bound_s / usual_s) / 0.5 / math.sqrt(2))


def _models() -> list[str]:
    return [f"model-{i}" for i in range(MODELS)]


def _sloths() -> _Setup:
    groups, counters = [], []
    for i in range(SLOTH_BUDGETS):
        labels = {"job": f"job-{i}"}
        selectors = [f'{metric}{{job="job-{i}"}}' for metric in (_BAD, _TOTAL)]
        groups += list(sloth.groups(f"slo-{i}", 0.95, *selectors))
        counters.append(Counter(_BAD, labels, 0.0005 * REQUESTS_A_SCRAPE))
        counters.append(Counter(_TOTAL, labels, REQUESTS_A_SCRAPE))
    rules = [rule for group in groups for rule in group["rules"]]
    return _Setup(
        text=json.dumps({"groups": groups}),
        expressions=[rule["expr"] for rule in rules],
        pace_s={},
        records={rule["record"]: _MINUTE_S for rule in rules if "record" in rule},
        counters=counters,
    )


def _found(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=str(PROGRAMS))


if __name__ == "__main__":
    show(list(figures()))
