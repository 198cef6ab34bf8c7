"""LiteLLM proxy 1.108 with its first tracer, on FastAPI 0.165 (which traces itself).

Two SERVER spans a request, siblings: FastAPI's and LiteLLM's. It forwards the caller's
traceparent as it came and has no client span of its own, so the engine's span is a sibling of
both. Response headers go out with the first chunk. Cancels look healthy; an aborted stream's
tokens are its own guess.
"""

from typing import Any, Final

import numpy as np

from tailburn.lab.records import Outcome
from tailburn.lab.telemetry.spans.flow import MS, Flow, Rows, first_of, happened, optional
from tailburn.lab.telemetry.spans.ids import U64
from tailburn.lab.telemetry.spans.stacks.litellm_kinds import (
    AUTH,
    DEPENDENCIES,
    ENDPOINT,
    FAILED,
    GUARDRAIL,
    PRE_CALL,
    RAW_STREAM,
    RAW_WHOLE,
    RECEIVED,
    REQUEST,
    ROUTER,
    SELF,
    SERIALIZATION,
    WEB_SERVER,
)
from tailburn.lab.telemetry.spans.stacks.services import retrieval
from tailburn.lab.telemetry.spans.template import ABSENT

_GUESS: Final = 1.67
"""Tokens it counts for an aborted stream, as a multiple of the most asked for: as seen once."""


def gateway(flow: Flow, rows: Rows) -> None:
    """All spans of LiteLLM for these attempts."""
    a, places = flow.a, flow.places
    process = places.gateways + a.gateway[rows]
    last = first_of(a.gateway_last[rows], happened(a.client_end[rows], a.aborted[rows]))
    _web_server(flow, rows, process, last)
    received = _received(flow, rows, process, last)
    _steps(flow, rows, process, received)
    retrieval(flow, rows, process, received)
    flow.add(
        GUARDRAIL, rows, process, a.guardrail_start[rows], a.guardrail_end[rows],
        flow.ids(rows, "guardrail"), parent=received, status=places.statuses.index(1),
        where=a.guardrail_end[rows] >= 0,
    )  # fmt: skip
    _request(flow, rows, process, received, last)
    if not places.wiring.litellm_forwards:
        flow.cut(rows, "litellm")


def _code(flow: Flow, rows: Rows) -> Any:
    code = flow.a.http_status[rows].astype(np.int64)
    return np.where(code > 0, code, 200)


