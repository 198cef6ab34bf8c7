"""What engines show of their queue and their KV cache, a series for each replica.

As the sources of vLLM 0.32, SGLang 0.5.23, TensorRT-LLM's trtllm-serve, Triton 26 and Dynamo 1.6
have them; older names follow the new ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tailburn.engine.slo.model import EngineSource, Slo
from tailburn.rules.promql import by
from tailburn.rules.sources import engine
from tailburn.rules.sources.engines import labelled_by


@dataclass(frozen=True)
class Gauges:
    """Series of one engine, each as its names, newest first, and the matchers it needs."""

    waiting: tuple[str, ...]
    kv_ratio: tuple[str, ...]
    waiting_matchers: str = ""
    kv_matchers: str = ""


GAUGES: Final[Mapping[str, Gauges]] = {
    "vllm": Gauges(
        ("vllm:num_requests_waiting",), ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
    ),
    "sglang": Gauges(("sglang:num_queue_reqs",), ("sglang:token_usage",)),
    "trtllm": Gauges(("trtllm_num_requests_waiting",), ("trtllm_kv_cache_utilization",)),
    "triton": Gauges(
        ("nv_trt_llm_request_metrics",),
        ("nv_trt_llm_kv_cache_block_metrics",),
        'request_type="waiting"',
        'kv_cache_block_type="fraction"',
    ),
    "dynamo": Gauges(
        ("dynamo_frontend_queued_requests",),
        (
            "dynamo_component_gpu_cache_usage_percent",
            "dynamo_component_kvstats_gpu_cache_usage_percent",
        ),
    ),
}


@dataclass(frozen=True)
class Replicas:
    """The replicas of an SLO, as their engine's gauges show them."""

    slo: Slo
    source: EngineSource

    @property
    def count(self) -> str:
        """How many there are: those that show a KV cache."""
        each = engine.summed(self.slo, self.source, self._kv, ("replica",))
        return f"count {by(self.slo.by)} ({each})"

    @property
    def waiting(self) -> str:
        """Requests in the queue of each, as a mean over the replicas and two minutes."""
        names, matchers = self._gauges.waiting, self._gauges.waiting_matchers
        return f"{self._sum(self._any(names, matchers))}\n/\n{self.count}"

    @property
    def kv_ratio(self) -> str:
        """The share of the KV cache that is used, as a mean over the replicas."""
        return f"{self._sum(self._kv)}\n/\n{self._sum(f'{self._kv} * 0 + 1')}"

    @property
    def _gauges(self) -> Gauges:
        return GAUGES[self.source.engine]

    @property
    def _kv(self) -> str:
        return self._any(self._gauges.kv_ratio, self._gauges.kv_matchers)

    def _any(self, names: tuple[str, ...], matchers: str) -> str:
        selected = [engine.selected(self.source, name, matchers) for name in names]
        each = " or ".join(f"avg_over_time({series}[2m])" for series in selected)
        return f"({each})" if len(selected) > 1 else each

    def _sum(self, expr: str) -> str:
        return engine.summed(self.slo, self.source, expr)


def can_tell_apart(slo: Slo, source: EngineSource) -> bool:
    """Whether the engine's series carry what the SLO has a budget for each value of."""
    return all(d == "model" or labelled_by(source, d) in source.match for d in slo.by)
