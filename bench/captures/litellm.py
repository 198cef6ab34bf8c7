"""OpenAI SDK, LiteLLM, vLLM: three siblings under the caller's POST, joined by hop and by id.

Behind LiteLLM the caller's httpx span ends with the first chunk, so it is the client's first
token: early by 1.6 to 5 ms at the median, by more than 6 ms for one request in seven. An
unstreamed or unpropagated request has none. LiteLLM may try more than once unasked;
what the client gave up looks healthy in every span below it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.captures.case import CLIENT, ENGINE, GATEWAY, TO_ENGINE, Case, Wait
from bench.captures.checks import Check, Pair, median_within, within
from bench.captures.log import Sent
from bench.captures.matching import Matching
from bench.captures.recorded import Group, Span
from bench.captures.vllm import (
    SERVER_KIND,
    engine_clocks,
    engine_first_ns,
    is_engine,
    seconds,
)


def _is_gateway(span: Span) -> bool:
    chat = not span.name.startswith("GET ")
    return span.service == "litellm-proxy" and span.kind == SERVER_KIND and chat


def _is_callers_post(span: Span) -> bool:
    return span.service == "ask-app" and span.name == "POST"


def _is_callers_chat(span: Span) -> bool:
    return span.service == "ask-app" and span.name.startswith("chat ")


def _tells_first_token(group: Group, _sent: Sent) -> bool:
    return bool(group.having(_is_callers_post)) and bool(group.having(_is_callers_chat))


def _more(matching: Matching, captures: Path) -> Iterator[Check]:
    yield from engine_clocks(matching, captures)
    pairs = [
        Pair(f.sent.key, _told_ttft_s(f.group), f.row.seconds("ttft_client_s"))
        for f in matching.found
        if f.sent.first_ns is not None and _tells_first_token(f.group, f.sent)
    ]
    yield within("TTFT at the client is its POST's end", pairs, 0.001, 1.0, "s")
    yield median_within("TTFT at the client, median", _by_log(matching), 0.006)


def _told_ttft_s(group: Group) -> float:
    """As far as the client's own spans tell: from the call's start to the POST's end."""
    chat, post = group.having(_is_callers_chat)[0], group.having(_is_callers_post)[-1]
    return (post.end_ns - chat.start_ns) / 1e9


def _by_log(matching: Matching) -> Iterator[Pair]:
    for f in matching.found:
        if f.sent.ttft_s is not None and _tells_first_token(f.group, f.sent):
            yield Pair(f.sent.key, f.sent.ttft_s, f.row.seconds("ttft_client_s"))


def _tries(group: Group) -> frozenset[int]:
    told = group.sent[0].tries if group.sent else None
    return frozenset({told or 1})


def _parts(group: Group, sent: Sent) -> Mapping[str, int] | None:
    engines, posts = group.having(is_engine), group.having(_is_callers_post)
    if not engines or not posts or sent.first_ns is None:
        return None
    engine, first = engines[-1], posts[-1].end_ns
    queue = seconds(engine, "time_in_queue")
    return {
        "before and behind the engine": (
            engine.start_ns - sent.sent_ns + first - engine_first_ns(engine)
        ),
        "engine outside the queue": seconds(engine, "time_to_first_token") - queue,
        "queue": queue,
    }


def _case(name: str, folder: str, tracer: str, phase: str, owner: tuple[str, ...]) -> Case:
    return Case(
        name=name,
        stack="OpenAI SDK, LiteLLM, vLLM",
        version=f"LiteLLM 1.108.7 ({tracer} tracer)",
        spans=f"{folder}/spans",
        log=f"{folder}/client_requests.jsonl",
        runs=(),
        is_gateway=_is_gateway,
        is_engine=is_engine,
        tries=_tries,
        wait=Wait(
            phase=phase,
            parts={
                "before and behind the engine": (*CLIENT, *GATEWAY, *TO_ENGINE),
                "engine outside the queue": tuple(hop for hop in ENGINE if hop != "queue"),
                "queue": ("queue",),
            },
            owner=owner,
            truth=_parts,
        ),
        ttft_tolerance_s=0.006,
        ttft_share=0.85,
        ttft_known=_tells_first_token,
        e2e_tolerance_s=0.006,
        own_outcome=False,
        more=_more,
    )


OUTSIDE = ("before and behind the engine",)
V1 = _case("litellm", "litellm-vllm", "default", "overload", OUTSIDE)
V2 = _case("litellm-otel-v2", "litellm-vllm/otel-v2", "opt-in", "light", OUTSIDE)
