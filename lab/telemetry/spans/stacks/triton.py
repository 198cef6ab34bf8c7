"""NVIDIA Triton in mode opentelemetry: three SERVER spans a request, times as events."""

import numpy as np

from tailburn.lab.telemetry.spans.flow import Flow, Rows, first_of, happened
from tailburn.lab.telemetry.spans.stacks.vllm import finished
from tailburn.lab.telemetry.spans.template import ABSENT, SERVER, Event, Kind, Of, Slot

_SCOPE = "triton-server"
REQUEST = Kind(
    _SCOPE,
    "InferRequest",
    SERVER,
    events=(
        Event("received", "HTTP_RECV_START"),
        Event("read", "HTTP_RECV_END"),
        Event("first", "INFER_RESPONSE_COMPLETE"),
        Event("last", "INFER_RESPONSE_COMPLETE"),
        Event("sending", "HTTP_SEND_START"),
        Event("sent", "HTTP_SEND_END"),
    ),
)
MODEL = Kind(
    _SCOPE,
    Slot("model", Of.TEXT),
    SERVER,
    (
        ("triton.model_name", Slot("model", Of.TEXT)),
        ("triton.model_version", 1),
        ("triton.trace_id", Slot("number", Of.INT)),
        ("triton.trace_parent_id", 0),
        ("triton.request_id", Slot("request_id", Of.HEX16)),
    ),
    events=(
        Event("begun", "REQUEST_START"),
        Event("queued", "QUEUE_START"),
        Event("ended", "REQUEST_END"),
    ),
)
COMPUTE = Kind(
    _SCOPE,
    "compute",
    SERVER,
    events=(
        Event("computing", "COMPUTE_START"),
        Event("input_end", "COMPUTE_INPUT_END"),
        Event("output", "COMPUTE_OUTPUT_START"),
        Event("computed", "COMPUTE_END"),
    ),
)


def triton(flow: Flow, rows: Rows) -> None:
    """Request, model and compute; requests that were given up leave none."""
    a, places = flow.a, flow.places
    done = finished(flow, rows)
    process = places.engines + a.replica[rows]
    begun, end = a.engine_in[rows], first_of(a.engine_end[rows], a.engine_last[rows])
    queued = first_of(a.queued[rows], a.tokenize_end[rows], begun)
    scheduled = happened(a.scheduled[rows], queued)
    root, model = flow.ids(rows, "triton"), flow.ids(rows, "triton model")
    taken = happened(begun, queued - 20_000)  # its tokenizer is a model of its own, untraced
    some = a.engine_first[rows] >= 0
    flow.add(
        REQUEST, rows, process, begun, end, root, where=done,
        received=begun, read=begun + 100_000,
        first=np.where(some, a.engine_first[rows], ABSENT),
        last=np.where(a.engine_last[rows] > a.engine_first[rows], a.engine_last[rows], ABSENT),
        sending=end - 50_000, sent=end,
    )  # fmt: skip
    flow.add(
        MODEL, rows, process, taken, end, model, parent=root, where=done,
        model=places.models[a.model[rows]],
        number=np.maximum(a.request[rows], 0) + 1, request_id=flow.x_request_id[rows],
        begun=taken, queued=queued, ended=end,
    )  # fmt: skip
    last = first_of(a.engine_last[rows], end)
    flow.add(
        COMPUTE, rows, process, scheduled, last, flow.ids(rows, "triton compute"),
        parent=model, where=done, computing=scheduled, input_end=scheduled + 50_000,
        output=first_of(a.prefill_end[rows], a.engine_first[rows]),
        computed=last,
    )  # fmt: skip
