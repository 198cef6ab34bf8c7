"""Rows of the service's table of requests, from what a fleet told: every try is one, as closed."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.engine.schema import REQUESTS
from tailburn.lab.fleet import Fleet
from tailburn.lab.records import Attempts, Outcome, RequestType

CLOSED_AFTER_NS: Final = 10 * 10**9
"""From a try's end until the service has closed it: exporters' batches, and its own patience."""
_FAILED: Final = (Outcome.ERROR, Outcome.REJECTED)
_LEFT: Final = (Outcome.CLIENT_TIMEOUT, Outcome.CANCELLED)
_TYPES: Final = tuple(kind.name.lower() for kind in RequestType)
_OUTCOMES: Final = ("ok", "error", "cancelled")


def rows_of(a: Attempts, fleet: Fleet) -> pa.Table:
    """REQUESTS of the tries whose spans arrived, in order of `received_ns`.

    Clocks are the gateway's. Columns that no alert reads are null.
    """
    over = np.maximum(np.maximum(a.client_end, a.gateway_last), a.aborted)
    a = a.take(np.argsort(over, kind="stable"))
    over = np.maximum(np.maximum(a.client_end, a.gateway_last), a.aborted)
    outcome = np.where(np.isin(a.outcome, _FAILED), 1, np.where(np.isin(a.outcome, _LEFT), 2, 0))
    ended = np.where(a.gateway_last >= 0, a.gateway_last, over)
    tokens = a.output_done.astype(np.int64)
    streamed = a.streamed == 1
    served = a.scheduled >= 0
    told: dict[str, pa.Array] = {
        "version": pa.array(np.ones(len(a), np.int32)),
        "tombstone": pa.array(np.zeros(len(a), np.bool_)),
        "received_ns": pa.array(over + CLOSED_AFTER_NS),
        "weight": pa.array(np.ones(len(a))),
        "model": _text(a.model, fleet.models),
        "request_type": _text(a.request_type, _TYPES),
        "replica": _text(a.replica, [r.name for r in fleet.replicas]),
        "outcome": _text(outcome, _OUTCOMES),
        "http_status": pa.array(a.http_status.astype(np.int32), mask=a.http_status == 0),
        "streamed": pa.array(streamed),
        "prompt_tokens": pa.array(a.prompt_tokens),
        "cached_tokens": pa.array(a.cached_tokens, mask=~served),
        "output_tokens": pa.array(a.output_done),
        "ttft_gateway_s": _seconds(a.gateway_in, a.gateway_first, streamed),
        "e2e_gateway_s": _seconds(a.gateway_in, ended),
        "tpot_gateway_s": _seconds(
            a.gateway_first, a.gateway_last, streamed & (tokens > 1), np.maximum(tokens - 1, 1)
        ),
    }
    empty = {f.name: f for f in REQUESTS if f.name not in told}
    columns = told | {name: pa.nulls(len(a), field.type) for name, field in empty.items()}
    return pa.table([columns[f.name].cast(f.type) for f in REQUESTS], schema=REQUESTS)


def _text(codes: NDArray[Any], names: Any) -> pa.Array:
    """Names by their codes; null where a code points nowhere."""
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()))


def _seconds(
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    where: NDArray[np.bool_] | None = None,
    share: NDArray[np.int64] | int = 1,
) -> pa.Array:
    """From one instant to another, over `share`; null where either did not happen."""
    there = (first >= 0) & (last >= first)
    if where is not None:
        there &= where
    return pa.array((last - first) / 1e9 / share, mask=~there)
