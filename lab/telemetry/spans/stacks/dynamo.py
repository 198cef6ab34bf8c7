"""NVIDIA Dynamo 1.6: its frontend (as the gateway, or as a router) and its workers.

A split request has its decode hop begin about 1 ms after its prefill hop, and cover it.
Traces whose flags are 03 are cut: `x_request_id` is what still joins them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tailburn.lab.records import Outcome
from tailburn.lab.telemetry.spans import ids
from tailburn.lab.telemetry.spans.flow import (
    MS,
    RUST_FLAGS,
    Flow,
    Rows,
    first_of,
    happened,
    optional,
)
from tailburn.lab.telemetry.spans.ids import U64
from tailburn.lab.telemetry.spans.stacks import dynamo_kinds as kinds
from tailburn.lab.telemetry.spans.stacks.services import guardrail, retrieval
from tailburn.lab.telemetry.spans.stacks.vllm import vllm
from tailburn.lab.telemetry.spans.template import ABSENT, Kind


@dataclass
class _Stay:
    """An attempt's stay in a frontend: instants and the process."""

    process: Any
    begun: Any
    picks: Any
    """Selection of a worker begins."""
    picked: Any
    """It leaves the router's queue."""
    out: Any
    first: Any
    last: Any


def gateway(flow: Flow, rows: Rows) -> None:
    """The frontend as the gateway: it picks the worker itself."""
    a, places = flow.a, flow.places
    out = first_of(a.router_out[rows], a.gateway_out[rows])
    checked = happened(a.guardrail_end[rows], a.retrieval_end[rows], a.gateway_authed[rows])
    picks = first_of(a.router_in[rows], checked)
    stay = _Stay(
        places.gateways + a.gateway[rows],
        a.gateway_in[rows],
        picks,
        first_of(a.router_queued_end[rows], out),
        out,
        a.gateway_first[rows],
        a.gateway_last[rows],
    )
    http = _frontend(flow, rows, stay)
    guardrail(flow, rows, stay.process, http)
    retrieval(flow, rows, stay.process, http)


def router(flow: Flow, rows: Rows) -> None:
    """The frontend behind another gateway."""
    a, places = flow.a, flow.places
    stay = _Stay(
        places.routers + places.router_of(a.replica[rows]),
        a.router_in[rows],
        a.router_in[rows] + MS // 10,
        a.router_queued_end[rows],
        a.router_out[rows],
        a.router_first[rows],
        a.router_end[rows],
    )
    _frontend(flow, rows, stay)


def worker_ids(flow: Flow, replicas: Any) -> Any:
    """What each worker is called: numbers above 2^53, as slots."""
    every = np.arange(len(flow.places.wiring.engines)).astype(np.uint64)
    named = ids.mix(every + np.uint64(7_001)) >> np.uint64(1)
    return named[np.maximum(replicas, 0)]


def _context(flow: Flow, rows: Rows, parent: Any) -> dict[str, Any]:
    """The caller's trace as attributes; absent where there is none."""
    called = np.asarray(parent) != 0
    return {
        "caller": np.where(called, 0, ABSENT),
        "caller_flags": optional(flow.places.texts.index("01"), called),
    }


def _times(flow: Flow, rows: Rows, begun: Any, ended: Any) -> dict[str, Any]:
    span = np.maximum(ended - begun, 0)
    busy = np.minimum(100_000 + flow.exponential(rows, "busy", 0.4), span)
    return {"busy": busy, "idle": span - busy}


