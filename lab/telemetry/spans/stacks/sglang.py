"""SGLang 0.5.23: a tree of INTERNAL spans, one a process and one a stage.

Read from its source, not seen running. A trace that it begins itself has an id of 64 bits.
`time_in_model_prefill` holds the queue too; the stage `prefill_waiting` tells it.
"""

from typing import Any

import numpy as np

from tailburn.lab.telemetry.spans.flow import (
    Flow,
    Rows,
    first_of,
    happened,
    optional,
    seconds,
)
from tailburn.lab.telemetry.spans.ids import U64
from tailburn.lab.telemetry.spans.stacks.vllm import finished
from tailburn.lab.telemetry.spans.template import INTERNAL, Kind, Of, Slot

_SCOPE = "sglang server"
REQUEST = Kind(
    _SCOPE,
    Slot("rid", Of.HEX8, before=" Req "),
    INTERNAL,
    (
        ("rid", Slot("rid", Of.HEX32)),
        ("module", "sglang::request"),
        ("gen_ai.usage.completion_tokens", Slot("output", Of.INT)),
        ("gen_ai.usage.prompt_tokens", Slot("prompt", Of.INT)),
        ("gen_ai.usage.cached_tokens", Slot("cached", Of.INT)),
        ("gen_ai.request.id", Slot("rid", Of.HEX32)),
        ("gen_ai.request.max_tokens", Slot("max_tokens", Of.INT)),
        ("gen_ai.request.temperature", 0.8),
        ("gen_ai.response.model", Slot("model", Of.TEXT)),
        ("gen_ai.response.finish_reasons", Slot("finish", Of.TEXT)),
        ("gen_ai.latency.time_to_first_token", Slot("ttft", Of.DOUBLE)),
        ("gen_ai.latency.e2e", Slot("e2e", Of.DOUBLE)),
        ("gen_ai.latency.time_in_model_prefill", Slot("prefill", Of.DOUBLE)),
        ("gen_ai.latency.time_in_model_decode", Slot("decode", Of.DOUBLE)),
        ("gen_ai.latency.time_in_model_inference", Slot("inference", Of.DOUBLE)),
    ),
)


def _thread(label: str, rank: bool) -> Kind:
    shown = f"{label} [TP 0] (host:" if rank else f"{label}(host:"
    pid = 1002 if rank else 1001
    return Kind(
        _SCOPE,
        Slot("host", Of.HEX8, before=shown, after=f" | pid:{pid})"),
        INTERNAL,
        (
            ("host_id", Slot("host", Of.HEX8)),
            ("pid", pid),
            ("thread_label", label),
            *((("tp_rank", 0),) if rank else ()),
        ),
        links=("from_span",) if rank else (),
    )


TOKENIZER, SCHEDULER = _thread("Tokenizer", False), _thread("Scheduler", True)
PREFILL_SCHEDULER = _thread("Prefill Scheduler", True)
DECODE_SCHEDULER = _thread("Decode Scheduler", True)


def _stage(name: str) -> Kind:
    return Kind(_SCOPE, name, INTERNAL)


TOKENIZE, DISPATCH = _stage("tokenize"), _stage("api_server_dispatch")
PROCESS, WAITING = _stage("request_process"), _stage("prefill_waiting")
PREFILL, DECODE = _stage("prefill_forward"), _stage("decode_forward")
SEND_KV, WAIT_KV = _stage("prefill_transfer_kv_cache"), _stage("decode_transferred")


