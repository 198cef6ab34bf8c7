"""OpenTelemetry Python 0.66b2 for httpx and FastAPI, with the old HTTP conventions."""

from typing import Any

import numpy as np

from tailburn.lab.records import Outcome
from tailburn.lab.telemetry.spans.flow import MS, Flow, Rows, happened, optional
from tailburn.lab.telemetry.spans.ids import U64
from tailburn.lab.telemetry.spans.template import (
    CLIENT,
    INTERNAL,
    SERVER,
    Kind,
    Of,
    Slot,
)

SCHEMA = "https://opentelemetry.io/schemas/1.11.0"
ROUTE = "/v1/chat/completions"
_FASTAPI = "opentelemetry.instrumentation.fastapi"

HTTPX = Kind(
    "opentelemetry.instrumentation.httpx",
    "POST",
    CLIENT,
    (
        ("http.method", "POST"),
        ("http.url", Slot("url", Of.TEXT)),
        ("http.status_code", Slot("http_status", Of.INT)),
    ),
    scope_version="0.66b2",
    schema_url=SCHEMA,
)
FASTAPI_SERVER = Kind(
    _FASTAPI,
    f"POST {ROUTE}",
    SERVER,
    (
        ("http.scheme", "http"),
        ("http.host", Slot("host", Of.TEXT)),
        ("net.host.port", Slot("port", Of.INT)),
        ("http.flavor", "1.1"),
        ("http.target", ROUTE),
        ("http.url", Slot("url", Of.TEXT)),
        ("http.method", "POST"),
        ("http.server_name", Slot("host", Of.TEXT)),
        ("http.user_agent", Slot("agent", Of.TEXT)),
        ("net.peer.ip", Slot("peer", Of.TEXT)),
        ("net.peer.port", Slot("peer_port", Of.INT)),
        ("http.route", ROUTE),
        ("http.status_code", Slot("http_status", Of.INT)),
    ),
    scope_version="0.66b2",
    schema_url=SCHEMA,
)
RECEIVE = Kind(
    _FASTAPI,
    f"POST {ROUTE} http receive",
    INTERNAL,
    (("asgi.event.type", "http.request"),),
    scope_version="0.66b2",
    schema_url=SCHEMA,
)
SEND_START = Kind(
    _FASTAPI,
    f"POST {ROUTE} http send",
    INTERNAL,
    (("asgi.event.type", "http.response.start"), ("http.status_code", Slot("http_status", Of.INT))),
    scope_version="0.66b2",
    schema_url=SCHEMA,
)
SEND_BODY = Kind(
    _FASTAPI,
    f"POST {ROUTE} http send",
    INTERNAL,
    (("asgi.event.type", "http.response.body"),),
    scope_version="0.66b2",
    schema_url=SCHEMA,
)


def httpx_call(
    flow: Flow,
    rows: Rows,
    process: Any,
    url: Any,
    start: Any,
    headers: Any,
    given_up: Any,
    *,
    name: str,
    parent: U64 | None,
    where: Any = None,
) -> U64:
    """A call through httpx: its span ends at the response's headers, or when given up."""
    spans = flow.ids(rows, name)
    got = np.asarray(headers) >= 0
    status = flow.a.http_status[rows].astype(np.int64)
    status = np.where(status > 0, status, 200)
    error = flow.places.statuses.index(2)
    outcome = flow.a.outcome[rows]
    broken = np.where(
        outcome == Outcome.CLIENT_TIMEOUT, flow.places.statuses.index(2, "ReadTimeout: "), 0
    )
    flow.add(
        HTTPX,
        rows,
        process,
        start,
        np.where(got, headers, given_up),
        spans,
        parent=np.zeros(len(rows), np.uint64) if parent is None else parent,
        status=np.where(got, np.where(status < 400, 0, error), broken),
        where=where,
        url=url,
        http_status=optional(status, got),
    )
    return spans


