"""When response headers passed each hop, and how far apart hops are.

HTTP client spans of most Python libraries end there. An engine sends them when the prompt is
tokenized, a proxy as soon as they reach it; LiteLLM holds them back until the first chunk.
Without streaming they come with the whole body.
"""

from typing import Any

import numpy as np

from tailburn.lab.records import Outcome
from tailburn.lab.telemetry.spans.flow import MS, Flow, first_of, happened


def one_way(sent: Any, taken: Any) -> Any:
    """The way there in ns, taken for the way back too; 0 where one end is not known."""
    return np.where((sent >= 0) & (taken >= 0), np.maximum(taken - sent, 0), 0)


def set_headers(flow: Flow) -> None:
    """Fill in `headers_engine`, `headers_upstream` (at the gateway, or the client where there is
    none), `headers_gateway` (as it sends them) and `headers_client`.
    """
    a = flow.a
    streamed = a.streamed == 1
    early = happened(a.engine_in, a.tokenize_end) + MS // 2
    early = np.where(a.engine_first >= 0, np.minimum(early, a.engine_first), early)
    late = first_of(a.engine_end, a.engine_last)
    flow.headers_engine = np.where(a.engine_in < 0, -1, np.where(streamed, early, late))
    entered = first_of(a.router_in, a.engine_in)
    back = one_way(a.gateway_out, entered) + one_way(a.router_out, a.engine_in)
    passed = np.where(flow.headers_engine >= 0, flow.headers_engine + back + MS // 10, -1)
    whole = first_of(a.gateway_last, a.gateway_first)
    flow.headers_upstream = passed
    holds = flow.places.stack_rows(flow.places.wiring.gateways, a.gateway, "litellm")
    passed = np.where(holds, np.where(streamed, a.gateway_first, whole), passed)
    passed = np.where(~streamed & (whole >= 0), whole, passed)
    passed = np.where(
        (a.gateway_first >= 0) & streamed, np.minimum(passed, a.gateway_first), passed
    )
    flow.headers_gateway = np.where(passed >= 0, passed, whole)
    sent = first_of(a.client_connected, a.client_slot, a.client_start)
    there = one_way(sent, first_of(a.gateway_in, a.engine_in))
    at_client = np.where(flow.headers_gateway >= 0, flow.headers_gateway + there, -1)
    first = np.where(streamed, a.client_first, a.client_end)
    at_client = np.where((at_client >= 0) & (first >= 0), np.minimum(at_client, first), at_client)
    # Headers and first chunk travel together there; the SDK parses the one before the other.
    every = np.arange(len(a))
    parsed = a.client_first - MS // 3 - np.minimum(flow.exponential(every, "chunk", 1.2), 20 * MS)
    together = holds & streamed & (a.client_first >= 0)
    at_client = np.where(together, np.maximum(parsed, sent), at_client)
    at_client = np.where((at_client >= 0) & ~streamed & (first >= 0), first, at_client)
    gave_up = (a.outcome == Outcome.CANCELLED) | (a.outcome == Outcome.CLIENT_TIMEOUT)
    never = np.where(gave_up | (a.http_status <= 0), -1, a.client_end)
    flow.headers_client = np.where(at_client > a.client_end, never, at_client)
