"""How budgets stand, as plain rows: what is burned, what is left, when it is gone."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tailburn.app.answers.promises import Promise
from tailburn.app.tenants import is_seen_by
from tailburn.engine.slo.budget import NOW_S, Budget, Counts, budget, window_of
from tailburn.engine.store.api import Store, Window

_NS: Final = 1_000_000_000
_FINE_NS: Final = 60 * _NS
_COARSE_NS: Final = 900 * _NS
_FINE_UP_TO_NS: Final = 24 * 3600 * _NS

_COUNTS: Final = """
SELECT slo, objective, definition, "by",
    CASE WHEN minute_ns >= ? THEN minute_ns ELSE minute_ns - minute_ns % ? END AS begin_ns,
    sum(requests)::BIGINT AS requests, sum(bad)::BIGINT AS bad,
    sum(unmeasured)::BIGINT AS unmeasured
FROM verdicts WHERE minute_ns >= ? AND minute_ns < ?
GROUP BY ALL ORDER BY begin_ns
"""

_Key = tuple[str, str, str, str]


def budget_rows(
    store: Store,
    promises: Sequence[Promise],
    now_ns: int,
    *,
    slo: str | None = None,
    tenant: str | None = None,
    moved: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """A row per budget and combination of the values of `by`; of one SLO, for one tenant.

    `moved`: by SLO, in words, what moved of the requests that it was made of.
    A budget of which nothing was ever counted has a row too: unmeasured. Raises StoreError.
    """
    asked = [p for p in promises if slo is None or p.slo == slo]
    rows: list[dict[str, Any]] = []
    for bin_ns, alike in _by_bin(asked, now_ns):
        counted = _counted(store, alike, bin_ns, now_ns)
        for promise in alike:
            rows += _rows_of(promise, counted, tenant, now_ns)
    for row in rows:
        row["mix_moved"] = (moved or {}).get(row["slo"])
    order = {(p.slo, p.objective): i for i, p in enumerate(asked)}
    return sorted(rows, key=lambda row: order[row["slo"], row["objective"]])


def _by_bin(promises: Iterable[Promise], now_ns: int) -> list[tuple[int, list[Promise]]]:
    """Those with short windows are counted by the minute; a month of minutes is too many."""
    parts: dict[int, list[Promise]] = {}
    for promise in promises:
        begin_ns, _ = window_of(promise.window, now_ns)
        bin_ns = _FINE_NS if now_ns - begin_ns <= _FINE_UP_TO_NS else _COARSE_NS
        parts.setdefault(bin_ns, []).append(promise)
    return list(parts.items())


def _counted(
    store: Store, promises: Sequence[Promise], bin_ns: int, now_ns: int
) -> dict[_Key, Counts]:
    """Verdicts by series and bin since the longest of the windows began."""
    lately_ns = now_ns - NOW_S * _NS
    begin_ns = min(lately_ns, *(window_of(p.window, now_ns)[0] for p in promises))
    found = store.query(
        _COUNTS, [lately_ns, bin_ns, begin_ns, now_ns], window=Window(begin_ns, now_ns)
    )
    return {
        key: Counts(
            *(_numbers(rows, name) for name in ("begin_ns", "requests", "bad", "unmeasured"))
        )
        for key, rows in _grouped(found)
    }


def _grouped(rows: pa.Table) -> Iterable[tuple[_Key, pa.Table]]:
    names = ("slo", "objective", "definition", "by")
    places: dict[_Key, list[int]] = {}
    for i, key in enumerate(zip(*(rows[name].to_pylist() for name in names), strict=True)):
        places.setdefault(key, []).append(i)
    return ((key, rows.take(pa.array(at))) for key, at in places.items())


def _numbers(rows: pa.Table, name: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
    numbers: np.ndarray[Any, np.dtype[np.int64]] = rows[name].to_numpy().astype(np.int64)
    return numbers


def _rows_of(
    promise: Promise, counted: dict[_Key, Counts], tenant: str | None, now_ns: int
) -> list[dict[str, Any]]:
    wanted = (promise.slo, promise.objective, promise.definition)
    found = {
        tuple(json.loads(key[3]).items()): counts
        for key, counts in counted.items()
        if key[:3] == wanted
    }
    if not found:
        nothing = np.zeros(0, np.int64)
        found = {(): Counts(nothing, nothing, nothing, nothing)}
    return [
        _row(promise, by, budget(counts, promise.budget_ratio, promise.window, now_ns))
        for by, counts in found.items()
        if is_seen_by(tenant, promise.tenant, by)
    ]


def _row(promise: Promise, by: tuple[tuple[str, str], ...], stood: Budget) -> dict[str, Any]:
    return {
        "slo": promise.slo,
        "objective": promise.objective,
        "definition": promise.definition,
        "by": dict(by),
        "window": str(promise.window),
        "begin_ns": stood.begin_ns,
        "end_ns": stood.end_ns,
        "measured_since_ns": stood.since_ns,
        "threshold_s": promise.threshold_s,
        "budget_ratio": promise.budget_ratio,
        "requests": stood.requests,
        "bad": stood.bad,
        "unmeasured": stood.unmeasured,
        "unmeasured_ratio": stood.unmeasured_ratio,
        "burned_ratio": stood.burned_ratio,
        "left_ratio": stood.left_ratio,
        "burn_rate": stood.burn,
        "outlook": str(stood.outlook),
        "gone_ns": stood.gone_ns,
        "course": [{"at_ns": at_ns, "left_ratio": left} for at_ns, left in stood.course],
    }