def _frontend(flow: Flow, rows: Rows, stay: _Stay) -> U64:
    a, places, texts = flow.a, flow.places, flow.places.texts
    flow.cut(rows[flow.flags[rows] == 3], "dynamo")
    outcome = a.outcome[rows]
    ok, left = outcome == Outcome.OK, outcome == Outcome.CANCELLED
    split = a.prefill_replica[rows] >= 0
    last = first_of(stay.last, happened(a.client_end[rows], a.aborted[rows]), stay.begun)
    http = flow.ids(rows, "dynamo http")
    code = np.where(a.http_status[rows] >= 400, a.http_status[rows], 200).astype(np.int64)
    end = last + MS // 5
    counted = np.maximum(a.output_done[rows] - 1, 1)
    timed = ok & (stay.first >= 0)
    status = np.where(outcome == Outcome.ERROR, places.statuses.index(2), 0)
    words = texts.indices(["success", "error", "cancelled", "cancelled", "error"])
    flow.add(
        kinds.HTTP, rows, stay.process, stay.begun, end, http, flags=RUST_FLAGS,
        where=~(split & (code == 500)), status=status,
        **_context(flow, rows, flow.parent[rows]),
        x_request_id=flow.x_request_id[rows], request_id=flow.ids(rows, "dynamo request"),
        model=places.models[a.model[rows]],
        input=optional(a.prompt_tokens[rows], ok), output=optional(a.output_done[rows], ok),
        none=optional(0, ok | (np.zeros(len(rows)) > 0)),
        ttft=optional((stay.first - stay.begun) // 10_000, timed),
        itl=optional((last - stay.first) // counted // 10_000,
                     timed & (a.output_done[rows] > 1)),
        prefill_worker=optional(
            worker_ids(flow, np.where(split, a.prefill_replica[rows], a.replica[rows])), ok
        ),
        decode_worker=optional(worker_ids(flow, a.replica[rows]), ok),
        outcome=words[outcome], **_times(flow, rows, stay.begun, end),
        taken=stay.begun + 200_000,
        request_type=texts.indices(["unary", "stream"])[a.streamed[rows]],
        answered=np.where(stay.out >= 0, happened(stay.out, stay.begun) + 3 * MS, last),
        http_status=code, latency=np.maximum(stay.out - stay.begun, 0) // MS + 3,
        completed=np.where(ok | left, last, ABSENT), how=words[outcome],
        error=optional(texts.index("cancelled"), left),
        elapsed=np.maximum(last - stay.begun, 0) // MS,
    )  # fmt: skip
    called = stay.out >= 0
    _select(flow, rows, stay.process, http, stay.picks, stay.picked, "first", stay.picks >= 0)
    prefill = _route(flow, rows, stay, http, prefill=True, last=last, where=called & split)
    late = np.where(split, stay.out + MS, stay.out)
    _select(flow, rows, stay.process, http, stay.out + MS // 2, late, "decode", called & split)
    decode = _route(flow, rows, stay, http, prefill=False, last=last, where=called)
    flow.parent_prefill[rows] = np.where(split, prefill, np.uint64(0))
    flow.forward(rows, np.where(called, decode, http))
    return http


def _select(
    flow: Flow, rows: Rows, process: Any, http: U64, begun: Any, ended: Any, which: str, where: Any
) -> None:
    """Picking a worker; `schedule` is where the router's own queue shows."""
    select = flow.ids(rows, f"dynamo select {which}")
    ended = happened(ended, begun + 60_000)

    def part(kind: Kind, name: str, start: Any, end: Any, parent: U64, span: U64) -> None:
        flow.add(kind, rows, process, start, end, span, parent=parent, flags=RUST_FLAGS,
                 where=where, **_times(flow, rows, start, end))  # fmt: skip

    part(kinds.SELECT, "select", begun, ended + 10_000, http, select)
    for kind, at, took in (
        (kinds.BLOCK_HASHES, 10_000, 5_000),
        (kinds.SEQ_HASHES, 16_000, 3_000),
        (kinds.FIND_MATCHES, 22_000, 12_000),
    ):
        name = f"dynamo {kind.name} {which}"
        start = begun + at
        part(kind, name, start, start + took, select, flow.ids(rows, name))
    name = f"dynamo schedule {which}"
    part(kinds.SCHEDULE, name, begun + 40_000, ended, select, flow.ids(rows, name))


def _route(
    flow: Flow, rows: Rows, stay: _Stay, http: U64, *, prefill: bool, last: Any, where: Any
) -> U64:
    """The call to a worker, CLIENT."""
    a, places, texts = flow.a, flow.places, flow.places.texts
    split = a.prefill_replica[rows] >= 0
    name = "dynamo route, prefill" if prefill else "dynamo route"
    spans = flow.ids(rows, name)
    outcome = a.outcome[rows]
    left = outcome == Outcome.CANCELLED
    failed = (outcome == Outcome.ERROR) & ~prefill
    if prefill:
        begun, end = stay.out, first_of(a.prefill_end[rows], a.kv_transfer_start[rows], last)
        phase: Any = texts.index("Prefill")
        replica = a.prefill_replica[rows]
    else:
        begun, end = np.where(split, stay.out + MS * 13 // 10, stay.out), last - MS // 20
        phase = np.where(split, texts.index("Decode"), texts.index("Aggregated"))
        replica = a.replica[rows]
    end = happened(end, begun)
    words = texts.indices(["success", "error", "cancelled", "cancelled", "error"])
    told = np.full(len(rows), words[0]) if prefill else words[outcome]
    flow.add(
        kinds.ROUTE_REQUEST, rows, stay.process, begun, end, spans, parent=http, where=where,
        flags=RUST_FLAGS,
        status=np.where(failed, places.statuses.index(2, "disconnected"), 0),
        request_id=flow.ids(rows, "dynamo request"), none=0,
        overlap=a.cached_tokens[rows].astype(np.int64) // 16, phase=phase,
        worker=worker_ids(flow, replica), migrated=np.full(len(rows), ABSENT if prefill else 0),
        outcome=told,
        signal=optional(texts.index("stream_drop"), left & (not prefill)),
        error=optional(texts.index("disconnected"), failed),
        **_times(flow, rows, begun, end),
        completed=np.where(~failed & (~left | prefill), end, ABSENT),
        cancelled=np.where(left & (not prefill), end, ABSENT),
        failed=np.where(failed, end, ABSENT),
    )  # fmt: skip
    return spans


def worker(flow: Flow, rows: Rows) -> None:
    """`handle_payload` of each worker; nothing about queue, prefill, decode or tokens in it."""
    a = flow.a
    split = a.prefill_replica[rows] >= 0
    begun = a.engine_in[rows]
    end = first_of(a.engine_end[rows], a.aborted[rows], a.client_end[rows])
    _load_lora(flow, rows)
    early = first_of(a.prefill_end[rows], a.kv_transfer_start[rows], begun)
    before = flow.parent_prefill[rows]
    prefill = _handle(flow, rows, "dynamo handle, prefill", a.prefill_replica[rows], begun, early,
                      "prefill", split, before)  # fmt: skip
    late = np.where(split, begun + MS * 13 // 10, begun)
    decode = _handle(flow, rows, "dynamo handle", a.replica[rows], late, end, "backend",
                     np.ones(len(rows), np.bool_), flow.parent[rows])  # fmt: skip
    flow.parent_prefill[rows] = np.where(split, prefill, np.uint64(0))
    flow.forward(rows, decode)


def _handle(
    flow: Flow, rows: Rows, name: str, replica: Any, begun: Any, end: Any, component: str,
    where: Any, parent: U64,
) -> U64:  # fmt: skip
    a, texts = flow.a, flow.places.texts
    spans = flow.ids(rows, name)
    gone = (a.aborted[rows] >= 0) & (component == "backend")
    flow.add(
        kinds.HANDLE, rows, flow.places.engines + replica, begun, end, spans,
        parent=parent, remote=True, flags=RUST_FLAGS, where=where,
        **_context(flow, rows, parent),
        x_request_id=flow.x_request_id[rows], request_id=flow.ids(rows, "dynamo request"),
        component=texts.index(component), endpoint=texts.index("generate"),
        worker=worker_ids(flow, replica), **_times(flow, rows, begun, end),
        taken=begun + 60_000, cancelled=np.where(gone, end, ABSENT), completed=end,
    )  # fmt: skip
    return spans


def _load_lora(flow: Flow, rows: Rows) -> None:
    """An adapter's load: a `handle_payload` of another endpoint, in a trace of its own."""
    a, texts = flow.a, flow.places.texts
    begun, end = a.lora_start[rows], a.lora_end[rows]
    key = flow.by_try[rows]
    trace = np.stack([ids.drawn(key, "lora"), ids.drawn(key, "lora, low half")], axis=-1)
    flow.add(
        kinds.HANDLE, rows, flow.places.engines + a.replica[rows], begun, end,
        flow.ids(rows, "dynamo lora"), parent=np.zeros(len(rows), np.uint64), flags=RUST_FLAGS,
        where=end >= 0, trace=trace, caller=ABSENT, caller_flags=ABSENT, x_request_id=ABSENT,
        request_id=flow.ids(rows, "dynamo lora request"), component=texts.index("backend"),
        endpoint=texts.index("load_lora"), worker=worker_ids(flow, a.replica[rows]),
        **_times(flow, rows, begun, end), taken=begun, cancelled=ABSENT, completed=end,
    )  # fmt: skip


def worker_with_vllm(flow: Flow, rows: Rows) -> None:
    """A worker round vLLM, which traces too: its span hangs below `handle_payload`."""
    worker(flow, rows)
    vllm(flow, rows)
