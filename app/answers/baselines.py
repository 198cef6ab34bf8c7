"""What is usual for each series and clock, and how it is now, as plain rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tailburn.app.answers.baselines_asked import Asked
from tailburn.app.answers.baselines_stored import deadlines_of, rollups_of
from tailburn.app.answers.tails import COLUMNS
from tailburn.engine.baseline import Baseline, Day, Incident, same_hour
from tailburn.engine.baseline.pooling import series_of
from tailburn.engine.baseline.present import Held
from tailburn.engine.baseline.quantiles import accumulate, quantiles
from tailburn.engine.baseline.same_hour import MINIMUM_COUNT
from tailburn.engine.store.api import Store
from tailburn.engine.tails import is_thin

_P99: Final = 0.99

Key = tuple[str, ...]
Tail = dict[str, Any]


def baseline_rows(
    store: Store, asked: Asked, fired: Sequence[Incident] | None
) -> list[dict[str, Any]]:
    """A row per series and clock that was measured in the present or on a day before.

    `fired`: what alerted in the last three days; None where no alert was ever evaluated. Raises
    StoreError.
    """
    rollups = rollups_of(store, asked, fired or ())
    deadlines = deadlines_of(store, asked)
    rows = [
        row
        for clock in asked.clocks
        for row in _rows(rollups, asked, clock, fired, deadlines(clock))
    ]
    return sorted(rows, key=lambda row: [row[name] for name in asked.dimensions])


def _rows(
    rollups: pa.Table,
    asked: Asked,
    clock: str,
    fired: Sequence[Incident] | None,
    deadlines: Mapping[Key, Held],
) -> Iterator[dict[str, Any]]:
    by = asked.dimensions
    found = {q: same_hour(rollups, clock, by, asked.now_ns, fired or (), q=q) for q in COLUMNS}
    present = _present(rollups, asked, clock)
    for i in range(len(found[_P99])):
        usual = {q: of_q.one(i) for q, of_q in found.items()}
        one = usual[_P99]
        now = present.get(tuple(one.series.values()), _tail(0, {}))
        before_now = any(count or left_out for _, count, left_out, _ in one.days)
        if not asked.wants(one.series) or not (now["requests"] or before_now):
            continue
        before = _before(usual)
        yield {
            **one.series,
            "clock": clock,
            "now": now,
            "usual": before,
            "ratio": _ratio(now, before),
            "days": [_day(one, ago) for ago in range(len(one.days))],
            "alerts_known": fired is not None,
            "pooled": list(one.pooled),
            "own_requests": one.own_count,
            "own_needs_s": one.needs_s,
            "needs_s": one.soonest_s,
            "deadline": _deadline(deadlines.get(tuple(one.series.values()))),
        }


def _present(rollups: pa.Table, asked: Asked, clock: str) -> dict[Key, Tail]:
    """The tail of each series itself in the present."""
    here = pc.equal(rollups.column("minute_ns"), asked.present[0])
    here = pc.and_(here, pc.equal(rollups.column("clock").cast(pa.string()), clock))
    rows = rollups.filter(pc.and_(here, pc.greater(rollups.column("count"), 0)))
    names, own = series_of(rows, asked.dimensions)
    dense = accumulate(rows, own, len(names))
    values = {q: quantiles(dense, q) for q in COLUMNS}
    return {
        name: _tail(int(dense.count[i]), {q: float(of_q[i]) for q, of_q in values.items()})
        for i, name in enumerate(names)
    }


def _before(usual: Mapping[float, Baseline]) -> Tail:
    """The tail of this hour on the days before; a percentile is as thin as on its thinnest day."""
    one = usual[_P99]
    counts = [count for state, count, _, _ in one.days if state is Day.USED]
    values = {q: of_q.value_s for q, of_q in usual.items() if of_q.value_s is not None}
    tail = _tail(min(counts, default=0), values)
    return {**tail, "requests": sum(counts), "days": len(counts)}


def _tail(count: int, values_s: Mapping[float, float]) -> Tail:
    return {
        "requests": count,
        **{name: values_s.get(q) for q, name in COLUMNS.items()},
        "thin": [COLUMNS[q] for q in values_s if is_thin(q, count)],
    }


def _ratio(now: Tail, before: Tail) -> dict[str, float | None]:
    """How many times the usual each percentile is; None from fewer requests than that takes."""
    enough = now["requests"] >= MINIMUM_COUNT
    return {
        name.removesuffix("_s"): now[name] / before[name] if enough and before[name] else None
        for name in COLUMNS.values()
    }


def _day(one: Baseline, place: int) -> dict[str, Any]:
    state, count, left_out, value_s = one.days[place]
    return {
        "days_ago": place + 1,
        "state": state.name.lower(),
        "requests": count,
        "left_out": left_out,
        "left_out_for": list(one.day_reasons[place]),
        "p99_s": value_s,
    }


def _deadline(found: Held | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "requests": found.requests,
        "rate_per_s": found.rate_per_s,
        "tokens": found.tokens,
        "deadline_s": found.deadline_s,
        "judged": found.judged,
        "late": found.late,
        "outside": dict(found.outside),
        "matched_on": str(found.basis),
        "hits_known": found.hits_known,
        "seen_requests": found.seen,
        "seen_days": found.days,
        "pooled": list(found.pooled),
        "missing_requests": found.missing,
        "told": found.told,
    }
