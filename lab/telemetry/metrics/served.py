"""What an engine's histograms count of requests: those that it served, when they ended."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.records import Attempts, Outcome
from tailburn.lab.telemetry.metrics.boards import first_of, picked, seconds
from tailburn.lab.telemetry.metrics.rows import ratio
from tailburn.lab.telemetry.metrics.tally import Seen

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

BYTES_A_TOKEN: Final = 4.2
"""Of text; and an SSE event holds so much more."""
EVENT_BYTES: Final = 250.0


def over_http(a: Attempts) -> Iterator[tuple[str, Seen]]:
    """Requests over HTTP as the engine's web server counts them, when they end."""
    a = picked(a, (a.engine_end >= 0) & (a.replica >= 0))
    failed = (a.engine_first < 0) & (a.outcome == Outcome.ERROR)
    took = seconds(a.engine_end - a.engine_in)
    yield "http_s", Seen.of(a.engine_end, a.replica, took)
    yield "http_2xx", Seen.of(a.engine_end[~failed], a.replica[~failed], took[~failed])
    yield "http_5xx", Seen.of(a.engine_end[failed], a.replica[failed], took[failed])
    asked = a.prompt_tokens * BYTES_A_TOKEN + 400.0
    yield "http_request_bytes", Seen.of(a.engine_end, a.replica, np.round(asked))
    sent = a.output_done * (BYTES_A_TOKEN + a.streamed * EVENT_BYTES)
    yield "http_response_bytes", Seen.of(a.engine_end, a.replica, np.round(sent))


def served(a: Attempts, split: "NDArray[np.bool_]", kv_bytes: F64) -> Iterator[tuple[str, Seen]]:
    """Requests that an engine brought to their end, where they were decoded."""
    began = np.where(split & (a.kv_transfer_start >= 0), a.kv_transfer_start, a.engine_in)
    admitted = np.where(split & (a.kv_transfer_end >= 0), a.kv_transfer_end, a.scheduled)
    queued = np.where(split, began, first_of(a.queued, a.tokenize_end, began))
    core_first = first_of(np.where(split, a.engine_first, a.prefill_end), a.engine_first)
    admitted = np.clip(first_of(admitted, core_first), queued, np.maximum(core_first, queued))
    decode = np.maximum(a.engine_last - a.engine_first, 0)
    prefill = np.maximum(core_first - admitted, 0)

    def at_end(value: "NDArray[np.number]") -> Seen:
        return Seen.of(a.engine_last, a.replica, np.asarray(value, np.float64))

    yield "ttft_s", Seen.of(a.engine_first, a.replica, seconds(a.engine_first - began))
    streamed = a.streamed > 0
    for name, which in (("ttft_streamed_s", streamed), ("ttft_unary_s", ~streamed)):
        ttft = seconds(a.engine_first - began)[which]
        yield name, Seen.of(a.engine_first[which], a.replica[which], ttft)
        e2e = seconds(a.engine_last - began)[which]
        yield name.replace("ttft", "e2e"), Seen.of(a.engine_last[which], a.replica[which], e2e)
    yield "queue_s", at_end(seconds(admitted - queued))
    yield "prefill_s", at_end(seconds(prefill))
    yield "decode_s", at_end(seconds(decode))
    yield "inference_s", at_end(seconds(prefill + decode))
    yield "e2e_s", at_end(seconds(a.engine_last - began))
    yield "tokenize_s", at_end(seconds(a.tokenize_end - first_of(a.tokenize_start, a.tokenize_end)))
    yield "dispatch_s", at_end(seconds(queued - began))
    # One-token answers count as 0 s, as in vLLM.
    yield "tpot_s", at_end(seconds(decode) / np.maximum(a.output_done - 1, 1) * (a.output_done > 1))
    yield "itl_s", _gaps(a, decode, a.decode_steps)
    yield "itl_token_s", _gaps(a, decode, a.output_done)
    yield "prompt", at_end(a.prompt_tokens)
    yield "output", at_end(a.output_done)
    yield "max_tokens", at_end(a.max_tokens)
    yield "cached", at_end(a.cached_tokens)
    yield "computed", at_end(np.where(split, 0, a.prompt_tokens - a.cached_tokens))
    yield "preempted", at_end(a.preemptions)
    yield "one", at_end(np.ones(len(a)))
    cut = a.output_done >= a.max_tokens
    for reason, which in (("length", cut), ("stop", ~cut)):
        yield (
            reason,
            Seen.of(
                a.engine_last[which], a.replica[which], a.output_done[which].astype(np.float64)
            ),
        )
    moved = split & (a.kv_transfer_end >= 0) & (a.kv_transfer_start >= 0)
    took = seconds(a.kv_transfer_end - a.kv_transfer_start)[moved]
    yield "transfer_s", Seen.of(a.kv_transfer_end[moved], a.replica[moved], took)
    tokens = a.prompt_tokens[moved].astype(np.float64)
    for name, each in (("bytes", kv_bytes[a.replica[moved]]), ("blocks", 1.0 / 16.0)):
        yield f"transfer_{name}", Seen.of(a.kv_transfer_end[moved], a.replica[moved], tokens * each)
    yield "post_s", Seen.of(a.kv_transfer_end[moved], a.replica[moved], took * 0.02)
    loaded = (a.kv_load_end >= 0) & (a.kv_load_start >= 0)
    took = seconds(a.kv_load_end - a.kv_load_start)[loaded]
    yield "load_s", Seen.of(a.kv_load_end[loaded], a.replica[loaded], took)
    size = a.cached_tokens[loaded] * kv_bytes[a.replica[loaded]]
    yield "load_bytes", Seen.of(a.kv_load_end[loaded], a.replica[loaded], size)


