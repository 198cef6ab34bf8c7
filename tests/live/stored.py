"""What lies in a store, read by DuckDB as any outsider would."""

from collections import Counter
from pathlib import Path

import duckdb

_LATEST = """
    SELECT trace_id FROM (
        SELECT * FROM read_parquet(?, union_by_name = true)
        QUALIFY row_number() OVER (PARTITION BY request_id ORDER BY version DESC) = 1
    ) WHERE NOT tombstone
"""


def span_ids(store: Path, service: str | None = None) -> Counter[str]:
    """How often each span id is there, in hex; only of one service, where given."""
    if not any(store.glob("spans/*/*/*.parquet")):
        return Counter()
    found = duckdb.execute(
        "SELECT hex(span_id), service FROM read_parquet(?, union_by_name = true)",
        [f"{store}/spans/*/*/*.parquet"],
    ).fetchall()
    return Counter(span.lower() for span, of in found if service in (None, of))


def call_traces(store: Path) -> set[str]:
    """The traces in which an LLM call is stored."""
    found = duckdb.execute(
        "SELECT DISTINCT hex(trace_id) FROM read_parquet(?, union_by_name = true)"
        " WHERE attributes_str['gen_ai.operation.name'] = 'chat'",
        [f"{store}/spans/*/*/*.parquet"],
    ).fetchall()
    return {trace.lower() for (trace,) in found}


def request_traces(store: Path) -> Counter[str]:
    """How many requests each trace id has, by their last versions; none before the first file."""
    if not any(store.glob("requests/*/*/*.parquet")):
        return Counter()
    found = duckdb.execute(_LATEST, [f"{store}/requests/*/*/*.parquet"]).fetchall()
    return Counter(trace for (trace,) in found)


def counted(store: Path, clock: str) -> int:
    """How many requests the rollups hold for a clock: what every quantile rests on."""
    (row,) = duckdb.execute(
        "SELECT sum(count) FROM read_parquet(?, union_by_name = true) WHERE clock = ?",
        [f"{store}/rollups/*/*/*.parquet", clock],
    ).fetchall()
    return int(row[0] or 0)
