"""vLLM 0.32.0 behind a FastAPI gateway, all hops in one trace.

The gateway's event loop held the overload: requests waited between its POST and the engine's
arrival, and first tokens waited in it to be sent on. Two requests of one trace id are two.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.captures.case import CLIENT, ENGINE, Case, Wait, one_try
from bench.captures.checks import Check, Pair, median_within, within
from bench.captures.log import Sent
from bench.captures.matching import Found, Matching
from bench.captures.recorded import Group, Span

CLIENT_KIND = 3
SERVER_KIND = 2
SPAN_LONGER_S = 0.005  # a span outlasts the E2E it tells by up to 4 ms


def is_engine(span: Span) -> bool:
    return span.name == "llm_request"


def _is_gateway(span: Span) -> bool:
    return span.service == "gateway" and span.kind == SERVER_KIND


def _is_call_out(span: Span) -> bool:
    return span.service == "gateway" and span.kind == CLIENT_KIND


def _is_body_sent(span: Span) -> bool:
    return span.text("asgi.event.type") == "http.response.body"


def seconds(span: Span, clock: str) -> int:
    """One of vLLM's latencies in ns."""
    return round(span.number(f"gen_ai.latency.{clock}") * 1e9)


def engine_first_ns(engine: Span) -> int:
    """When vLLM's API server passed the first token on."""
    return engine.start_ns + seconds(engine, "time_to_first_token")


def _parts(group: Group, sent: Sent) -> Mapping[str, int] | None:
    engines, bodies = group.having(is_engine), group.having(_is_body_sent)
    if not engines or not bodies or sent.first_ns is None:
        return None
    gateway, call_out = group.having(_is_gateway)[0], group.having(_is_call_out)[0]
    engine = engines[0]
    sent_on, first = bodies[0].end_ns, engine_first_ns(engine)
    queue = seconds(engine, "time_in_queue")
    prefill = seconds(engine, "time_in_model_prefill")
    return {
        "client and its edge": gateway.start_ns - sent.sent_ns + sent.first_ns - sent_on,
        "gateway": call_out.start_ns - gateway.start_ns + sent_on - first,
        "gateway>engine": engine.start_ns - call_out.start_ns,
        "engine outside queue and prefill": first - engine.start_ns - queue - prefill,
        "queue": queue,
        "prefill": prefill,
    }


def engine_clocks(matching: Matching, _captures: Path) -> Iterator[Check]:
    """The engine's clocks are what its spans say in attributes, one span a choice."""
    held = [(key, row, group.having(is_engine)) for key, group, row in matching.all()]
    asked = [(key, row, engines) for key, row, engines in held if engines]
    first = [
        Pair(key, min(map(_ttft, engines)) / 1e9, row.seconds("ttft_engine_s"))
        for key, row, engines in asked
    ]
    yield within("TTFT at the engine", first, 0.001, 1.0, "s")
    e2e = [
        Pair(key, max(map(_e2e, engines)) / 1e9, row.seconds("e2e_engine_s"))
        for key, row, engines in asked
    ]
    yield within("E2E at the engine", e2e, SPAN_LONGER_S, 1.0, "s")
    queue = [
        Pair(key, seconds(engines[0], "time_in_queue") / 1e9, row.seconds("queue_s"))
        for key, row, engines in asked
        if len(engines) == 1
    ]
    yield within("time in the engine's queue", queue, 0.001, 1.0, "s")


def _ttft(engine: Span) -> int:
    return seconds(engine, "time_to_first_token")


def _e2e(engine: Span) -> int:
    return seconds(engine, "e2e")


def _more(matching: Matching, captures: Path) -> Iterator[Check]:
    yield from engine_clocks(matching, captures)
    streamed = [f for f in matching.found if f.sent.first_ns is not None]
    yield within("TTFT at the gateway", _gateway_ttft(streamed), 0.002, 0.99, "s")
    light = [f for f in streamed if f.sent.phase == "light" and f.sent.max_gap_ns is not None]
    gaps = [
        Pair(f.sent.key, (f.sent.max_gap_ns or 0) / 1e9, f.row.seconds("itl_max_s")) for f in light
    ]
    yield median_within("light: longest gap between tokens, median", gaps, 0.005)
    yield median_within("light: decode after the first token, median", _decode(light), 0.005)


def _gateway_ttft(found: list[Found]) -> Iterator[Pair]:
    for f in found:
        if bodies := f.group.having(_is_body_sent):
            start = f.group.having(_is_gateway)[0].start_ns
            want = (bodies[0].end_ns - start) / 1e9
            yield Pair(f.sent.key, want, f.row.seconds("ttft_gateway_s"))


def _decode(found: list[Found]) -> Iterator[Pair]:
    """The engine decodes on from the client's first token to its own last one."""
    for f in found:
        engine = f.group.having(is_engine)[0]
        last = engine.start_ns + seconds(engine, "e2e")
        want = max(last - (f.sent.first_ns or 0), 0) / 1e9
        yield Pair(f.sent.key, want, f.row.seconds("decode_decode_s"))


_REST = tuple(hop for hop in ENGINE if hop not in ("queue", "prefill"))

RUN1 = Case(
    name="vllm-run1",
    stack="client, FastAPI gateway, vLLM",
    version="vLLM 0.32.0",
    spans="vllm-0.32.0/spans/run1-http",
    log="vllm-0.32.0/client_requests.jsonl",
    runs=("trial", "run1-http"),
    is_gateway=_is_gateway,
    is_engine=is_engine,
    tries=one_try,
    wait=Wait(
        phase="overload",
        parts={
            "client and its edge": CLIENT,
            "gateway": ("gateway",),
            "gateway>engine": ("gateway>engine",),
            "engine outside queue and prefill": _REST,
            "queue": ("queue",),
            "prefill": ("prefill",),
        },
        owner=("gateway>engine",),
        truth=_parts,
    ),
    more=_more,
)
