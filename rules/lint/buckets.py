"""The bounds of the engines' histograms: those on a live Prometheus, or else as shipped."""

from collections.abc import Mapping
from typing import Final

_VLLM_TTFT: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10),
    *(20, 40, 80, 160, 640, 2560),
)
_VLLM_TPOT: Final = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10),
    *(20, 40, 80),
)
_VLLM_E2E: Final = (
    *(0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960),
    *(1920, 7680),
)
_SGLANG_ITL: Final = (
    *(0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08),
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8),
)

SHIPPED: Final[Mapping[str, tuple[float, ...]]] = {
    "vllm:time_to_first_token_seconds": _VLLM_TTFT,
    "vllm:inter_token_latency_seconds": _VLLM_TPOT,
    "vllm:request_time_per_output_token_seconds": _VLLM_TPOT,
    "vllm:e2e_request_latency_seconds": _VLLM_E2E,
    "vllm:request_queue_time_seconds": _VLLM_E2E,
    "sglang:time_to_first_token_seconds": (
        *(0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400),
    ),
    "sglang:inter_token_latency_seconds": _SGLANG_ITL,
    "sglang:request_time_per_output_token_seconds": _SGLANG_ITL,
    "sglang:e2e_request_latency_seconds": (
        *(0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600),
        *(1200, 1800, 2400),
    ),
    "trtllm_time_to_first_token_seconds": _VLLM_TTFT,
    "trtllm_time_per_output_token_seconds": _VLLM_TPOT,
    "trtllm_e2e_request_latency_seconds": _VLLM_E2E,
    "trtllm_request_queue_time_seconds": _VLLM_E2E,
    "nv_inference_first_response_histogram_ms": (0.1, 0.5, 2, 5),
    "dynamo_frontend_time_to_first_token_seconds": (
        *(0.0022, 0.0047, 0.01, 0.022, 0.047, 0.1, 0.22, 0.47, 1, 2.2, 4.7, 10, 22, 48, 100),
        *(220, 480),
    ),
    "dynamo_frontend_inter_token_latency_seconds": (
        *(0.0019, 0.0035, 0.0067, 0.013, 0.024, 0.045, 0.084, 0.16, 0.3, 0.56, 1.1, 2),
    ),
    "dynamo_frontend_request_duration_seconds": (2, 4, 8, 16, 32, 64, 130, 260, 510),
}
"""Bounds in seconds, whatever the unit of the series: vLLM 0.32, SGLang 0.5.23, TensorRT-LLM,
Triton 26 and Dynamo 1.6 as their sources have them. All can be changed by the operator."""
