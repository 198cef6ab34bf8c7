"""One trace: its spans and its requests, as plain rows."""

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tailburn.app.errors import UserError
from tailburn.engine.store.api import Store

_TRACE_ID = re.compile(r"[0-9a-fA-F]{32}")
_REQUEST_ID = re.compile(r"[0-9a-fA-F]{16}")
_SPAN_FIELDS = ("name", "scope", "service", "kind", "status", "start_ns", "end_ns", "hop", "rule")


@dataclass(frozen=True)
class TraceAnswer:
    """Spans by start, requests by start. Both as dictionaries of plain values."""

    trace_id: str
    spans: list[dict[str, Any]]
    requests: list[dict[str, Any]]


def trace_answer(store: Store, given: str, tenant: str | None = None) -> TraceAnswer:
    """The trace of a trace id, or of a request id; only what is `tenant`'s, where given.

    Raises UserError for an id that is neither, or of which nothing is known.
    """
    trace_id = _trace_id(store, given)
    found = store.trace(trace_id)
    spans = _of_tenant(found.spans, tenant)
    requests = _of_tenant(found.requests.drop_columns(["digests"]), tenant)
    if not spans and not requests:
        raise UserError(f"trace {trace_id} is not in the store (or no longer)")
    requests.sort(key=lambda row: (row["start_ns"] or 0, row["request_id"]))
    return TraceAnswer(trace_id, [_span(row) for row in spans], requests)


def _of_tenant(rows: pa.Table, tenant: str | None) -> list[dict[str, Any]]:
    return [row for row in rows.to_pylist() if tenant is None or row["tenant"] == tenant]


def _trace_id(store: Store, given: str) -> str:
    if _TRACE_ID.fullmatch(given):
        return given.lower()
    if not _REQUEST_ID.fullmatch(given):
        raise UserError(f"{given!r}: want a trace id (32 hex digits) or a request id (16)")
    rows = store.requests(where={"request_id": given.lower()}, columns=["trace_id"])
    if not len(rows):
        raise UserError(f"request {given} is not in the store (or no longer)")
    return str(rows.column("trace_id")[0].as_py())


def _span(row: dict[str, Any]) -> dict[str, Any]:
    parent = row["parent_span_id"].hex()
    return {
        "span_id": row["span_id"].hex(),
        "parent_span_id": parent if int(parent, 16) else None,
        **{name: row[name] for name in _SPAN_FIELDS},
        "quarantined": row["quarantined"],
        "repaired": row["repaired"],
        "attributes": {
            **dict(row["attributes_num"] or ()),
            **dict(row["attributes_str"] or ()),
        },
        "events": row["events"],
    }
