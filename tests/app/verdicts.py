"""Rows of VERDICTS, and a store that has them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailburn.engine.schema import VERDICTS
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore

MINUTE_NS = 60_000_000_000


def verdict(
    slo: Slo,
    objective: str,
    minute_ns: int,
    requests: int,
    bad: int = 0,
    unmeasured: int = 0,
    **by: str,
) -> dict[str, Any]:
    """The verdicts of one objective of one minute, for these values of `by`."""
    found = next(o for o in objectives(slo) if o.name == objective)
    return {
        "minute_ns": minute_ns,
        "slo": slo.name,
        "objective": objective,
        "definition": definition_of(slo, found),
        "by": json.dumps(by),
        "requests": requests,
        "bad": bad,
        "unmeasured": unmeasured,
        "late": 0,
    }


def verdicts(rows: Iterable[dict[str, Any]]) -> pa.Table:
    plain = pa.Table.from_pylist(list(rows))
    columns = [
        plain[f.name].cast(pa.string()).dictionary_encode().cast(f.type)
        if pa.types.is_dictionary(f.type)
        else plain[f.name].cast(f.type)
        for f in VERDICTS
    ]
    return pa.Table.from_arrays(columns, schema=VERDICTS)


def store_with(folder: Path, rows: Iterable[dict[str, Any]]) -> ParquetStore:
    store = ParquetStore(folder)
    store.publish("verdicts", verdicts(rows), LogRange(1, 1))
    return store
