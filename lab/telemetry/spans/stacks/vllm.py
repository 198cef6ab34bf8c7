"""vLLM 0.32: one `llm_request` a finished request, none for what was given up.

Its times are the engine's: seconds by two clocks, as `output_processor.py` writes them. A
split request has one span at the prefill instance and one at the decode instance.
"""

from typing import Any

import numpy as np

from tailburn.lab.telemetry.spans.flow import Flow, Rows, first_of, optional, seconds
from tailburn.lab.telemetry.spans.template import SERVER, Kind, Of, Slot

REQUEST = Kind(
    "vllm.tracing.otel",
    "llm_request",
    SERVER,
    (
        ("gen_ai.latency.time_to_first_token", Slot("ttft", Of.DOUBLE)),
        ("gen_ai.latency.e2e", Slot("e2e", Of.DOUBLE)),
        ("gen_ai.latency.time_in_queue", Slot("queue", Of.DOUBLE)),
        ("gen_ai.usage.prompt_tokens", Slot("prompt", Of.INT)),
        ("gen_ai.usage.completion_tokens", Slot("output", Of.INT)),
        ("gen_ai.latency.time_in_model_prefill", Slot("prefill", Of.DOUBLE)),
        ("gen_ai.latency.time_in_model_decode", Slot("decode", Of.DOUBLE)),
        ("gen_ai.latency.time_in_model_inference", Slot("inference", Of.DOUBLE)),
        ("gen_ai.request.id", Slot("request_id", Of.HEX16, before="chatcmpl-")),
        ("gen_ai.request.id", Slot("request_uuid", Of.UUID)),
        ("gen_ai.request.top_p", 0.95),
        ("gen_ai.request.max_tokens", Slot("max_tokens", Of.INT)),
        ("gen_ai.request.temperature", 0.8),
        ("gen_ai.request.n", 1),
    ),
)
TRTLLM = Kind(
    "trt.llm",
    "llm_request",
    SERVER,
    (
        ("gen_ai.usage.prompt_tokens", Slot("prompt", Of.INT)),
        ("gen_ai.usage.completion_tokens", Slot("output", Of.INT)),
        ("gen_ai.request.id", Slot("request_id", Of.HEX16)),
        ("gen_ai.request.n", 1),
        ("gen_ai.request.top_p", 0.95),
        ("gen_ai.request.max_tokens", Slot("max_tokens", Of.INT)),
        ("gen_ai.request.temperature", 0.8),
        ("gen_ai.latency.time_to_first_token", Slot("ttft", Of.DOUBLE)),
        ("gen_ai.latency.e2e", Slot("e2e", Of.DOUBLE)),
        ("gen_ai.latency.time_in_queue", Slot("queue", Of.DOUBLE)),
        ("gen_ai.latency.kv_cache_transfer_time", Slot("transfer", Of.DOUBLE)),
        ("gen_ai.response.finish_reasons", Slot("finish", Of.LIST)),
    ),
)


def finished(flow: Flow, rows: Rows) -> Any:
    """Requests that the engine brought to their end: the only ones it tells of."""
    a = flow.a
    return (a.engine_last[rows] >= 0) & (a.aborted[rows] < 0) & (a.engine_in[rows] >= 0)


def vllm(flow: Flow, rows: Rows) -> None:
    """The span of each finished request; two of a split one. Below Dynamo, ids are Dynamo's."""
    named: dict[str, Any] = {
        "request_id": optional(flow.engine_id[rows], ~flow.dynamo[rows]),
        "request_uuid": optional(flow.ids(rows, "dynamo request"), flow.dynamo[rows]),
    }
    a, places = flow.a, flow.places
    split = a.prefill_replica[rows] >= 0
    done = finished(flow, rows)
    tail = 200_000 + flow.exponential(rows, "span end", 0.2)
    start = a.engine_in[rows]
    both = np.where(split, a.kv_transfer_start[rows], start)
    began = np.where(split & (both >= 0), both, start)
    scheduled = np.where(split & (a.kv_transfer_end[rows] >= 0), a.kv_transfer_end[rows],
                         a.scheduled[rows])  # fmt: skip
    queued = np.where(split, began, first_of(a.queued[rows], a.tokenize_end[rows], start))
    # The core knows a token before the front end has sent it: the same decode, a little earlier.
    core_first = np.where(split, a.engine_first[rows], a.prefill_end[rows])
    core_first = np.where(core_first < 0, a.engine_first[rows], core_first)
    scheduled = np.clip(first_of(scheduled, core_first), queued, np.maximum(core_first, queued))
    decode = np.maximum(a.engine_last[rows] - a.engine_first[rows], 0)
    flow.add(
        REQUEST,
        rows,
        places.engines + a.replica[rows],
        began,
        a.engine_last[rows] + tail,
        flow.ids(rows, "llm_request"),
        where=done,
        ttft=seconds(a.engine_first[rows] - began),
        e2e=seconds(a.engine_last[rows] - began),
        queue=seconds(scheduled - queued),
        prompt=a.prompt_tokens[rows],
        output=a.output_done[rows],
        prefill=seconds(core_first - scheduled),
        decode=seconds(decode),
        inference=seconds(core_first - scheduled + decode),
        **named,
        max_tokens=a.max_tokens[rows],
    )
    first = first_of(a.prefill_end[rows], a.kv_transfer_start[rows])
    wait = np.clip(first_of(a.scheduled[rows], start), start, np.maximum(first, start))
    flow.add(
        REQUEST,
        rows,
        places.engines + a.prefill_replica[rows],
        start,
        first + tail,
        flow.ids(rows, "llm_request, prefill"),
        parent=np.where(
            flow.parent_prefill[rows] != 0, flow.parent_prefill[rows], flow.parent[rows]
        ),
        remote=True,
        where=done & split & (first >= 0),
        ttft=seconds(first - start),
        e2e=seconds(first - start),
        queue=seconds(wait - first_of(a.queued[rows], start)),
        prompt=a.prompt_tokens[rows],
        output=1,
        prefill=seconds(first - wait),
        decode=0.0,
        inference=seconds(first - wait),
        **named,
        max_tokens=1,
    )


def trtllm(flow: Flow, rows: Rows) -> None:
    """trtllm-serve: vLLM's names under its own scope, and the time of the KV hand-off."""
    a, places = flow.a, flow.places
    start = a.engine_in[rows]
    queued = first_of(a.queued[rows], a.tokenize_end[rows], start)
    moved = (a.kv_transfer_end[rows] >= 0) & (a.kv_transfer_start[rows] >= 0)
    ends = places.texts.indices(["stop", "length"])
    flow.add(
        TRTLLM,
        rows,
        places.engines + a.replica[rows],
        start,
        a.engine_last[rows] + 300_000,
        flow.ids(rows, "trt request"),
        where=finished(flow, rows),
        prompt=a.prompt_tokens[rows],
        output=a.output_done[rows],
        request_id=flow.engine_id[rows],
        max_tokens=a.max_tokens[rows],
        ttft=seconds(a.engine_first[rows] - start),
        e2e=seconds(a.engine_last[rows] - start),
        queue=seconds(np.maximum(a.scheduled[rows] - queued, 0)),
        transfer=seconds(np.where(moved, a.kv_transfer_end[rows] - a.kv_transfer_start[rows], 0)),
        finish=ends[(a.output_done[rows] >= a.max_tokens[rows]).astype(int)],
    )
