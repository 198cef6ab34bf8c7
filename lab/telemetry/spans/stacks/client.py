"""Clients: the OpenAI SDK under three instrumentations, each over httpx.

The span of the call covers all its tries; httpx has one a try. openai-v2's may never end when
its user leaves, and carries no first token; OpenInference's event comes early.
"""

from typing import Any

import numpy as np

from tailburn.lab.records import Outcome
from tailburn.lab.telemetry.spans import ids
from tailburn.lab.telemetry.spans.flow import MS, Flow, Rows, first_of, optional
from tailburn.lab.telemetry.spans.ids import U64
from tailburn.lab.telemetry.spans.stacks.http import ROUTE, httpx_call
from tailburn.lab.telemetry.spans.template import (
    ABSENT,
    CLIENT,
    INTERNAL,
    Event,
    Kind,
    Of,
    Slot,
)

_NAME = Slot("model", Of.TEXT, before="chat ")
_ID = ("gen_ai.response.id", Slot("response_id", Of.HEX16, before="chatcmpl-"))
_UUID = ("gen_ai.response.id", Slot("response_uuid", Of.UUID, before="chatcmpl-"))

OPENAI_V2 = Kind(
    "opentelemetry.instrumentation.openai_v2",
    _NAME,
    CLIENT,
    (
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.request.model", Slot("model", Of.TEXT)),
        ("gen_ai.system", "openai"),
        ("gen_ai.request.temperature", 0.8),
        ("gen_ai.request.top_p", 0.95),
        ("gen_ai.request.max_tokens", Slot("max_tokens", Of.INT)),
        ("gen_ai.response.model", Slot("response_model", Of.TEXT)),
        ("gen_ai.response.finish_reasons", Slot("finish", Of.LIST)),
        _ID,
        _UUID,
        ("gen_ai.usage.input_tokens", Slot("input", Of.INT)),
        ("gen_ai.usage.output_tokens", Slot("output", Of.INT)),
        ("error.type", Slot("error", Of.TEXT)),
    ),
    schema_url="https://opentelemetry.io/schemas/1.30.0",
)
APP = Kind(
    "lab.chat-client",
    _NAME,
    CLIENT,
    (
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "vllm"),
        ("gen_ai.request.model", Slot("model", Of.TEXT)),
        ("gen_ai.request.max_tokens", Slot("max_tokens", Of.INT)),
        ("gen_ai.request.temperature", 0.8),
        ("gen_ai.request.top_p", 0.95),
        ("gen_ai.request.stream", Slot("stream", Of.BOOL)),
        ("server.address", Slot("address", Of.TEXT)),
        ("server.port", Slot("port", Of.INT)),
        ("error.type", Slot("error", Of.TEXT)),
        _ID,
        _UUID,
        ("gen_ai.usage.input_tokens", Slot("input", Of.INT)),
        ("gen_ai.usage.output_tokens", Slot("output", Of.INT)),
        ("gen_ai.response.finish_reasons", Slot("finish", Of.LIST)),
    ),
    events=(Event("first", "gen_ai.first_token", (_ID, _UUID)),),
    scope_version="0.1.0",
)
OPENINFERENCE = Kind(
    "openinference.instrumentation.openai",
    "ChatCompletion",
    INTERNAL,
    (
        ("llm.system", "openai"),
        ("input.value", "__REDACTED__"),
        ("input.mime_type", "application/json"),
        ("output.value", "__REDACTED__"),
        ("output.mime_type", "application/json"),
        ("llm.invocation_parameters", Slot("parameters", Of.TEXT)),
        ("llm.model_name", Slot("model", Of.TEXT)),
        ("llm.token_count.prompt", Slot("input", Of.INT)),
        ("llm.token_count.completion", Slot("output", Of.INT)),
        ("llm.token_count.total", Slot("total", Of.INT)),
        ("openinference.span.kind", "LLM"),
    ),
    events=(Event("first", "First Token Stream Event"),),
    scope_version="0.1.42",
)


