"""The naive cause finder: the series that stands out most, and what one would first think.

z-score of a window's mean beside mean and spread of the day before, of every hop and metric;
each signal's obvious cause, likeliest first. It never abstains.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from tailburn.lab.score.heard import Heard
from tailburn.lab.score.minutes import MINUTE_NS, mean_there
from tailburn.lab.score.naive import DAY
from tailburn.lab.score.outcome import Cause, Diagnosis, Evidence

FIRST_THOUGHT: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "hop:client": ("S27",), "client_ttft": ("S27", "S34"), "hop:client>gateway": ("S29",),
        "hop:gateway": ("S23", "S24"), "hop:gateway>router": ("S30",), "hop:router": ("S30",),
        "hop:router>engine": ("S30",), "hop:gateway>engine": ("S30",), "hop:retrieval": ("S31",),
        "hop:tokenizer": ("S21",), "hop:queue": ("S1",), "hop:prefill": ("S7",),
        "hop:decode": ("S8",), "hop:kv_transfer": ("S17",), "kv_transfer_time": ("S17",),
        "hop:kv_load": ("S16",), "external_hits": ("S16",), "hop:lora_load": ("S26",),
        "hop:model_load": ("S25", "S35"), "itl_max": ("S11", "S5"), "tpot": ("S8",),
        "ttft": ("S1",), "offered_requests": ("S1",), "offered_tokens": ("S1",),
        "requests_waiting": ("S1",), "requests_running": ("S33", "S3"), "request_share": ("S4",),
        "attempts": ("S2",), "aborts": ("S2",), "prompt_tokens": ("S5",),
        "tenant_share": ("S6",), "batch_share": ("S32",), "streamed_share": ("S34",),
        "structured_share": ("S28",), "prefix_cache_hit_ratio": ("S15",),
        "computed_tokens": ("S15",), "preemptions": ("S13",), "kv_usage_ratio": ("S14", "S13"),
        "spec_acceptance": ("S12",), "sm_clock": ("S7",), "power_violation": ("S7",),
        "sm_active": ("S10",), "dram_active": ("S8",), "memory_errors": ("S8",),
        "nvlink_bytes": ("S18",), "pcie_bytes": ("S18",), "collective_time": ("S18", "S20"),
        "ib_errors": ("S19",), "ib_wait": ("S19",), "rdma_bytes": ("S17",),
        "tcp_bytes": ("S17",), "host_cpu": ("S10",), "scrape_late": ("S21",),
    }
)  # fmt: skip
"""What a signal makes one think of; what is not here (errors, output tokens) tells nothing."""


@dataclass(frozen=True)
class LargestZ:
    """Names causes by the size of their series' z-scores in a window."""

    history: int = DAY
    block: int = 5
    """Minutes of a mean."""
    named: int = 5

    def diagnose(self, heard: Heard, start_ns: int, end_ns: int) -> Diagnosis:
        """The causes of a window, likeliest first."""
        first = (start_ns - heard.start_ns) // MINUTE_NS
        last = (end_ns - heard.start_ns) // MINUTE_NS
        z = self.z(heard, int(first), int(last))
        seen: dict[str, list[Evidence]] = {}
        for i in np.argsort(-np.nan_to_num(np.abs(z), nan=-1.0)):
            if not np.isfinite(z[i]):
                break
            one = heard.series[i]
            for cause in FIRST_THOUGHT.get(one.signal, ()):
                seen.setdefault(cause, []).append(Evidence(one.signal, one.dims))
        causes = tuple(Cause(c, tuple(e[:3])) for c, e in list(seen.items())[: self.named])
        return Diagnosis(start_ns, end_ns, causes)

    def z(self, heard: Heard, first: int, last: int) -> "np.ndarray":
        """Of each series, how many standard deviations a window is off; NaN: unknown."""
        past = heard.values[max(first - self.history, 0) : first].astype(np.float64)
        past = past[len(past) % self.block :].reshape(-1, self.block, past.shape[1])
        with np.errstate(all="ignore"):
            blocks = mean_there(past, 1)
            middle = mean_there(blocks, 0)
            spread = np.sqrt(mean_there((blocks - middle) ** 2, 0))
            # What never moves has no spread; a thousandth of its level then stands for it.
            floor = np.maximum(1e-3 * np.abs(middle), 1e-9)
            now = mean_there(heard.values[first:last].astype(np.float64), 0)
            return np.asarray((now - middle) / np.maximum(spread, floor))
