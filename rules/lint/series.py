"""Which histogram of an engine measures a clock, and in which unit."""

from collections.abc import Mapping
from typing import Final

from tailburn.engine.slo.model import Clock, EngineSource
from tailburn.rules.promql import selector

_SECOND: Final = 1.0
_MILLISECOND: Final = 0.001

HISTOGRAMS: Final[Mapping[str, Mapping[Clock, tuple[str, float]]]] = {
    "vllm": {
        Clock.TTFT: ("vllm:time_to_first_token_seconds", _SECOND),
        Clock.TPOT: ("vllm:request_time_per_output_token_seconds", _SECOND),
        Clock.ITL: ("vllm:inter_token_latency_seconds", _SECOND),
        Clock.QUEUE: ("vllm:request_queue_time_seconds", _SECOND),
        Clock.E2E: ("vllm:e2e_request_latency_seconds", _SECOND),
    },
    "sglang": {
        Clock.TTFT: ("sglang:time_to_first_token_seconds", _SECOND),
        Clock.TPOT: ("sglang:request_time_per_output_token_seconds", _SECOND),
        Clock.ITL: ("sglang:inter_token_latency_seconds", _SECOND),
        Clock.QUEUE: ("sglang:queue_time_seconds", _SECOND),
        Clock.E2E: ("sglang:e2e_request_latency_seconds", _SECOND),
    },
    "trtllm": {
        Clock.TTFT: ("trtllm_time_to_first_token_seconds", _SECOND),
        Clock.TPOT: ("trtllm_time_per_output_token_seconds", _SECOND),
        Clock.QUEUE: ("trtllm_request_queue_time_seconds", _SECOND),
        Clock.E2E: ("trtllm_e2e_request_latency_seconds", _SECOND),
    },
    "triton": {Clock.TTFT: ("nv_inference_first_response_histogram_ms", _MILLISECOND)},
    "dynamo": {
        Clock.TTFT: ("dynamo_frontend_time_to_first_token_seconds", _SECOND),
        Clock.ITL: ("dynamo_frontend_inter_token_latency_seconds", _SECOND),
        Clock.E2E: ("dynamo_frontend_request_duration_seconds", _SECOND),
    },
}


def histogram_of(source: EngineSource, clock: Clock) -> tuple[str, float] | None:
    """The name without `_bucket`, and the seconds of one unit; None: it measures no such clock."""
    return HISTOGRAMS[source.engine].get(clock)


def matchers_of(source: EngineSource) -> str:
    """`{job="vllm"}`, or nothing."""
    return selector("", source.match)