def openai(flow: Flow, rows: Rows) -> None:
    """opentelemetry-instrumentation-openai-v2 2.4b0."""
    a, last = flow.a, _last(flow, rows)
    ok = a.outcome[rows] == Outcome.OK
    some = a.output_done[rows] > 0
    lost = (a.outcome[rows] == Outcome.CANCELLED) & (flow.chance(rows, "never ended") < 0.6)
    shared = _shared(flow, rows)
    call = _call(flow, rows)
    flow.add(
        OPENAI_V2,
        rows,
        flow.places.clients + a.client[rows],
        a.arrival_ns[rows],
        a.client_end[rows],
        call,
        parent=np.zeros(len(rows), np.uint64),
        status=_status(flow, rows, ""),
        where=last & ~lost,
        response_model=optional(shared["model"], ok | some),
        **{**shared, "finish": optional(shared["finish"], ok & (a.streamed[rows] == 0))},
        max_tokens=a.max_tokens[rows],
        error=_error(flow, rows, "APITimeoutError", None),
    )
    _posts(flow, rows, call)


def app(flow: Flow, rows: Rows) -> None:
    """A span made by hand after today's conventions, with an event at the first token."""
    a, upstream = flow.a, _upstream(flow, rows)
    call = _call(flow, rows)
    flow.add(
        APP,
        rows,
        flow.places.clients + a.client[rows],
        a.arrival_ns[rows],
        a.client_end[rows],
        call,
        parent=np.zeros(len(rows), np.uint64),
        status=_status(flow, rows, "cancelled by client"),
        where=_last(flow, rows),
        **_shared(flow, rows),
        max_tokens=a.max_tokens[rows],
        stream=a.streamed[rows],
        address=upstream["address"],
        port=upstream["port"],
        error=_error(flow, rows, "ReadTimeout", "cancelled"),
        first=np.where((a.client_first[rows] >= 0) & (a.streamed[rows] == 1),
                       a.client_first[rows], ABSENT),
    )  # fmt: skip
    _posts(flow, rows, call)


