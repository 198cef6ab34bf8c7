"""Requests of the lab as rows with every hop's time up to the first token, from true instants."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.engine.excess import NEEDED_COLUMNS
from tailburn.engine.names import UNATTRIBUTED, ttft_hop_column
from tailburn.engine.schema import REQUESTS
from tailburn.lab.records import Attempts, Outcome

I64 = NDArray[np.int64]
COLUMNS: Final = (*NEEDED_COLUMNS, "output_tokens", "streamed", "model", "received_ns")


def answered(attempts: Attempts) -> Attempts:
    """The tries that a stream came of."""
    first = (attempts.outcome == Outcome.OK) & (attempts.followed != 1)
    return attempts.take(first & (attempts.streamed == 1) & (attempts.client_first >= 0))


def rows_of(a: Attempts) -> pa.Table:
    """`COLUMNS` of answered tries; the hops add up to the client's time to its first token.

    A hop holds what no deeper one does; what follows the engine's first token is the way back.
    """
    hops = _hops(a)
    total = a.client_first - a.arrival_ns
    hops[UNATTRIBUTED] = total - np.sum(list(hops.values()), axis=0)
    told: dict[str, Any] = {ttft_hop_column(hop): ns / 1e9 for hop, ns in hops.items()}
    told |= {
        "prompt_tokens": a.prompt_tokens,
        "cached_tokens": a.cached_tokens,
        "output_tokens": a.output_done,
        "streamed": a.streamed == 1,
        "weight": np.ones(len(a)),
        "received_ns": a.client_end,
    }
    fields = [REQUESTS.field(name) for name in COLUMNS]
    arrays = [
        pa.array(told[f.name]).cast(f.type) if f.name in told else pa.nulls(len(a), f.type)
        for f in fields
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _hops(a: Attempts) -> dict[str, I64]:
    routed = a.router_in >= 0
    behind = np.where(routed, a.router_first, a.engine_first)
    loads = {
        "kv_load": (a.kv_load_start, a.kv_load_end),
        "lora_load": (a.lora_start, a.lora_end),
        "model_load": (a.model_start, a.model_end),
    }
    computed = np.maximum(a.prefill_end, a.kv_transfer_end)
    return {
        "retry": a.client_start - a.arrival_ns,
        "client": _between(a.client_start, a.client_slot),
        "client>gateway": _between(a.client_slot, a.gateway_in)
        + _between(a.gateway_first, a.client_first),
        "gateway": _between(a.gateway_in, a.gateway_out)
        - _between(a.guardrail_start, a.guardrail_end)
        - _between(a.retrieval_start, a.retrieval_end)
        + _between(behind, a.gateway_first),
        "guardrail": _between(a.guardrail_start, a.guardrail_end),
        "retrieval": _between(a.retrieval_start, a.retrieval_end),
        "gateway>router": _between(a.gateway_out, a.router_in),
        "gateway>engine": np.where(routed, 0, _between(a.gateway_out, a.engine_in)),
        "router": _between(a.router_in, a.router_out),
        "router>engine": _between(a.router_out, a.engine_in)
        + _between(a.engine_first, a.router_first),
        "tokenizer": _between(a.engine_in, a.tokenize_end),
        "engine": _between(a.tokenize_end, a.queued),
        "queue": _without(a.queued, a.scheduled, loads),
        "prefill": _without(a.scheduled, a.prefill_end, loads),
        **{hop: _between(*load) for hop, load in loads.items()},
        "kv_transfer": _between(a.prefill_end, a.kv_transfer_end),
        "detokenizer": _between(computed, a.engine_first),
    }


def _between(first: I64, last: I64) -> I64:
    """Nanoseconds from one instant to another; 0 where either did not happen."""
    return np.where((first >= 0) & (last >= first), last - first, 0)


def _without(first: I64, last: I64, others: Mapping[str, tuple[I64, I64]]) -> I64:
    """A stay without what others had of it."""
    left = _between(first, last)
    for begin, end in others.values():
        left = left - np.where(
            begin >= 0, np.maximum(np.minimum(end, last) - np.maximum(begin, first), 0), 0
        )
    return left
