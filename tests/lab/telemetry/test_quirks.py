"""What stacks do that no convention says: seen running, and so told by the lab."""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from tailburn.lab.records import Outcome
from tailburn.lab.telemetry.spans import bodies, trace_ids
from tests.lab.telemetry.decoded import Span, spans_of
from tests.lab.telemetry.making import MS, S, attempts, wiring

EPOCH = 1_764_600_000 * S


def _by_request(found: list[Span], requests: np.ndarray) -> list[list[Span]]:
    traces = defaultdict(list)
    for s in found:
        traces[s.trace.hex()].append(s)
    return [traces[trace] for trace in trace_ids(requests, 0)]


def test_an_aborted_request_leaves_no_span_of_vllm_and_a_healthy_gateway() -> None:
    told = attempts(400)
    gone = np.flatnonzero(told.outcome == Outcome.CANCELLED)
    assert len(gone) > 5
    for spans in _by_request(spans_of(bodies(told, wiring())), told.request[gone]):
        names = [s.name for s in spans]
        assert "llm_request" not in names
        (server,) = [s for s in spans if s.kind == 2]
        assert (server.status, server.attributes["http.status_code"]) == (0, 200)


def test_openai_v2_may_never_end_the_span_of_a_cancelled_call() -> None:
    told = attempts(800, seed=2)
    gone = told.request[told.outcome == Outcome.CANCELLED]
    found = _by_request(spans_of(bodies(told, wiring("openai"))), gone)
    orphans = sum(not any(s.name.startswith("chat ") for s in spans) for spans in found)
    assert 0 < orphans < len(gone)


def test_httpx_spans_end_at_headers_which_litellm_sends_with_the_first_chunk() -> None:
    told = attempts(200, failing=False)
    streams = np.flatnonzero(told.streamed == 1)
    for gateway, early in (("fastapi", True), ("litellm", False)):
        found = _by_request(
            spans_of(bodies(told, wiring("openai", gateway), epoch_unix_ns=EPOCH)),
            told.request[streams],
        )
        posts = [s for spans in found for s in spans if s.name == "POST" and s.service == "ask-app"]
        before = EPOCH + told.client_first[streams] - np.asarray([s.end for s in posts])
        assert before.min() >= 0
        assert np.median(before) > 50 * MS if early else np.median(before) < 5 * MS


def test_behind_litellm_engine_and_both_servers_are_siblings() -> None:
    told = attempts(50, failing=False)
    for spans in _by_request(spans_of(bodies(told, wiring("openai", "litellm"))), told.request):
        (post,) = [s for s in spans if s.name == "POST"]
        below = sorted(s.name for s in spans if s.parent == post.id)
        assert below == [
            "POST /v1/chat/completions",
            "Received Proxy Server Request",
            "llm_request",
        ]


def test_litellm_as_it_comes_cuts_the_trace_and_ids_join_it() -> None:
    told = attempts(50, failing=False)
    found = spans_of(bodies(told, wiring("openai", "litellm", litellm_forwards=False)))
    engines = {s.attributes["gen_ai.request.id"]: s for s in found if s.name == "llm_request"}
    assert all(s.parent == b"" for s in engines.values())
    gateways = [s for s in found if s.name == "litellm_request"]
    assert {s.attributes["gen_ai.response.id"] for s in gateways} == set(engines)
    assert not {s.trace for s in gateways} & {s.trace for s in engines.values()}


def test_an_aborted_stream_has_more_tokens_at_litellm_than_it_may() -> None:
    told = attempts(400)
    gone = np.flatnonzero(told.outcome == Outcome.CANCELLED)
    found = spans_of(bodies(told, wiring("openai", "litellm")))
    for i, spans in zip(gone, _by_request(found, told.request[gone]), strict=True):
        (request,) = [s for s in spans if s.name == "litellm_request"]
        assert request.status == 1
        assert request.attributes["gen_ai.usage.output_tokens"] > told.output_done[i]


def test_trace_flags_03_make_dynamo_and_vllm_router_begin_a_trace_of_their_own() -> None:
    told = attempts(60, router=True, failing=False)
    for chain in (("app", "dynamo", "none", "dynamo"), ("app", "none", "vllm-router", "vllm")):
        for flags, joined in ((3, 0), (1, 60)):
            found = spans_of(bodies(told, wiring(*chain, trace_flags=flags)))
            calls = {s.trace for s in found if s.name.startswith("chat ")}
            servers = [s for s in found if s.name == "http-request" or s.scope[0] == "vllm-router"]
            assert len(calls & {s.trace for s in servers}) == joined


def test_sglang_router_ignores_its_caller_and_ends_late_on_new_connections() -> None:
    told = attempts(300, router=True, failing=False)
    found = spans_of(bodies(told, wiring("app", "none", "sglang-router"), epoch_unix_ns=EPOCH))
    routers = [s for s in found if s.scope[0] == "smg"]
    calls = {s.trace for s in found if s.name.startswith("chat ")}
    assert not calls & {s.trace for s in routers}
    assert all(s.parent == b"" for s in routers)
    ends = EPOCH + np.max(told.router_end)
    by_start = sorted(routers, key=lambda s: s.start)
    order = np.argsort(told.router_in)
    late = np.asarray([s.end for s in by_start]) - EPOCH - told.router_end[order]
    assert 0.15 < np.mean(late > S / 2) < 0.3
    assert late.max() < 59 * S
    assert ends > EPOCH


def test_production_stack_never_tells_its_root_of_a_cancel() -> None:
    told = attempts(400, router=True)
    gone = told.request[told.outcome == Outcome.CANCELLED]
    found = spans_of(bodies(told, wiring("app", "none", "production-stack")))
    for spans in _by_request(found, gone):
        names = [s.name for s in spans]
        assert "process_request" in names
        assert "router /v1/chat/completions" not in names


def test_a_split_request_at_dynamo_decodes_from_1_ms_after_its_prefill_began() -> None:
    told = attempts(40, router=True, split=True, failing=False)
    found = spans_of(bodies(told, wiring("app", "dynamo", "none", "dynamo", trace_flags=1)))
    for spans in _by_request(found, told.request):
        calls = {s.attributes["phase"]: s for s in spans if s.name.endswith("route_request")}
        assert set(calls) == {"Prefill", "Decode"}
        assert MS < calls["Decode"].start - calls["Prefill"].start < 2 * MS
        assert calls["Decode"].end > calls["Prefill"].end
        works = {s.parent: s for s in spans if s.name == "handle_payload"}
        assert set(works) == {s.id for s in calls.values()}


def test_sglang_s_own_traces_have_ids_of_64_bits() -> None:
    told = attempts(20, failing=False)
    found = spans_of(bodies(told, wiring("none", "none", "none", "sglang")))
    assert {s.trace[:8] for s in found} == {bytes(8)}
    assert len({s.trace for s in found}) == 20


def test_lmcache_is_joined_by_the_engine_s_request_id_alone() -> None:
    told = attempts(30, cache=True, failing=False)
    wired = wiring()
    places = tuple(replace(engine, lmcache=True) for engine in wired.engines)
    found = spans_of(bodies(told, replace(wired, engines=places)))
    loads = [s for s in found if s.name == "mp.retrieve"]
    engines = {s.attributes["gen_ai.request.id"]: s for s in found if s.name == "llm_request"}
    assert {s.attributes["session_id"] for s in loads} == set(engines)
    assert not {s.trace for s in loads} & {s.trace for s in engines.values()}