def openinference(flow: Flow, rows: Rows) -> None:
    """OpenInference; its first-token event is 0.2 to 51 ms early, as its wrapper sees it."""
    a, texts = flow.a, flow.places.texts
    shared = _shared(flow, rows)
    call = _call(flow, rows)
    early = np.minimum(flow.exponential(rows, "event", 2.0) + MS // 5, 51 * MS)
    first = np.maximum(a.client_first[rows] - early, a.client_start[rows])
    forms = np.asarray(
        [
            [texts.index(f'{{"model": "{m}", "stream": {b}}}') for b in ("false", "true")]
            for m in flow.places.wiring.models
        ]
    )
    total = a.prompt_tokens[rows].astype(np.int64) + a.output_done[rows]
    flow.add(
        OPENINFERENCE,
        rows,
        flow.places.clients + a.client[rows],
        a.arrival_ns[rows],
        a.client_end[rows],
        call,
        parent=np.zeros(len(rows), np.uint64),
        status=np.where(
            a.outcome[rows] == Outcome.OK,
            flow.places.statuses.index(1),
            _status(flow, rows, "cancelled"),
        ),
        where=_last(flow, rows),
        parameters=forms[a.model[rows], a.streamed[rows]],
        model=shared["model"],
        input=shared["input"],
        output=shared["output"],
        total=optional(total, a.outcome[rows] == Outcome.OK),
        first=np.where((a.client_first[rows] >= 0) & (a.streamed[rows] == 1), first, ABSENT),
    )
    _posts(flow, rows, call)


def _last(flow: Flow, rows: Rows) -> Any:
    """Tries that the call ends with."""
    return flow.a.followed[rows] != 1


def _call(flow: Flow, rows: Rows) -> U64:
    """One span id for all tries of a request."""
    return ids.drawn(flow.by_request[rows], "client call")


def _shared(flow: Flow, rows: Rows) -> dict[str, Any]:
    """Slots that conventions of all makes have."""
    a, texts = flow.a, flow.places.texts
    ok = a.outcome[rows] == Outcome.OK
    ends = texts.indices(["stop", "length"])
    answered = ok | (a.client_first[rows] >= 0)
    return {
        "model": flow.places.models[a.model[rows]],
        "finish": optional(ends[(a.output_done[rows] >= a.max_tokens[rows]).astype(int)], ok),
        "response_id": optional(flow.engine_id[rows], answered & ~flow.dynamo[rows]),
        "response_uuid": optional(flow.ids(rows, "dynamo request"), answered & flow.dynamo[rows]),
        "input": optional(a.prompt_tokens[rows], ok),
        "output": optional(a.output_done[rows], ok),
    }


def _upstream(flow: Flow, rows: Rows) -> dict[str, Any]:
    """Address, port and URL of the gateway asked, or of the engine where there is none."""
    a, places = flow.a, flow.places
    gateways, engines = places.wiring.gateways, places.wiring.engines
    direct = a.gateway[rows] < 0
    both = (*gateways, *engines)
    at = np.where(direct, len(gateways) + np.maximum(a.replica[rows], 0), a.gateway[rows])
    return {
        "address": places.text_of("{address}", both)[at],
        "port": np.asarray([p.port for p in both])[at],
        "url": places.text_of("http://{address}:{port}" + ROUTE, both)[at],
    }


def _status(flow: Flow, rows: Rows, cancelled: str) -> Any:
    """Unset when well; an SDK's error text otherwise. `cancelled` empty: cancels stay unset."""
    statuses, outcome = flow.places.statuses, flow.a.outcome[rows]
    code = flow.a.http_status[rows].astype(np.int64)
    timeout = statuses.index(2, "Request timed out.")
    failed = np.zeros(len(rows), np.int64)
    for seen in np.unique(code):
        text = f"Error code: {seen}" if seen >= 400 else "Connection error."
        failed[code == seen] = statuses.index(2, text)
    broken = (outcome == Outcome.ERROR) | (outcome == Outcome.REJECTED)
    found = np.where(broken, failed, np.where(outcome == Outcome.CLIENT_TIMEOUT, timeout, 0))
    if cancelled:
        found = np.where(outcome == Outcome.CANCELLED, statuses.index(2, cancelled), found)
    return found


_ERRORS = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
}


def _error(flow: Flow, rows: Rows, timeout: str, cancelled: str | None) -> Any:
    """`error.type`: the SDK's class of exception; absent when well."""
    texts, outcome = flow.places.texts, flow.a.outcome[rows]
    code = flow.a.http_status[rows].astype(np.int64)
    found = np.full(len(rows), ABSENT)
    broken = (outcome == Outcome.ERROR) | (outcome == Outcome.REJECTED)
    for seen in np.unique(code[broken]):
        name = _ERRORS.get(
            int(seen), "InternalServerError" if seen >= 500 else "APIConnectionError"
        )
        found[broken & (code == seen)] = texts.index(name)
    found[outcome == Outcome.CLIENT_TIMEOUT] = texts.index(timeout)
    if cancelled:
        found[outcome == Outcome.CANCELLED] = texts.index(cancelled)
    return found


def _posts(flow: Flow, rows: Rows, call: U64) -> None:
    """httpx's span of each try: from before the pool's slot to the headers."""
    a = flow.a
    spans = httpx_call(
        flow,
        rows,
        flow.places.clients + a.client[rows],
        _upstream(flow, rows)["url"],
        first_of(a.client_start[rows], a.client_slot[rows]) + MS // 5,
        flow.headers_client[rows],
        a.client_end[rows],
        name="client httpx",
        parent=call,
    )
    flow.forward(rows, spans)
