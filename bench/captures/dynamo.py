"""Dynamo 1.6.1: frontend with a KV router, mocked workers, aggregated and disaggregated.

A caller's traceparent with flags 03 is refused and the trace is cut; the response id that the
client saw is the frontend's request id behind `chatcmpl-`. Only the frontend tells a first
token. Disaggregated, the decode worker's stay starts while prefill still runs; how long the
prefill worker queued is not told.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.captures.case import CLIENT, ENGINE, GATEWAY, TO_ENGINE, Case, SpanTest, Wait, no_more
from bench.captures.checks import Check, Pair, median_within
from bench.captures.log import Sent
from bench.captures.matching import Matching
from bench.captures.recorded import Group, Span


def _is_frontend(span: Span) -> bool:
    return span.name == "http-request"


def _is_worker(span: Span) -> bool:
    return span.name == "handle_payload" and span.text("endpoint") == "generate"


def _is_route(span: Span) -> bool:
    return span.name == "kv_router.route_request"


def _is_select(span: Span) -> bool:
    return span.name == "kv_router.select_worker"


def _tries(group: Group) -> frozenset[int]:
    """Migrations are tries; a prefill is none. A try that found no worker may count or not."""
    routes = [span for span in group.having(_is_route) if span.text("phase") != "Prefill"]
    selects = group.having(_is_select)
    refused = len(selects) > len(group.having(_is_route))
    return frozenset({max(len(routes), 1), max(len(routes), 1) + refused})


def _parts(group: Group, sent: Sent) -> Mapping[str, int] | None:
    """Frontend, router and workers, where one worker of each kind served the request."""
    frontends, workers = group.having(_is_frontend), group.having(_is_worker)
    routes = group.having(_is_route)
    if sent.first_ns is None or not frontends or not workers or not routes:
        return None
    frontend = frontends[0]
    if "ttft_ms" not in frontend.attributes:
        return None
    first = frontend.start_ns + round(frontend.number("ttft_ms") * 1e6)
    return {
        "client and its edge": frontend.start_ns - sent.sent_ns + sent.first_ns - first,
        "frontend and router": routes[0].start_ns - frontend.start_ns,
        "worker and its edge": first - routes[0].start_ns,
    }


def _held_by(hop: str, stays: SpanTest, what: str) -> Callable[[Matching, Path], Iterator[Check]]:
    """The hop holds the whole stay of the first span that passes `stays`, at the median."""

    def more(matching: Matching, _captures: Path) -> Iterator[Check]:
        pairs = []
        for f in matching.found:
            spans = f.group.having(stays)
            if f.sent.phase == "overload" and spans:
                stay = (spans[0].end_ns - spans[0].start_ns) / 1e9
                pairs.append(Pair(f.sent.key, stay, f.row.ttft_in((hop,))))
        yield median_within(f"overload: {what} is in hop {hop}", pairs, 0.005)

    return more


def _case(
    name: str,
    run: str,
    mode: str,
    owner: str,
    more: Callable[[Matching, Path], Iterator[Check]] = no_more,
) -> Case:
    return Case(
        name=name,
        stack="client, Dynamo frontend and router, mocked workers",
        version=f"Dynamo 1.6.1 ({mode})",
        spans=f"dynamo-mocker/spans/{run}",
        log="dynamo-mocker/client_requests.jsonl",
        runs=(run,),
        is_gateway=_is_frontend,
        is_engine=_is_worker,
        tries=_tries,
        wait=Wait(
            phase="overload",
            parts={
                "client and its edge": CLIENT,
                "frontend and router": GATEWAY,
                "worker and its edge": (*TO_ENGINE, *ENGINE),
            },
            owner=(owner,),
            truth=_parts,
        ),
        more=more,
    )


WORKER = "worker and its edge"
ROUTER_QUEUE = _held_by("router", _is_select, "the choice of a worker")

RUN1 = _case("dynamo-run1", "run1-agg-kv", "aggregated", WORKER)
RUN2 = _case("dynamo-run2", "run2-agg-queue", "router queue", "frontend and router", ROUTER_QUEUE)
RUN3 = _case("dynamo-run3", "run3-disagg-kv", "disaggregated", WORKER)