def sglang(flow: Flow, rows: Rows) -> None:
    """The tree of each request; of one that was aborted, up to where it was."""
    a, places, texts = flow.a, flow.places, flow.places.texts
    own = rows[flow.parent[rows] == 0]
    flow.trace[own, 0] = 0
    process = places.engines + a.replica[rows]
    done = finished(flow, rows)
    begun = a.engine_in[rows]
    end = first_of(a.engine_end[rows], a.aborted[rows], a.client_end[rows])
    end = happened(end, begun)
    root = flow.ids(rows, "sglang root")
    dispatched = first_of(a.queued[rows], a.tokenize_end[rows], begun)
    ends = texts.indices(['["stop"]', '["length"]'])
    first, last = a.engine_first[rows], a.engine_last[rows]
    decode = np.maximum(last - first, 0)
    flow.add(
        REQUEST, rows, process, begun, end, root,
        rid=flow.engine_id[rows],
        output=optional(a.output_done[rows], done), prompt=optional(a.prompt_tokens[rows], done),
        cached=optional(a.cached_tokens[rows], done), max_tokens=a.max_tokens[rows],
        model=optional(places.models[a.model[rows]], done),
        finish=optional(ends[(a.output_done[rows] >= a.max_tokens[rows]).astype(int)], done),
        ttft=optional(seconds(first - begun), done), e2e=optional(seconds(last - begun), done),
        prefill=optional(seconds(first - dispatched), done),
        decode=optional(seconds(decode), done),
        inference=optional(seconds(last - dispatched), done),
    )  # fmt: skip
    host = flow.by_request[rows] * np.uint64(0) + places.host_ids[process]
    tokenizer = flow.ids(rows, "sglang tokenizer")
    flow.add(TOKENIZER, rows, process, begun, end, tokenizer, parent=root, host=host)
    dispatch = flow.ids(rows, "sglang dispatch")
    tokenized = first_of(a.tokenize_end[rows], dispatched)
    _part(flow, rows, TOKENIZE, process, first_of(a.tokenize_start[rows], begun), tokenized,
          tokenizer)  # fmt: skip
    flow.add(DISPATCH, rows, process, tokenized, happened(dispatched, tokenized), dispatch,
             parent=tokenizer, where=tokenized >= 0)  # fmt: skip
    _scheduler(flow, rows, process, root, dispatch, dispatched, end, host)


def _part(flow: Flow, rows: Rows, kind: Kind, process: Any, begun: Any, end: Any, parent: U64,
          where: Any = None) -> None:  # fmt: skip
    told = (np.asarray(begun) >= 0) & (np.asarray(end) >= np.asarray(begun))
    ids = flow.ids(rows, f"sglang {kind.name}")
    flow.add(kind, rows, process, begun, end, ids, parent=parent,
             where=told if where is None else told & where)  # fmt: skip


def _scheduler(
    flow: Flow, rows: Rows, process: Any, root: U64, dispatch: U64, begun: Any, end: Any, host: U64
) -> None:
    """The scheduler's stages; of a split request, those of two schedulers."""
    a, places = flow.a, flow.places
    split = a.prefill_replica[rows] >= 0
    whole = flow.ids(rows, "sglang scheduler")
    before = flow.ids(rows, "sglang prefill scheduler")
    taken = a.queued[rows] >= 0
    link: dict[str, Any] = {"host": host, "from_span": dispatch}
    flow.add(SCHEDULER, rows, process, begun, end, whole, parent=root, where=taken & ~split, **link)
    there = places.engines + np.where(split, a.prefill_replica[rows], a.replica[rows])
    sent = first_of(a.kv_transfer_end[rows], end)
    flow.add(PREFILL_SCHEDULER, rows, there, begun, sent, before, parent=root,
             where=taken & split, **link)  # fmt: skip
    flow.add(DECODE_SCHEDULER, rows, process, begun, end, whole, parent=root,
             where=taken & split, **link)  # fmt: skip
    owner = np.where(split, before, whole)
    ready = begun + 300_000
    scheduled = a.scheduled[rows]
    _part(flow, rows, PROCESS, there, begun, np.minimum(ready, np.maximum(scheduled, begun)),
          owner, taken)  # fmt: skip
    _part(flow, rows, WAITING, there, np.minimum(ready, np.maximum(scheduled, begun)), scheduled,
          owner)  # fmt: skip
    computed = first_of(a.prefill_end[rows], a.engine_first[rows])
    _part(flow, rows, PREFILL, there, scheduled, computed, owner)
    moved = a.kv_transfer_end[rows]
    _part(flow, rows, SEND_KV, there, a.kv_transfer_start[rows], moved, owner, split)
    _part(flow, rows, WAIT_KV, process, a.kv_transfer_start[rows], moved, whole, split)
    from_first = np.where(split, moved, computed)
    _part(flow, rows, DECODE, process, from_first, first_of(a.engine_last[rows], end), whole)
