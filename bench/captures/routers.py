"""Routers in front of engines that tell no first token: sglang-router, smg, production-stack,
vllm-router.

sglang-router 0.3.2 ignores the caller's traceparent and no span of the client carries its
request id: a client's row and a router's row stand side by side. Its spans, and those that
vllm-router makes for its calls, may end up to 58 s late. production-stack never exports its
root when the client leaves.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.captures.case import CLIENT, ENGINE, GATEWAY, TO_ENGINE, Case, SpanTest, Wait, no_more
from bench.captures.checks import Check, every
from bench.captures.log import Sent
from bench.captures.matching import Matching
from bench.captures.recorded import Group, Span
from bench.captures.vllm import CLIENT_KIND, SERVER_KIND

CHAT = "/v1/chat/completions"


def _is_engine(span: Span) -> bool:
    return span.service.startswith("fake-engine") and span.name == f"POST {CHAT}"


def _is_smg(span: Span) -> bool:
    return span.name == "http_request" and CHAT in (span.text("uri"), span.text("path"))


def _is_router(span: Span) -> bool:
    return span.service == "vllm-router" and span.kind == SERVER_KIND


def _is_call_out(span: Span) -> bool:
    return span.service == "vllm-router" and span.kind == CLIENT_KIND


def _call_tries(group: Group) -> frozenset[int]:
    """One CLIENT span a try."""
    return frozenset({max(len(group.having(_is_call_out)), 1)})


def _engine_tries(group: Group) -> frozenset[int]:
    """smg has no span for a try: its events count them, the engines those that arrived."""
    logged = sum(
        name == "Sending request" for span in group.having(_is_smg) for name, _ in span.events
    )
    return frozenset(max(tries, 1) for tries in (len(group.having(_is_engine)), logged))


def _parts(is_router: SpanTest) -> Callable[[Group, Sent], Mapping[str, int] | None]:
    def parts(group: Group, sent: Sent) -> Mapping[str, int] | None:
        routers, engines = group.having(is_router), group.having(_is_engine)
        if sent.first_ns is None or not routers or not engines:
            return None
        return {
            "client and its edge": routers[0].start_ns - sent.sent_ns,
            "router and its edge": engines[0].start_ns - routers[0].start_ns,
            "engine": sent.first_ns - engines[0].start_ns,
        }

    return parts


def _wait(is_router: SpanTest, owner: str) -> Wait:
    return Wait(
        phase="overload",
        parts={
            "client and its edge": CLIENT,
            "router and its edge": (*GATEWAY, *TO_ENGINE),
            "engine": ENGINE,
        },
        owner=(owner,),
        truth=_parts(is_router),
    )


def _headers_are_no_token(matching: Matching, _captures: Path) -> Iterator[Check]:
    """A router that only tells when headers came knows no first token."""
    clocks = ("ttft_gateway_s", "ttft_engine_s")
    wrong = [
        f"trace {row.text('trace_id')}: {clock} {row.seconds(clock)}"
        for _, row in matching.alone
        for clock in clocks
        if row.seconds(clock) is not None
    ]
    yield every("no first token from response headers", len(matching.alone), wrong)


def _case(
    name: str,
    version: str,
    spans: str,
    is_gateway: SpanTest,
    tries: Callable[[Group], frozenset[int]],
    wait: Wait | None,
    more: Callable[[Matching, Path], Iterator[Check]] = no_more,
) -> Case:
    folder, _, run = spans.partition("/")
    return Case(
        name=name,
        stack="client, router, engines",
        version=version,
        spans=f"{folder}/spans/{run}",
        log=f"{folder}/client_requests.jsonl",
        runs=(run,),
        is_gateway=is_gateway,
        is_engine=_is_engine,
        tries=tries,
        wait=wait,
        more=more,
    )


SGLANG_RUN1 = _case(
    "sglang-run1",
    "sglang-router 0.3.2 (cache aware)",
    "sglang-router/run1-cache-aware",
    _is_smg,
    _engine_tries,
    None,
    _headers_are_no_token,
)
SGLANG_RUN2 = _case(
    "sglang-run2",
    "sglang-router 0.3.2 (queue)",
    "sglang-router/run2-rr-queue",
    _is_smg,
    _engine_tries,
    None,
    _headers_are_no_token,
)
SMG = _case(
    "smg",
    "smg 1.13.0",
    "sglang-router/run3-smg-1.13.0",
    _is_smg,
    _engine_tries,
    _wait(_is_smg, "router and its edge"),
)
PRODUCTION_STACK = _case(
    "production-stack",
    "vLLM production-stack a6c01db",
    "production-stack/run1-roundrobin",
    _is_router,
    _call_tries,
    _wait(_is_router, "engine"),
)
VLLM_ROUTER = _case(
    "vllm-router",
    "vllm-router 0.1.17",
    "vllm-router/run1-consistent-hash",
    _is_router,
    _call_tries,
    _wait(_is_router, "engine"),
)