def _web_server(flow: Flow, rows: Rows, process: Any, last: Any) -> U64:
    """FastAPI's own spans: the request, its dependencies, the endpoint up to the headers."""
    a, places = flow.a, flow.places
    gateways, at = places.wiring.gateways, flow.a.gateway[rows]
    code, begun = _code(flow, rows), a.gateway_in[rows]
    spans = flow.ids(rows, "litellm web server")
    broken = places.statuses.index(2)
    flow.add(
        WEB_SERVER, rows, process, begun, last + MS // 2, spans,
        status=np.where(code >= 500, broken, 0),
        address=places.text_of("{address}", gateways)[at],
        port=np.asarray([g.port for g in gateways])[at],
        http_status=code, error=np.where(code >= 500, code, ABSENT),
    )  # fmt: skip
    authed = happened(a.gateway_authed[rows], begun + MS // 2)
    flow.add(DEPENDENCIES, rows, process, begun + MS // 2, authed,
             flow.ids(rows, "fastapi dependencies"), parent=spans)  # fmt: skip
    headers = happened(flow.headers_gateway[rows], authed)
    failed = code >= 400
    flow.add(
        ENDPOINT, rows, process, authed + 100_000, np.where(failed, last, headers),
        flow.ids(rows, "fastapi endpoint"), parent=spans,
        status=np.where(failed, broken, 0),
        error=optional(places.texts.index("litellm.proxy._types.ProxyException"), failed),
    )  # fmt: skip
    flow.add(SERIALIZATION, rows, process, last - 200_000, last,
             flow.ids(rows, "fastapi serialization"), parent=spans,
             where=(a.streamed[rows] == 0) & ~failed)  # fmt: skip
    return spans


def _received(flow: Flow, rows: Rows, process: Any, last: Any) -> U64:
    """LiteLLM's SERVER span: a sibling of FastAPI's; below its dependencies without a caller."""
    places, code = flow.places, _code(flow, rows)
    spans = flow.ids(rows, "litellm received")
    root = flow.parent[rows] == 0
    below = flow.ids(rows, "fastapi dependencies")
    failed = code >= 400
    begun = flow.a.gateway_in[rows] + 800_000
    flow.add(
        RECEIVED, rows, process, begun, last, spans,
        parent=np.where(root, below, flow.parent[rows]), remote=True,
        status=np.where(failed, places.statuses.index(2), places.statuses.index(1)),
        http_status=code,
        code=np.where(failed, code, ABSENT),
        error=optional(places.texts.index("ProxyException"), failed),
        message=optional(places.texts.index("No deployments available"), failed),
        raised=np.where(failed, last, ABSENT),
    )  # fmt: skip
    flow.add(FAILED, rows, process, last, last + 20_000, flow.ids(rows, "litellm failed"),
             parent=spans, status=places.statuses.index(2), where=failed)  # fmt: skip
    return spans


def _steps(flow: Flow, rows: Rows, process: Any, received: U64) -> None:
    """What it does before the call, and `self`: the call up to its headers, once a try."""
    a, ok = flow.a, flow.places.statuses.index(1)
    authed = happened(a.gateway_authed[rows], a.gateway_in[rows] + MS)
    called = a.gateway_out[rows] >= 0
    out = a.gateway_out[rows]
    headers = happened(flow.headers_upstream[rows], out + MS)

    def step(kind: Any, name: str, begun: Any, ended: Any, where: Any = None) -> None:
        flow.add(kind, rows, process, begun, ended, flow.ids(rows, name),
                 parent=received, status=ok, where=where)  # fmt: skip

    step(AUTH, "litellm auth", a.gateway_in[rows] + 800_000, authed - 200_000)
    step(PRE_CALL, "litellm pre call", authed + 600_000, authed + 660_000, called)
    step(ROUTER, "litellm router", out - 400_000, headers + MS, called)
    step(ROUTER, "litellm deployment", out - 300_000, out - 100_000, called)
    step(SELF, "litellm self", out, headers, called)


def _request(flow: Flow, rows: Rows, process: Any, received: U64, last: Any) -> None:
    """`litellm_request` with everything on it, and the raw call below."""
    a, places, code = flow.a, flow.places, _code(flow, rows)
    called = a.gateway_out[rows] >= 0
    failed = code >= 400
    model = places.models[a.model[rows]]
    output = a.output_done[rows].astype(np.int64)
    stopped = (a.outcome[rows] != Outcome.OK) & (a.aborted[rows] >= 0)
    output = np.where(stopped, (a.max_tokens[rows] * _GUESS).astype(np.int64), output)
    well, streams = called & ~failed, a.streamed[rows] == 1
    ends = places.texts.indices(['["stop"]', '["length"]'])
    long = (a.output_done[rows] >= a.max_tokens[rows]) & ~stopped
    spans = flow.ids(rows, "litellm request")
    call_id = flow.ids(rows, "litellm call id")
    authed = happened(a.gateway_authed[rows], a.gateway_in[rows] + MS)
    flow.add(
        REQUEST, rows, process, authed + 150_000, last, spans,
        parent=received,
        status=np.where(failed, places.statuses.index(2), places.statuses.index(1)),
        where=called,
        trace=flow.trace[rows],
        caller=0, model=model,
        max_tokens=a.max_tokens[rows],
        streams=places.texts.indices(["False", "True"])[a.streamed[rows]],
        response_id=optional(flow.engine_id[rows], well & ~flow.dynamo[rows]),
        response_uuid=optional(flow.ids(rows, "dynamo request"), well & flow.dynamo[rows]),
        failed_id=optional(call_id, failed),
        call_id=call_id,
        response_model=optional(model, well),
        total=optional(output + a.prompt_tokens[rows], well),
        output=optional(output, well),
        input=optional(a.prompt_tokens[rows], well),
        cost=optional(np.zeros(len(rows)), well),
        answer=optional(places.texts.index(_ANSWER), well),
        finish=optional(ends[long.astype(int)], well),
        code=np.where(failed, code, ABSENT),
        error=optional(places.texts.index("InternalServerError"), failed),
        message=optional(places.texts.index("litellm.InternalServerError"), failed),
        raised=np.where(failed, last, ABSENT),
    )  # fmt: skip
    raw: dict[str, Any] = {"parent": spans, "status": places.statuses.index(1)}
    common: dict[str, Any] = {"model": model, "max_tokens": a.max_tokens[rows]}
    names = flow.ids(rows, "litellm raw")
    flow.add(RAW_STREAM, rows, process, authed + 150_000, last, names,
             where=well & streams, **raw, **common)  # fmt: skip
    flow.add(RAW_WHOLE, rows, process, authed + 150_000, last, names,
             where=well & ~streams, **raw, **common,
             response_id=flow.engine_id[rows],
             created=first_of(a.engine_in[rows], last) // 10**9)  # fmt: skip


_ANSWER: Final = (
    '[{"role": "assistant", "parts": [{"type": "text", "content": "zzanswer kalo mi ver"}],'
    ' "finish_reason": "length"}]'
)
