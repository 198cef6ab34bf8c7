"""What is told in traces of its own: LMCache's loads, and the start of an engine.

LMCache takes no traceparent: only its `session_id`, the engine's request id, joins it. vLLM
traces its start; its worker seeds `random` with 0, so some span ids are the same every time.
"""

from typing import Any, Final

import numpy as np

from tailburn.lab.telemetry.spans import ids
from tailburn.lab.telemetry.spans.flow import MS, Flow, Rows
from tailburn.lab.telemetry.spans.template import INTERNAL, Kind, Of, Slot

_SESSION = ("session_id", Slot("session", Of.HEX16, before="chatcmpl-"))
LMCACHE: Final = Kind(
    "lmcache_mp.server",
    "request",
    INTERNAL,
    (
        _SESSION,
        ("requested_tokens", Slot("requested", Of.INT)),
        ("hit_tokens", Slot("hit", Of.INT)),
        ("hit_rate", Slot("rate", Of.DOUBLE)),
        ("l1_hit_tokens", Slot("hit", Of.INT)),
        ("l2_hit_tokens", 0),
    ),
)
LOOKUP: Final = Kind("lmcache_mp.server", "mp.lookup_prefetch", INTERNAL, (_SESSION,))
RETRIEVE: Final = Kind("lmcache_mp.server", "mp.retrieve", INTERNAL, (_SESSION,))


def lmcache(flow: Flow, rows: Rows) -> None:
    """A load of offloaded KV, where an LMCache server stands beside the replica."""
    a, places = flow.a, flow.places
    has = np.asarray([e.lmcache for e in places.wiring.engines] or [False])
    rows = rows[(a.replica[rows] >= 0) & (a.kv_load_end[rows] >= 0)]
    rows = rows[has[a.replica[rows]]]
    if not len(rows):
        return
    key = flow.by_try[rows]
    trace = np.stack([ids.drawn(key, "lmcache"), ids.drawn(key, "lmcache, low half")], axis=-1)
    process = places.caches + a.replica[rows]
    begun, end = a.kv_load_start[rows], a.kv_load_end[rows]
    root = flow.ids(rows, "lmcache request")
    hit = np.minimum(a.cached_tokens[rows], a.prompt_tokens[rows]).astype(np.int64)
    session = flow.engine_id[rows]
    none = np.zeros(len(rows), np.uint64)
    flow.add(
        LMCACHE, rows, process, begun, end, root, parent=none, trace=trace, session=session,
        requested=a.prompt_tokens[rows], hit=hit,
        rate=hit / np.maximum(a.prompt_tokens[rows], 1),
    )  # fmt: skip
    looked = begun + np.minimum((end - begun) // 10, MS)
    flow.add(LOOKUP, rows, process, begun, looked, flow.ids(rows, "lmcache lookup"),
             parent=root, trace=trace, session=session)  # fmt: skip
    flow.add(RETRIEVE, rows, process, looked, end, flow.ids(rows, "lmcache retrieve"),
             parent=root, trace=trace, session=session)  # fmt: skip


def _boot(scope: str, name: str, function: str, line: int) -> Kind:
    path = "/opt/vllm/lib/python3.11/site-packages/" + scope.replace(".", "/") + ".py"
    return Kind(
        scope,
        name,
        INTERNAL,
        (
            ("code.function", function),
            ("code.namespace", scope),
            ("code.filepath", path),
            ("code.lineno", str(line)),
        ),
    )


_CLIENT = "vllm.v1.engine.core_client"
_CORE = "vllm.v1.engine.core"
_LOADER = "vllm.model_executor.model_loader"
_RUNNER = "vllm.v1.worker.gpu_model_runner"
BOOT: Final[tuple[tuple[Kind, int, float, float, int], ...]] = (
    (_boot(_CLIENT, "Overall Loading", "EngineCoreClient.make_async_mp_client", 135), -1, 0, 1, 0),
    (_boot(_CLIENT, "AsyncMPClient init", "AsyncMPClient.__init__", 1109), 0, 0, 1, 0),
    (_boot(_CORE, "EngineCoreProc init", "EngineCoreProc.__init__", 1134), 1, 0.02, 0.99, 0),
    (_boot("vllm.v1.executor.abstract", "Executor init", "Executor.__init__", 111),
     2, 0.03, 0.6, 0),
    (_boot("vllm.v1.executor.multiproc_executor", "Worker init", "WorkerProc.__init__", 646),
     3, 0.05, 0.59, 0),
    (_boot("vllm.v1.worker.worker_base", "Worker init", "WorkerWrapperBase.init_worker", 259),
     4, 0.06, 0.1, 0),
    (_boot(_RUNNER, "Loading (GPU)", "GPUModelRunner.load_model", 61), 4, 0.1, 0.58,
     0x629F6FBED82C07CD),
    (_boot(f"{_LOADER}.base_loader", "Load model", "BaseModelLoader.load_model", 62),
     6, 0.1, 0.57, 0xE3E70682C2094CAC),
    (_boot(f"{_LOADER}.utils", "Initialize model", "initialize_model", 73), 7, 0.1, 0.14,
     0x0A5D2F346BAA9455),
    (_boot(f"{_LOADER}.default_loader", "Load weights", "DefaultModelLoader.load_weights", 280),
     7, 0.15, 0.56, 0),
    (_boot(_CORE, "Prepare model", "EngineCore._initialize_kv_caches", 260), 2, 0.6, 0.98, 0),
    (_boot("vllm.v1.worker.gpu_worker", "Allocate KV cache", "Worker.initialize_from_config", 852),
     3, 0.65, 0.7, 0),
)  # fmt: skip
"""Kind, parent (by its place here), begin and end as shares of the whole, its span id if fixed."""


def boot(flow: Flow, rows: Rows) -> None:
    """vLLM's spans of a start, once a start: each attempt that waited for it knows of it."""
    a, places = flow.a, flow.places
    rows = rows[(a.model_end[rows] >= 0) & (a.replica[rows] >= 0)]
    rows = rows[places.stack_rows(places.wiring.engines, a.replica[rows], "vllm")]
    new = []
    for row, start in zip(rows.tolist(), a.model_start[rows].tolist(), strict=True):
        replica = int(a.replica[row])
        if (replica, start) not in places.booted:
            places.booted.add((replica, start))
            new.append(row)
    if new:
        _starts(flow, np.asarray(new))


def _starts(flow: Flow, rows: Rows) -> None:
    a, process = flow.a, flow.places.engines + flow.a.replica[rows]
    key = ids.mix(a.model_start[rows].astype(np.uint64) ^ ids.mix(a.replica[rows]))
    trace = np.stack([ids.drawn(key, "boot"), ids.drawn(key, "boot, low half")], axis=-1)
    begun, took = a.model_start[rows], a.model_end[rows] - a.model_start[rows]
    spans: list[Any] = []
    for place, (kind, parent, first, last, fixed) in enumerate(BOOT):
        drawn = ids.drawn(key, f"boot {place}")
        spans.append(np.full(len(rows), fixed, np.uint64) if fixed else drawn)
        flow.add(
            kind, rows, process,
            begun + (took * first).astype(np.int64), begun + (took * last).astype(np.int64),
            spans[place], trace=trace,
            parent=spans[parent] if parent >= 0 else np.zeros(len(rows), np.uint64),
            remote=place in (2, 4, 11),
        )  # fmt: skip
