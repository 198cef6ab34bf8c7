"""Stack by stack: our spans have the structure of spans recorded from the running programs.

Compared are scopes with versions and schemas, names, kinds, keys and types of attributes,
events, flags, statuses, resources, and which span is whose parent.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tailburn.lab.records import Attempts
from tailburn.lab.telemetry.spans import Place, Wiring, bodies
from tests.lab.telemetry.captured import captured
from tests.lab.telemetry.decoded import Shape, Span, shapes, spans_of
from tests.lab.telemetry.making import S, attempts, wiring

CALLER = {
    "opentelemetry.instrumentation.httpx POST",
    "lab.router-client chat MODEL",
    "lab.chat-client chat MODEL",
}
OURS_ALONE = {"lab.phase", "lab.i"}
"""What the drivers of the captures set by hand."""


def _dynamo(told: Iterable[Span]) -> list[Span]:
    """Dynamo names its tracers after services: of workers and frontends, one each."""
    found = list(told)
    for s in found:
        scope = re.sub(r"^dynamo-(worker|decode|prefill)(-\d)?$", "dynamo-worker", s.scope[0])
        s.scope = (scope, *s.scope[1:])
    return found


@dataclass(frozen=True)
class Case:
    """A capture, the chain that should look like it, and what of it is compared."""

    folder: str
    wiring: Wiring
    given: dict[str, Any]
    kinds: dict[tuple[str, str, int], set[str]]
    """Scope, name, kind: attributes of ours that the capture's requests had no reason for."""
    anywhere: set[tuple[str, str, int]] = field(default_factory=set)
    """Kinds whose parent, or process, is another one in the capture's chain."""
    failed: set[tuple[str, str, int]] = field(default_factory=set)
    """Kinds of which none failed in the capture."""


FASTAPI = "opentelemetry.instrumentation.fastapi"
HTTPX = ("opentelemetry.instrumentation.httpx", "POST", 3)
POST = "POST /v1/chat/completions"
DYNAMO = {
    ("dynamo-frontend", "http-request", 1): set[str](),
    ("dynamo-frontend", "kv_router.select_worker", 1): set[str](),
    ("dynamo-frontend", "kv_router.compute_block_hashes", 1): set[str](),
    ("dynamo-frontend", "kv_router.compute_seq_hashes", 1): set[str](),
    ("dynamo-frontend", "kv_router.find_matches", 1): set[str](),
    ("dynamo-frontend", "kv_router.schedule", 1): set[str](),
    ("dynamo-frontend", "kv_router.route_request", 3): set[str](),
    ("dynamo-worker", "handle_payload", 2): set[str](),
}


def _dynamo_wiring() -> Wiring:
    return Wiring(
        clients=tuple(Place(f"c{i}", "app") for i in range(3)),
        gateways=tuple(Place(f"f{i}", "dynamo", "dynamo-frontend") for i in range(2)),
        routers=(),
        engines=tuple(Place(f"w{i}", "dynamo", f"dynamo-worker-{i}") for i in range(4)),
        models=("tiny-llama", "tiny-qwen"),
        trace_flags=1,
    )


CASES = {
    "client, FastAPI and vLLM": Case(
        "vllm-0.32.0/spans/run1-http",
        wiring("app", "fastapi", token_spans=True),
        {"tokens": True},
        {
            ("lab.chat-client", "chat MODEL", 3): set(),
            HTTPX: set(),
            (FASTAPI, POST, 2): set(),
            (FASTAPI, f"{POST} http receive", 1): set(),
            (FASTAPI, f"{POST} http send", 1): set(),
            ("vllm.tracing.otel", "llm_request", 2): set(),
        },
        failed={HTTPX},
    ),
    "LiteLLM": Case(
        "litellm-vllm/spans",
        wiring("openai", "litellm"),
        {"rag": True},
        {
            ("opentelemetry.instrumentation.openai_v2", "chat MODEL", 3): set(),
            HTTPX: set(),
            ("fastapi", POST, 2): set(),
            ("fastapi", "fastapi.dependencies", 1): set(),
            ("fastapi", "fastapi.endpoint", 1): set(),
            ("fastapi", "fastapi.serialization", 1): set(),
            ("litellm", "Received Proxy Server Request", 2): set(),
            ("litellm", "Failed Proxy Server Request", 1): set(),
            ("litellm", "auth", 1): set(),
            ("litellm", "proxy_pre_call", 1): set(),
            ("litellm", "router", 1): set(),
            ("litellm", "self", 1): set(),
            ("litellm", "litellm_request", 1): set(),
            ("litellm", "raw_gen_ai_request", 1): set(),
            ("vllm.tracing.otel", "llm_request", 2): set(),
            ("opentelemetry.instrumentation.chromadb", "chroma.query", 1): set(),
        },
        {
            ("opentelemetry.instrumentation.openai_v2", "chat MODEL", 3),
            ("opentelemetry.instrumentation.chromadb", "chroma.query", 1),
        },
    ),
    "production-stack": Case(
        "production-stack/spans/run1-roundrobin",
        wiring("app", "none", "production-stack"),
        {"router": True},
        {
            ("vllm-router", "router /v1/chat/completions", 2): set(),
            ("vllm-router", "process_request", 3): set(),
        },
    ),
    "smg": Case(
        "sglang-router/spans/run3-smg-1.13.0",
        wiring("app", "none", "smg"),
        {"router": True},
        {("smg", "http_request", 1): set()},
    ),
    "sglang-router": Case(
        "sglang-router/spans/run1-cache-aware",
        wiring("app", "none", "sglang-router"),
        {"router": True},
        {("smg", "http_request", 1): set()},
    ),
    "vllm-router": Case(
        "vllm-router/spans/run1-consistent-hash",
        wiring("app", "none", "vllm-router", trace_flags=1),
        {"router": True},
        {("vllm-router", POST, 2): set(), ("vllm-router", POST, 3): set()},
    ),
    "Dynamo": Case("dynamo-mocker/spans/run1-agg-kv", _dynamo_wiring(), {"router": True}, DYNAMO),
    "Dynamo, split": Case(
        "dynamo-mocker/spans/run3-disagg-kv",
        _dynamo_wiring(),
        {"router": True, "split": True},
        DYNAMO,
    ),
}


