"""What the engines expose: which series measure a clock, count requests and show a queue.

As the sources of vLLM 0.32, SGLang 0.5.23, TensorRT-LLM's trtllm-serve, Triton 26 and Dynamo 1.6
have them. A clock that an engine does not measure is not there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tailburn.engine.slo.model import Clock, EngineSource

SECOND: Final = 1.0
MILLISECOND: Final = 0.001


@dataclass(frozen=True)
class Engine:
    """One engine's series. Selections are without the user's own matchers."""

    vantage: str  # where its clocks are measured
    model_label: str
    histograms: Mapping[Clock, str]  # without `_bucket`
    requests: str  # counter of requests that ended; failed ones are in it, or in `failed` only
    failed: str
    failed_matchers: str  # which of them are bad; what the client gave up is not
    failed_in_requests: bool
    in_flight: tuple[str, ...]  # gauges: requests waiting and running
    progress: str  # counter that moves as long as anything is computed
    unit_s: float = SECOND
    matchers: Mapping[Clock, str] = field(default_factory=dict)  # that a histogram needs


ENGINES: Final[Mapping[str, Engine]] = {
    "vllm": Engine(
        vantage="engine",
        model_label="model_name",
        histograms={
            Clock.TTFT: "vllm:time_to_first_token_seconds",
            Clock.TPOT: "vllm:request_time_per_output_token_seconds",
            Clock.ITL: "vllm:inter_token_latency_seconds",
            Clock.QUEUE: "vllm:request_queue_time_seconds",
            Clock.E2E: "vllm:e2e_request_latency_seconds",
        },
        requests="vllm:request_success_total",
        failed="vllm:request_success_total",
        failed_matchers='finished_reason="error"',
        failed_in_requests=True,
        in_flight=("vllm:num_requests_waiting", "vllm:num_requests_running"),
        progress="vllm:generation_tokens_total",
    ),
    "sglang": Engine(
        vantage="engine",
        model_label="model_name",
        histograms={
            Clock.TTFT: "sglang:time_to_first_token_seconds",
            Clock.TPOT: "sglang:request_time_per_output_token_seconds",
            Clock.ITL: "sglang:inter_token_latency_seconds",
            Clock.QUEUE: "sglang:queue_time_seconds",
            Clock.E2E: "sglang:e2e_request_latency_seconds",
        },
        requests="sglang:num_requests_total",
        failed="sglang:num_aborted_requests_total",
        failed_matchers="",
        failed_in_requests=True,
        in_flight=("sglang:num_queue_reqs", "sglang:num_running_reqs"),
        progress="sglang:generation_tokens_total",
        matchers={Clock.TTFT: 'is_streaming!="false"'},  # the label is missing in old releases
    ),
    "trtllm": Engine(
        vantage="engine",
        model_label="model_name",
        histograms={
            Clock.TTFT: "trtllm_time_to_first_token_seconds",
            Clock.TPOT: "trtllm_time_per_output_token_seconds",
            Clock.QUEUE: "trtllm_request_queue_time_seconds",
            Clock.E2E: "trtllm_e2e_request_latency_seconds",
        },
        requests="trtllm_request_success_total",
        failed="trtllm_request_error_total",
        failed_matchers="",
        failed_in_requests=False,
        in_flight=("trtllm_num_requests_waiting", "trtllm_num_requests_running"),
        progress="trtllm_generation_tokens_total",
    ),
    "triton": Engine(
        vantage="engine",
        model_label="model",
        histograms={Clock.TTFT: "nv_inference_first_response_histogram_ms"},
        requests="nv_inference_request_success",
        failed="nv_inference_request_failure",
        failed_matchers='reason!="CANCELED"',
        failed_in_requests=False,
        in_flight=("nv_inference_pending_request_count",),
        progress="nv_inference_request_success",
        unit_s=MILLISECOND,
    ),
    "dynamo": Engine(
        vantage="gateway",
        model_label="model",
        histograms={
            Clock.TTFT: "dynamo_frontend_time_to_first_token_seconds",
            Clock.ITL: "dynamo_frontend_inter_token_latency_seconds",
            Clock.E2E: "dynamo_frontend_request_duration_seconds",
        },
        requests="dynamo_frontend_requests_total",
        failed="dynamo_frontend_requests_total",
        failed_matchers='status="error",error_type!~"(?i).*cancel.*"',
        failed_in_requests=True,
        in_flight=("dynamo_frontend_active_requests",),
        progress="dynamo_frontend_output_tokens_total",
    ),
}


def engine_of(source: EngineSource) -> Engine:
    """What the source's engine exposes."""
    return ENGINES[source.engine]


def labelled_by(source: EngineSource, dimension: str) -> str:
    """The label that holds a dimension; one that is not the model has its own name."""
    names = {"model": engine_of(source).model_label, "replica": "instance"}
    return names.get(dimension, dimension)
