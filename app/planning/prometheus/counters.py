"""The counters of an SLO, minute by minute, as rows of VERDICTS.

A counter's value at a whole minute is the last that was read within the minute before it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.app.planning.prometheus.asking import MINUTE_S, Asking
from tailburn.app.terminal.output import stderr
from tailburn.app.wind_tunnel.bar import far_bar
from tailburn.collector.scrape.ranges import Ranged
from tailburn.engine.backtest.minutes import added_up
from tailburn.engine.backtest.rises import Counter, Rises
from tailburn.engine.grouping import I64
from tailburn.engine.names import (
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_BAD_METRIC,
    SLO_DEADLINE_MISSED_METRIC,
    SLO_DEADLINE_REQUESTS_METRIC,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_UNMEASURED_METRIC,
    UNKNOWN,
)
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.schema import VERDICTS
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.lateness import DEADLINE, has_deadlines
from tailburn.engine.slo.model import Slo, objectives
from tailburn.rules.promql import selector

_BUDGETS: Final = (SLO_REQUESTS_METRIC, SLO_BAD_METRIC, SLO_UNMEASURED_METRIC)
_DEADLINES: Final = (SLO_DEADLINE_REQUESTS_METRIC, SLO_DEADLINE_MISSED_METRIC)
_REQUESTS: Final = "requests"
_COLUMN: Final = {
    SLO_REQUESTS_METRIC: _REQUESTS,
    SLO_BAD_METRIC: "bad",
    SLO_UNMEASURED_METRIC: "unmeasured",
    SLO_DEADLINE_REQUESTS_METRIC: _REQUESTS,
    SLO_DEADLINE_MISSED_METRIC: "bad",
}
Labels = tuple[tuple[str, str], ...]
Key = tuple[str, str, str]
"""Objective, definition and `by` as the table has it."""


@dataclass(frozen=True)
class Counters:
    """What the counters of an SLO rose by. Minutes are those since the epoch."""

    slo: Slo
    verdicts: pa.Table  # of minutes at both ends of which they were read
    across: pa.Table  # of those that begin a stretch in which they weren't
    across_until_ns: I64  # when they were read again, a time for each row, rising
    points: I64  # the minutes at which they were read
    last: Mapping[Key, int]  # the last of these of each budget and combination of `by`
    metrics: frozenset[str]  # those that there are any values of


def read_counters(slo: Slo, asking: Asking, begin_s: int, end_s: int) -> Counters:
    """From one whole minute to another, both included. Raises UserError."""
    reading = _Reading(slo)
    with far_bar(stderr()) as bar:
        task = bar.add_task(f"reading counters of {slo.name}", total=end_s - begin_s, far="")
        for answers in asking.pieces(reading.queries, begin_s, end_s):
            reading.take(answers)
            far_s = reading.last_at * MINUTE_S - begin_s
            bar.update(task, completed=far_s, far=f"{far_s / 86_400:,.1f} d")
    return reading.whole()


def recent(series: str) -> str:
    """The value at each whole minute of a counter that was read in the minute before it."""
    return f"last_over_time({series}[{MINUTE_S}s])"


@dataclass
class _Reading:
    slo: Slo
    last_at: int = 0
    _counters: dict[tuple[str, Labels], Counter] = field(default_factory=dict)
    _last: dict[Key, int] = field(default_factory=dict)
    _points: list[I64] = field(default_factory=list)
    _verdicts: list[pa.Table] = field(default_factory=list)
    _across: list[tuple[pa.Table, I64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        chosen = {SLO_LABEL: self.slo.name}
        defined = "|".join(sorted({definition_of(self.slo, o) for o in objectives(self.slo)}))
        self._metrics = list(_BUDGETS)
        self.queries = [recent(selector(m, chosen, definition=defined)) for m in _BUDGETS]
        if has_deadlines(self.slo):
            self._metrics += _DEADLINES
            self.queries += [recent(selector(m, chosen)) for m in _DEADLINES]

    def take(self, answers: Sequence[Sequence[Ranged]]) -> None:
        """The series of each query, of one piece of the time."""
        found = [
            self._taken(metric, series)
            for metric, answer in zip(self._metrics, answers, strict=True)
            for series in answer
        ]
        # Each minute ends in one piece, whichever it began in.
        self._verdicts.append(added_up([whole for whole, _, _ in found]))
        self._across += [(across, until_ns) for _, across, until_ns in found if len(across)]

    def whole(self) -> Counters:
        rows = pa.concat_tables([VERDICTS.empty_table(), *(rows for rows, _ in self._across)])
        until_ns = _joined(until_ns for _, until_ns in self._across)
        order = np.argsort(until_ns, kind="stable")
        return Counters(
            self.slo,
            pa.concat_tables([VERDICTS.empty_table(), *self._verdicts]),
            rows.take(pa.array(order)),
            until_ns[order],
            np.unique(_joined(self._points)),
            self._last,
            frozenset(metric for metric, _ in self._counters),
        )

    def _taken(self, metric: str, series: Ranged) -> tuple[pa.Table, pa.Table, I64]:
        """Rows of minutes, rows of stretches, and when the latter end."""
        counter = self._counters.setdefault((metric, labels_of(series)), Counter())
        is_first = counter.last_at is None
        at = series.at_s // MINUTE_S
        rises = counter.take(at, series.values)
        key, column = self._key(metric, series), _COLUMN[metric]
        if counter.last_at is not None:
            self.last_at = max(self.last_at, counter.last_at)
            if column == _REQUESTS:
                self._last[key] = max(self._last.get(key, 0), counter.last_at)
            if metric == SLO_REQUESTS_METRIC:
                self._points.append(at[np.isfinite(series.values)])
        is_told = rises.amount > 0
        if is_first and len(is_told):
            is_told[0] = True  # counted from then on, even if there was nothing to count
        whole, across = is_told & ~rises.is_across, is_told & rises.is_across
        return (
            self._rows(key, column, rises, whole),
            self._rows(key, column, rises, across),
            rises.end[across] * MINUTE_NS,
        )

    def _key(self, metric: str, series: Ranged) -> Key:
        labels = series.labels
        by = json.dumps({name: labels.get(name) or UNKNOWN for name in self.slo.by})
        if metric in _DEADLINES:
            return DEADLINE, "", by
        return labels.get(OBJECTIVE_LABEL, ""), labels.get(DEFINITION_LABEL, ""), by

    def _rows(self, key: Key, column: str, rises: Rises, chosen: NDArray[np.bool_]) -> pa.Table:
        objective, definition, by = key
        amounts = rises.amount[chosen]
        none = np.zeros(len(amounts), np.int64)
        told = {
            "minute_ns": rises.begin[chosen] * MINUTE_NS,
            "slo": [self.slo.name] * len(amounts),
            "objective": [objective] * len(amounts),
            "definition": [definition] * len(amounts),
            "by": [by] * len(amounts),
            **dict.fromkeys(("requests", "bad", "unmeasured", "late"), none),
            column: amounts,
        }
        return pa.table([pa.array(told[f.name]).cast(f.type) for f in VERDICTS], schema=VERDICTS)


def labels_of(series: Ranged) -> Labels:
    """What tells a series from others; whether a function keeps the name is up to the version."""
    return tuple(sorted((n, v) for n, v in series.labels.items() if n != "__name__"))


def _joined(parts: Iterable[I64]) -> I64:
    return np.concatenate([np.zeros(0, np.int64), *parts])