def fastapi_server(flow: Flow, rows: Rows) -> U64:
    """The gateway's SERVER span; healthy to look at even when its client has left."""
    a, places = flow.a, flow.places
    gateways = places.wiring.gateways
    at = a.gateway[rows]
    spans = flow.ids(rows, "fastapi server")
    end = happened(a.gateway_last[rows], a.aborted[rows], a.gateway_in[rows])
    ended = np.where(a.gateway_last[rows] >= 0, a.gateway_last[rows] + MS // 5, end)
    ended = np.where((a.gateway_last[rows] < 0) & (a.aborted[rows] < 0), a.client_end[rows], ended)
    status = a.http_status[rows].astype(np.int64)
    flow.add(
        FASTAPI_SERVER,
        rows,
        places.gateways + at,
        a.gateway_in[rows],
        ended,
        spans,
        status=np.where(status >= 500, places.statuses.index(2), 0),
        host=places.text_of("{address}:{port}", gateways)[at],
        port=np.asarray([g.port for g in gateways])[at],
        url=places.text_of("http://{address}:{port}" + ROUTE, gateways)[at],
        agent=places.texts.index("python-httpx/0.28.1"),
        peer=places.texts.index("127.0.0.1"),
        peer_port=32_768 + (flow.by_try[rows] % np.uint64(28_000)).astype(np.int64),
        http_status=np.where(status > 0, status, 200),
    )
    return spans


def asgi_messages(flow: Flow, rows: Rows, server: U64) -> None:
    """A span for every message of a FastAPI app: two received, the headers, each chunk."""
    a, process = flow.a, flow.places.gateways + flow.a.gateway[rows]
    taken = a.gateway_in[rows]
    for i, wait in enumerate((MS // 20, MS // 4)):
        ids = flow.ids(rows, f"asgi receive {i}")
        flow.add(RECEIVE, rows, process, taken + wait, taken + wait + 9_000, ids, parent=server)
    headers = flow.headers_gateway[rows]
    status = a.http_status[rows].astype(np.int64)
    ids = flow.ids(rows, "asgi send start")
    flow.add(
        SEND_START, rows, process, headers, headers + 40_000, ids,
        parent=server, http_status=np.where(status > 0, status, 200),
    )  # fmt: skip
    if not len(a.token_offset):
        return
    chosen = rows[a.gateway_first[rows] >= 0]
    lengths = np.diff(a.token_offset)[chosen]
    owner = np.repeat(np.arange(len(chosen)), lengths)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = a.tokens[a.token_offset[:-1][chosen][owner] + number]
    attempt = chosen[owner]
    sent = at + (a.gateway_first - a.engine_first)[attempt]
    sent = np.maximum(sent, a.gateway_first[attempt])
    whole = a.streamed[attempt] == 0
    sent = np.where(whole, a.gateway_last[attempt], sent)
    # Tokens of one instant go in one message; those after the client left in none.
    same = np.append(False, (sent[1:] == sent[:-1]) & (attempt[1:] == attempt[:-1]))
    goes = np.flatnonzero(~same & (sent <= a.gateway_last[attempt]))
    attempt, owner, number, sent = attempt[goes], owner[goes], number[goes], sent[goes]
    parents = flow.ids(chosen, "fastapi server")[owner]
    with np.errstate(over="ignore"):
        ids = flow.ids(chosen, "asgi send body")[owner] + number.astype(np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
    flow.add(
        SEND_BODY, attempt, flow.places.gateways + a.gateway[attempt], sent, sent + 25_000, ids,
        parent=parents,
    )  # fmt: skip
    # What ends a stream: an empty body, after the last chunk.
    ended = chosen[(a.streamed[chosen] == 1) & (a.client_end[chosen] >= a.gateway_last[chosen])]
    at = happened(a.gateway_last[ended], a.gateway_first[ended]) + 30_000
    flow.add(
        SEND_BODY, ended, flow.places.gateways + a.gateway[ended], at, at + 15_000,
        flow.ids(ended, "asgi send end"), parent=flow.ids(ended, "fastapi server"),
    )  # fmt: skip


__all__ = [
    "FASTAPI_SERVER",
    "HTTPX",
    "RECEIVE",
    "ROUTE",
    "SEND_BODY",
    "SEND_START",
    "asgi_messages",
    "fastapi_server",
    "httpx_call",
]
