"""Rows of requests and spans to fill a store with."""

from collections.abc import Sequence

import pyarrow as pa

from tailburn.engine.schema import REQUESTS, SPANS

RECEIVED_NS = 1_796_145_000_000_000_000
TRACE = "0af7651916cd43dd8448eb211c80319c"


def make_rows(schema: pa.Schema = REQUESTS, **columns: Sequence[object] | pa.Array) -> pa.Table:
    """Rows of a schema with the given columns, the rest null; requests are first versions."""
    n = len(next(iter(columns.values())))
    given: dict[str, Sequence[object] | pa.Array] = {"received_ns": [RECEIVED_NS] * n}
    if schema is REQUESTS:
        given |= {"version": [1] * n, "tombstone": [False] * n}
    given |= columns
    return pa.table(
        [
            pa.array(given[f.name]).cast(f.type) if f.name in given else pa.nulls(n, f.type)
            for f in schema
        ],
        schema=schema,
    )


def make_spans() -> pa.Table:
    """A client span of 300 ms and below it an engine's that begins 100 ms later."""
    return make_rows(
        SPANS,
        trace_id=[bytes.fromhex(TRACE)] * 2,
        span_id=[bytes([1] * 8), bytes([2] * 8)],
        parent_span_id=[bytes(8), bytes([1] * 8)],
        name=["chat \x1b]0;owned\x07[red]llama", "llm_request"],
        service=["app", "vllm"],
        hop=["client", None],
        kind=[3, 2],
        status=[2, 0],
        start_ns=[RECEIVED_NS, RECEIVED_NS + 100_000_000],
        end_ns=[RECEIVED_NS + 300_000_000, RECEIVED_NS + 250_000_000],
        attributes_num=_maps([0, 1, 1], ["gen_ai.usage.output_tokens"], pa.array([64.0])),
        attributes_str=_maps([0, 0, 1], ["gen_ai.request.id"], pa.array(["chatcmpl-1"])),
    )


def _maps(offsets: list[int], keys: list[str], values: pa.Array) -> pa.MapArray:
    texts = pa.array(keys).dictionary_encode()
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), texts, values)
