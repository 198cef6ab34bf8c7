"""Small tables of the store's schemas, with what a test says and defaults for the rest."""

import hashlib
from typing import Any

import pyarrow as pa

from tailburn.engine.schema import EXCESS, REQUESTS, SIGNALS, SPANS, VERDICTS

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS
T0 = 1_790_000_000 * SECOND_NS - 1_790_000_000 * SECOND_NS % HOUR_NS  # start of an hour


def trace_hex(number: int) -> str:
    """The trace id of a numbered trace: spread like real ones, the same in every run."""
    return hashlib.blake2b(number.to_bytes(8, "big"), digest_size=16).hexdigest()


def request(number: int, **columns: Any) -> dict[str, Any]:
    """One request row of trace `number`, received `number` seconds after T0."""
    return {
        "request_id": f"{number:016x}",
        "trace_id": trace_hex(number),
        "anchor_span_id": f"{number:016x}",
        "version": 1,
        "tombstone": False,
        "completeness": "complete",
        "service": "chat",
        "model": "llama",
        "received_ns": T0 + number * SECOND_NS,
        "output_tokens": 64,
        "outcome": "ok",
        "weight": 1.0,
        "digests": [number],
    } | columns


def requests(*rows: dict[str, Any]) -> pa.Table:
    """A `requests` table."""
    return pa.Table.from_pylist(list(rows), schema=REQUESTS)


def span(trace: int, number: int, **columns: Any) -> dict[str, Any]:
    """One span row of trace `trace`, received `trace` seconds after T0."""
    return {
        "received_ns": T0 + trace * SECOND_NS,
        "tenant": "default",
        "trace_id": bytes.fromhex(trace_hex(trace)),
        "span_id": (trace * 1000 + number + 1).to_bytes(8, "big"),
        "parent_span_id": bytes(8),
        "name": f"step {number}",
        "scope": "gateway",
        "service": "chat",
        "resource": '{"service.name":"chat"}',
        "kind": 2,
        "status": 0,
        "flags": 1,
        "start_ns": T0 + trace * SECOND_NS + number,
        "end_ns": T0 + trace * SECOND_NS + number + 1000,
        "hop": "gateway",
        "repaired": False,
        "digest": trace * 1000 + number,
        "weight": 1.0,
        "attributes_num": {"gen_ai.usage.output_tokens": 12.0},
        "attributes_str": {"gen_ai.request.model": "llama"},
        "events": [{"name": "first token", "time_ns": 5}],
    } | columns


def spans(*rows: dict[str, Any]) -> pa.Table:
    """A `spans` table."""
    listed = [
        row
        | {
            key: list(row[key].items())
            for key in ("attributes_num", "attributes_str")
            if isinstance(row[key], dict)
        }
        for row in rows
    ]
    columns = {
        field.name: pa.array([row.get(field.name) for row in listed], _plain(field.type))
        for field in SPANS
    }
    return pa.table(columns).cast(SPANS)


def signals(*rows: dict[str, Any]) -> pa.Table:
    """A `signals` table."""
    return pa.Table.from_pylist(list(rows), schema=SIGNALS)


def verdicts(*rows: dict[str, Any]) -> pa.Table:
    """A `verdicts` table; of one budget without a verdict unless a row says more."""
    nothing = {"minute_ns": T0, "slo": "chat", "objective": "ttft_p95", "definition": "0a1b2c3d"}
    counts = {"by": "{}", "requests": 0, "bad": 0, "unmeasured": 0, "late": 0}
    return pa.Table.from_pylist([nothing | counts | row for row in rows], schema=VERDICTS)


def excess(*rows: dict[str, Any]) -> pa.Table:
    """An `excess` table."""
    usual = {"minute_ns": T0, "slo": "chat", "by": "{}", "hop": "queue", "slow_ns": 0}
    return pa.Table.from_pylist([usual | row for row in rows], schema=EXCESS)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without dictionaries, which `pa.array` can't build inside others."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _plain(f.type)) for f in kind])
    return kind
