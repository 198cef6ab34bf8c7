"""A gateway written with FastAPI and httpx, instrumented by the libraries' own packages."""

import numpy as np

from tailburn.lab.telemetry.spans.flow import Flow, Rows, happened
from tailburn.lab.telemetry.spans.stacks.http import (
    ROUTE,
    asgi_messages,
    fastapi_server,
    httpx_call,
)
from tailburn.lab.telemetry.spans.stacks.services import guardrail, retrieval


def gateway(flow: Flow, rows: Rows) -> None:
    """SERVER span, checks and retrieval below it, then the call to what lies behind."""
    a, places = flow.a, flow.places
    server = fastapi_server(flow, rows)
    process = places.gateways + a.gateway[rows]
    guardrail(flow, rows, process, server)
    retrieval(flow, rows, process, server)
    if places.wiring.token_spans:
        asgi_messages(flow, rows, server)
    routers, engines = places.wiring.routers, places.wiring.engines
    both = (*routers, *engines)
    routed = a.router_in[rows] >= 0
    behind = np.where(
        routed, places.router_of(a.replica[rows]), len(routers) + np.maximum(a.replica[rows], 0)
    )
    url = places.text_of("http://{address}:{port}" + ROUTE, both)[behind]
    given_up = happened(a.client_end[rows], a.aborted[rows])
    spans = httpx_call(
        flow,
        rows,
        process,
        url,
        a.gateway_out[rows],
        np.where(
            flow.headers_upstream[rows] >= a.gateway_out[rows], flow.headers_upstream[rows], -1
        ),
        given_up,
        name="gateway httpx",
        parent=server,
        where=a.gateway_out[rows] >= 0,
    )
    flow.forward(rows, np.where(a.gateway_out[rows] >= 0, spans, server))