def _gaps(a: Attempts, decode_ns: I64, outputs: "NDArray[np.integer]") -> Seen:
    """Gaps between outputs: the instants where they are known, else the longest and the mean
    of the rest. Their sum is the decode time either way."""
    gaps = np.maximum(outputs - 1, 0).astype(np.int64)
    some = (gaps > 0) & (decode_ns > 0)
    at, replica, gaps, total = a.engine_last[some], a.replica[some], gaps[some], decode_ns[some]
    longest = np.clip(a.itl_max_ns[some], total // gaps, total)
    rest = gaps - 1
    mean = ratio(total - longest, rest)
    return Seen.of(
        np.concatenate([at, at]),
        np.concatenate([replica, replica]),
        np.concatenate([np.where(rest > 0, longest, total), mean]) / 1e9,
        np.concatenate([np.ones(len(at)), rest.astype(np.float64)]),
    )


def prefilled(a: Attempts) -> Iterator[tuple[str, Seen]]:
    """Split requests where they were prefilled: one token each."""
    queued = first_of(a.queued, a.engine_in)
    admitted = np.clip(
        first_of(a.scheduled, a.engine_in), queued, np.maximum(a.prefill_end, queued)
    )
    e2e = seconds(a.prefill_end - a.engine_in)
    prefill = seconds(a.prefill_end - admitted)
    one = np.ones(len(a))
    for name, value in (
        ("ttft_s", e2e),
        ("e2e_s", e2e),
        ("ttft_streamed_s", e2e),
        ("e2e_streamed_s", e2e),
        ("queue_s", seconds(admitted - queued)),
        ("prefill_s", prefill),
        ("inference_s", prefill),
        ("decode_s", one * 0.0),
        ("tpot_s", one * 0.0),
        ("tokenize_s", seconds(a.tokenize_end - first_of(a.tokenize_start, a.tokenize_end))),
        ("prompt", a.prompt_tokens.astype(np.float64)),
        ("cached", a.cached_tokens.astype(np.float64)),
        ("computed", (a.prompt_tokens - a.cached_tokens).astype(np.float64)),
        ("output", one),
        ("max_tokens", one),
        ("one", one),
        ("preempted", one * 0.0),
        ("length", one),
    ):
        yield name, Seen.of(a.prefill_end, a.prefill_replica, value)
