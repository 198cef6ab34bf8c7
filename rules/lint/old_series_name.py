"""OLD_SERIES_NAME: names of older guides, which engines do not emit today."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tailburn.engine.slo.model import EngineSource, Place, QuerySource, Slo
from tailburn.rules.lint.finding import Finding, Severity, error
from tailburn.rules.lint.known import Known

CODE: Final = "OLD_SERIES_NAME"

REAL_NAMES: Final = {
    "vllm:ttft_seconds": "vllm:time_to_first_token_seconds",
    "vllm:tpot_seconds": "vllm:request_time_per_output_token_seconds",
    "vllm:itl_seconds": "vllm:inter_token_latency_seconds",
    "vllm:time_per_output_token_seconds": (
        "vllm:inter_token_latency_seconds (it never was TPOT: that is "
        "vllm:request_time_per_output_token_seconds)"
    ),
    "running_queue_size": "vllm:num_requests_running and vllm:num_requests_waiting",
    "vllm:running_queue_size": "vllm:num_requests_running and vllm:num_requests_waiting",
    "gpu_cache_usage_perc": "vllm:kv_cache_usage_perc (a ratio from 0 to 1)",
    "vllm:gpu_cache_usage_perc": "vllm:kv_cache_usage_perc (a ratio from 0 to 1)",
    "vllm:gpu_prefix_cache_queries_total": "vllm:prefix_cache_queries_total",
    "vllm:gpu_prefix_cache_hits_total": "vllm:prefix_cache_hits_total",
    "vllm:gpu_prefix_cache_hit_rate": (
        "vllm:prefix_cache_hits_total divided by vllm:prefix_cache_queries_total, as rates"
    ),
    "vllm:num_requests_swapped": "vllm:num_preemptions_total (nothing is swapped any more)",
    "vllm:time_in_queue_requests": "vllm:request_queue_time_seconds",
    "vllm:num_requests_success_total": "vllm:request_success_total",
    "vllm:avg_generation_throughput_toks_per_s": "rate(vllm:generation_tokens_total[5m])",
    "vllm:avg_prompt_throughput_toks_per_s": "rate(vllm:prompt_tokens_total[5m])",
    "vllm:spec_decode_draft_acceptance_rate": (
        "vllm:spec_decode_num_accepted_tokens_total divided by "
        "vllm:spec_decode_num_draft_tokens_total, as rates"
    ),
    "sglang:avg_request_queue_latency": "sglang:queue_time_seconds",
    "sglang:num_prefill_infight_queue_reqs": "sglang:num_prefill_inflight_queue_reqs",
    "sglang:num_retractions": "sglang:num_retracted_requests_total",
    "dynamo_frontend_inflight_requests": "dynamo_frontend_active_requests",
    "dynamo_component_kvstats_gpu_cache_usage_percent": (
        "dynamo_component_gpu_cache_usage_percent"
    ),
    "nccl_algorithm_bandwidth_gbs": "nccl_bus_bandwidth_gbs",
}
"""Each name with what engines emit in its place."""

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_REMEDY: Final = "write the name that the engine emits"


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """Names in the source: its matchers, or the user's own queries."""
    for field, text in _texts(slo):
        for name, real in _old_names(text):
            yield error(CODE, slo, field, name, f"is emitted as {real}", _REMEDY)


def in_text(file: str, lines: Sequence[str]) -> Iterator[Finding]:
    """Names in somebody's own rules or dashboards."""
    for number, line in enumerate(lines, 1):
        for name, real in _old_names(line):
            place, limit = Place(file, number), f"is emitted as {real}"
            yield Finding(place, Severity.ERROR, CODE, "", "query", name, limit, _REMEDY)


def _texts(slo: Slo) -> Iterator[tuple[str, str]]:
    if isinstance(slo.source, EngineSource):
        for label, value in slo.source.match.items():
            yield f"spec.source.match.{label}", value
    elif isinstance(slo.source, QuerySource):
        yield "spec.source.bad", slo.source.bad
        yield "spec.source.total", slo.source.total


def _old_names(text: str) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys(_NAME.findall(text)):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        if base in REAL_NAMES:
            yield name, REAL_NAMES[base]