def _name(name: str) -> str:
    return "chat MODEL" if name.startswith("chat ") else name


def _shapes(told: list[Span]) -> dict[tuple[str, str, int], Shape]:
    return shapes(_dynamo(told), _name)


def _parents(shape: Shape) -> set[str]:
    return {"caller" if parent in CALLER else parent for parent in shape.parents}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def _told(case: Case) -> list[Span]:
    told: Attempts = attempts(300, seed=5, **case.given)
    return spans_of(bodies(told, case.wiring, epoch_unix_ns=1_764_600_000 * S))


def test_our_spans_are_like_the_recorded_ones(case: Case, shared_dir: Path) -> None:
    ours = _shapes(_told(case))
    theirs = _shapes(captured(shared_dir / "captures" / case.folder))
    for key, ours_alone in case.kinds.items():
        assert key in theirs, f"{key} is not in the capture"
        assert key in ours, f"{key} is not told"
        a, b = ours[key], theirs[key]
        assert a.scopes <= b.scopes, key
        extra = {k: t for k, t in a.some.items() if b.some.get(k) != t and k not in ours_alone}
        assert not extra, f"{key}: the capture has not {extra}"
        wanting = {k for k in b.always if k not in a.always} - OURS_ALONE
        assert not wanting, f"{key}: every span of the capture has {wanting}"
        assert a.flags <= b.flags, f"{key}: flags {a.flags}, the capture's are {b.flags}"
        seen = b.statuses | ({2} if key in case.failed else set())
        assert a.statuses <= seen, f"{key}: {a.statuses}, the capture has {b.statuses}"
        for event, types in a.events.items():
            assert types.items() <= b.events.get(event, {}).items(), f"{key}: event {event}"
            assert event in b.events, f"{key}: the capture has no event {event}"
        if key not in case.anywhere:
            assert _parents(a) <= _parents(b), f"{key}: parents {a.parents} against {b.parents}"


def test_our_resources_have_the_recorded_keys(case: Case, shared_dir: Path) -> None:
    scopes = {key[0] for key in set(case.kinds) - case.anywhere}

    def keys(told: list[Span]) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for s in _dynamo(told):
            if s.scope[0] in scopes:
                found.setdefault(s.scope[0], set()).update(s.resource)
        return found

    ours = keys(_told(case))
    theirs = keys(captured(shared_dir / "captures" / case.folder))
    for scope in scopes:
        assert ours[scope] == theirs[scope], scope


def test_an_engine_s_start_is_like_the_recorded_one(shared_dir: Path) -> None:
    told = attempts(3, failing=False)
    told.model_start[:], told.model_end[:], told.replica[:] = 0, 60 * S, 1

    def cpu(name: str) -> str:
        return name.replace("(GPU)", "(CPU)")

    def keys(found: list[Span]) -> dict[tuple[str, str], Shape]:
        boots = [s for s in found if "code.function" in s.attributes]
        for s in boots:
            s.scope = (s.scope[0].replace("gpu_model_runner", "cpu_model_runner"), "", "")
        return {(k[0], k[1]): v for k, v in shapes(boots, cpu).items()}

    ours = keys(spans_of(bodies(told, wiring())))
    theirs = keys(captured(shared_dir / "captures" / "vllm-0.32.0/spans/run1-http"))
    loads = ("vllm.model_executor.model_loader.default_loader", "Load weights")
    assert set(ours) - {loads} == set(theirs)  # it had no weights to load
    for key in theirs:
        assert ours[key].always == theirs[key].always
        assert ours[key].flags == theirs[key].flags
        assert ours[key].parents == theirs[key].parents
        assert ours[key].count == 1  # three requests waited for one start
