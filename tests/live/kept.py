"""What a stopped service leaves behind of counters, baselines and alerts, as plain values."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from tailburn.collector.snapshot import load_latest
from tailburn.engine.store.state.address import schema_in

Rows = list[tuple[Any, ...]]
Series = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]
"""Values by name and labels of a series, as /metrics shows them."""

_SUMS = """
    SELECT {by}, {sums} FROM read_parquet(?, union_by_name = true) GROUP BY ALL ORDER BY ALL
"""
_VERDICTS = _SUMS.format(
    by='minute_ns, slo, objective, definition, "by"',
    sums="sum(requests), sum(bad), sum(unmeasured), sum(late)",
)
_EXCESS = _SUMS.format(by='minute_ns, slo, "by", hop', sums="sum(slow_ns)")
_USUAL = "SELECT * FROM read_parquet(?, union_by_name = true) ORDER BY ALL"
_STATES = "SELECT * FROM alert_states ORDER BY alertname, slo, objective, severity, long, short, by"
_FLIPS = """
    SELECT alertname, slo, objective, severity, long, short, by, old, new, at_ns, value, reason
    FROM alert_flips ORDER BY 10, 1, 2, 3, 4, 5, 6, 7
"""


@dataclass(frozen=True)
class Kept:
    """All of one run; two runs of the same input leave the same."""

    series: Series
    verdicts: Rows  # counters by the minute
    excess: Rows
    usual: Rows  # cells of closed hours
    open_state: Any  # counters and the hour that runs, as the last snapshot has them
    alert_states: Rows
    alert_flips: Rows

    def differences(self, other: "Kept") -> dict[str, tuple[Any, Any]]:
        """Each part that isn't the same, with what is only here and only there."""
        found = {}
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if mine != theirs:
                found[field.name] = _apart(mine, theirs)
        return found


def kept(store: Path, series: Series, url: str = "") -> Kept:
    """Read it from a store that no service holds, and its state from there or from `url`."""
    snapshot = load_latest(store / "snapshots")
    assert snapshot is not None, "a service that stops takes a snapshot"
    return Kept(
        series=series,
        verdicts=_stored(store, "verdicts", _VERDICTS),
        excess=_stored(store, "excess", _EXCESS),
        usual=_stored(store, "usual", _USUAL),
        open_state=snapshot.meta["counts"],
        alert_states=asked(store, _STATES, url),
        alert_flips=asked(store, _FLIPS, url),
    )


def asked(store: Path, query: str, url: str = "") -> Rows:
    """Rows of the state database, a file or on a server."""
    if url:
        with psycopg.connect(url, options=f"-c search_path={schema_in(store)}") as server:
            return server.execute(query).fetchall()
    with closing(sqlite3.connect(f"file:{store}/state.sqlite?mode=ro", uri=True)) as database:
        return database.execute(query).fetchall()


def _stored(store: Path, table: str, query: str) -> Rows:
    return duckdb.execute(query, [f"{store}/{table}/*/*/*.parquet"]).fetchall()


def _apart(mine: Any, theirs: Any) -> tuple[Any, Any]:
    if not isinstance(mine, list):
        return mine, theirs
    return [row for row in mine if row not in theirs], [row for row in theirs if row not in mine]
