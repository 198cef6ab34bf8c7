"""Quantiles per group and clock, as plain rows."""

from collections.abc import Iterable, Sequence
from typing import Any

from tailburn.app.answers.question import Question
from tailburn.engine.names import CLOCK_COLUMNS
from tailburn.engine.problems import nearest
from tailburn.engine.schema import REQUESTS
from tailburn.engine.store.api import Store, UnknownColumn
from tailburn.engine.tails import Tail, tails

COLUMNS = {0.5: "p50_s", 0.95: "p95_s", 0.99: "p99_s", 0.999: "p999_s"}
_NOT_IN_ROWS = {"request_id", "trace_id", "anchor_span_id", "digests"}


def tail_rows(
    store: Store, question: Question, by: Sequence[str] = (), exact: bool = False
) -> list[dict[str, Any]]:
    """One row per group and clock, unmeasured clocks included.

    `thin` names the quantiles that rest on less than one request. Raises StoreError.
    """
    accepted = [name for name in REQUESTS.names if name not in _NOT_IN_ROWS]
    if bad := [name for name in by if name not in accepted]:
        raise UnknownColumn(f"can't group by {bad[0]!r}{nearest(bad[0], accepted)}")
    return [
        _row(tail)
        for tail in tails(store, question.window, question.where, by, CLOCK_COLUMNS, exact)
    ]


def measured(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, without clocks that nothing measured in any group."""
    kept = list(rows)
    clocks = {row["clock"] for row in kept if row["count"]}
    return [row for row in kept if row["clock"] in clocks]


def _row(tail: Tail) -> dict[str, Any]:
    return {
        **tail.group,
        "clock": tail.clock,
        "count": tail.count,
        "unmeasured": tail.unmeasured,
        **{name: tail.value_s(q) for q, name in COLUMNS.items()},
        "thin": [COLUMNS[x.q] for x in tail.quantiles if x.thin],
        "min_s": tail.min_s,
        "max_s": tail.max_s,
        "error_ratio": tail.error_ratio,
        "source": tail.source.value,
    }
