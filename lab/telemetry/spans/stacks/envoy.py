"""Envoy AI Gateway 1.1 with its default conventions (OpenInference): one span a request.

It is INTERNAL, and what lies behind is its child. Contents hidden, as its settings allow.
"""

import numpy as np

from tailburn.lab.records import Outcome
from tailburn.lab.telemetry.spans.flow import (
    MS,
    RUST_FLAGS,
    Flow,
    Rows,
    first_of,
    happened,
    optional,
)
from tailburn.lab.telemetry.spans.stacks.services import guardrail, retrieval
from tailburn.lab.telemetry.spans.template import ABSENT, INTERNAL, Event, Kind, Of, Slot

REQUEST = Kind(
    "envoyproxy/ai-gateway",
    "ChatCompletion",
    INTERNAL,
    (
        ("llm.system", "openai"),
        ("input.value", "__REDACTED__"),
        ("input.mime_type", "application/json"),
        ("output.value", "__REDACTED__"),
        ("output.mime_type", "application/json"),
        ("llm.invocation_parameters", Slot("parameters", Of.TEXT)),
        ("llm.input_messages.0.message.role", "user"),
        ("llm.input_messages.0.message.content", "__REDACTED__"),
        ("llm.model_name", Slot("model", Of.TEXT)),
        ("llm.token_count.total", Slot("total", Of.INT)),
        ("llm.token_count.prompt", Slot("input", Of.INT)),
        ("llm.token_count.completion", Slot("output", Of.INT)),
        ("llm.token_count.prompt_details.cache_read", Slot("cached", Of.INT)),
        ("llm.output_messages.0.message.role", "assistant"),
        ("llm.output_messages.0.message.content", "__REDACTED__"),
        ("openinference.span.kind", "LLM"),
    ),
    events=(
        Event("first", "First Token Stream Event"),
        Event(
            "raised",
            "exception",
            (
                ("exception.message", "Error code"),
                ("exception.type", Slot("error", Of.TEXT)),
            ),
        ),
    ),
)


def gateway(flow: Flow, rows: Rows) -> None:
    """The span of each request, ended with its last byte."""
    a, places = flow.a, flow.places
    ok = a.outcome[rows] == Outcome.OK
    code = a.http_status[rows].astype(np.int64)
    failed = code >= 400
    spans = flow.ids(rows, "envoy ai gateway")
    process = places.gateways + a.gateway[rows]
    last = first_of(a.gateway_last[rows], happened(a.client_end[rows], a.aborted[rows]))
    streamed = (a.streamed[rows] == 1) & (a.gateway_first[rows] >= 0) & ~failed
    texts = places.texts
    forms = np.asarray(
        [
            [texts.index(f'{{"model": "{m}", "stream": {b}}}') for b in ("false", "true")]
            for m in places.wiring.models
        ]
    )
    flow.add(
        REQUEST,
        rows,
        process,
        a.gateway_in[rows],
        last + MS // 10,
        spans,
        flags=RUST_FLAGS,
        status=np.where(failed, places.statuses.index(2, "Error code"), places.statuses.index(1)),
        parameters=forms[a.model[rows], a.streamed[rows]],
        model=places.models[a.model[rows]],
        total=optional(a.prompt_tokens[rows].astype(np.int64) + a.output_done[rows], ok),
        input=optional(a.prompt_tokens[rows], ok),
        output=optional(a.output_done[rows], ok),
        cached=optional(a.cached_tokens[rows], ok),
        first=np.where(streamed, a.gateway_first[rows], ABSENT),
        raised=np.where(failed, last, ABSENT),
        error=optional(texts.index("InternalServerError"), failed),
    )
    guardrail(flow, rows, process, spans)
    retrieval(flow, rows, process, spans)
    flow.forward(rows, spans)
