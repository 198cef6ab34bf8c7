"""Scraped metrics as minutes: which of them are which canonical signal, gauges and rates."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.faults.parts import TelemetryFault
from tailburn.lab.score.heard import Heard, Series
from tailburn.lab.score.minutes import MINUTE_NS, mean_there
from tailburn.lab.telemetry.metrics import Scrapes, Target
from tailburn.lab.telemetry.metrics.page import Series as Shown

F32 = NDArray[np.float32]

_SIGNALS: Final[tuple[tuple[str, str], ...]] = (
    (r"vllm:num_requests_waiting|sglang:num_queue_reqs|trtllm_num_requests_waiting",
     "requests_waiting"),
    (r"vllm:num_requests_running|sglang:num_running_reqs|trtllm_num_requests_running",
     "requests_running"),
    (r"vllm:kv_cache_usage_perc|sglang:token_usage|trtllm_kv_cache_utilization", "kv_usage_ratio"),
    (r"vllm:num_preemptions_total|sglang:num_retracted_requests_total", "preemptions"),
    (r"vllm:prefix_cache_hits_total|sglang:cached_tokens_total", "prefix_cache_hit_ratio"),
    (r"vllm:prompt_tokens_total|sglang:prompt_tokens_total", "computed_tokens"),
    (r"vllm:spec_decode_num_accepted_tokens_total|sglang:spec_accept_rate", "spec_acceptance"),
    (r"vllm:kv_offload.*bytes.*|vllm:external_prefix_cache_hits.*", "external_hits"),
    (r"vllm:nixl_xfer_time_seconds_sum", "kv_transfer_time"),
    (r"vllm:nixl_bytes_transferred_sum", "kv_transfer_time"),
    (r"DCGM_FI_DEV_SM_CLOCK", "sm_clock"),
    (r"DCGM_FI_DEV_(POWER|THERMAL)_VIOLATION", "power_violation"),
    (r"DCGM_FI_PROF_SM_ACTIVE|DCGM_FI_DEV_GPU_UTIL", "sm_active"),
    (r"DCGM_FI_PROF_DRAM_ACTIVE", "dram_active"),
    (r"DCGM_FI_DEV_(ECC_.*|.*REMAPPED_ROWS.*|ROW_REMAP.*)", "memory_errors"),
    (r"DCGM_FI_PROF_NVLINK_[TR]X_BYTES", "nvlink_bytes"),
    (r"DCGM_FI_PROF_PCIE_[TR]X_BYTES", "pcie_bytes"),
    (r"nccl_.*(exec_time|collective_time).*", "collective_time"),
    (r"node_infiniband_(symbol_error|link_downed|port_errors|port_discards).*", "ib_errors"),
    (r"node_infiniband_port_transmit_wait_total", "ib_wait"),
    (r"node_infiniband_port_data_(transmitted|received)_bytes_total", "rdma_bytes"),
    (r"node_network_(transmit|receive)_bytes_total", "tcp_bytes"),
    (r"container_cpu_cfs_throttled_(periods|seconds)_total|node_load1", "host_cpu"),
    (r"scrape_duration_seconds", "scrape_late"),
)  # fmt: skip
_RULES: Final = tuple((re.compile(pattern), signal) for pattern, signal in _SIGNALS)


@cache
def signal_of(metric: str) -> str | None:
    """The canonical signal that a metric's name stands for; None: of no use here."""
    return next((signal for rule, signal in _RULES if rule.fullmatch(metric)), None)


class MetricsEar:
    """Minutes of a fleet's scrapes. Counters become rates a minute, gauges means."""

    def __init__(self, spoilt: Sequence[TelemetryFault] = (), seed: int = 0) -> None:
        self._spoilt = spoilt
        self._draw = np.random.default_rng(seed)
        self._last: dict[str, NDArray[np.float64]] = {}

    def hear(self, scrapes: Scrapes, start_ns: int, end_ns: int) -> tuple[tuple[Series, ...], F32]:
        """(series, values [minute, series]) of whole minutes."""
        minutes = (end_ns - start_ns) // MINUTE_NS
        minute = np.clip((scrapes.at_ns - start_ns) // MINUTE_NS, 0, minutes - 1)
        series: list[Series] = []
        parts = []
        for target in scrapes.targets:
            chosen, found = self._of(target, scrapes)
            series += chosen
            parts.append(_by_minute(found, minute, int(minutes)))
        return tuple(series), np.concatenate(parts, axis=1).astype(np.float32)

    def _of(self, target: Target, scrapes: Scrapes) -> tuple[list[Series], NDArray[np.float64]]:
        page = scrapes.pages[target.name]
        at = [i for i, one in enumerate(page.series) if signal_of(one.name)]
        told = [page.series[i] for i in at]
        late = scrapes.lateness_s[target.name]
        values = scrapes.values[target.name][:, at].copy()
        values[self._silent(scrapes, late)] = np.nan
        counters = [j for j, one in enumerate(told) if one.counts]
        before = self._last.get(target.name, values[:1])
        if len(values):
            self._last[target.name] = values[-1:].copy()
        # A counter that began anew counts from 0.
        grown = np.diff(values, axis=0, prepend=before)
        values[:, counters] = np.where(grown < 0, values, grown)[:, counters]
        dims = {"replica": target.name} if target.kind == "engine" else {"host": target.host}
        chosen = [Series(signal_of(one.name) or "", _name(one), dims) for one in told]
        stuck = [j for j, one in enumerate(chosen) if one.signal == "kv_usage_ratio"]
        for fault in self._spoilt:
            if fault.kind == "kv_stuck" and target.kind == "engine":
                on = (scrapes.at_ns >= fault.start_ns) & (scrapes.at_ns < fault.end_ns)
                values[np.ix_(np.flatnonzero(on), np.array(stuck, np.int64))] = fault.value
        shown = np.column_stack([values, late])
        return [*chosen, Series("scrape_late", "scrape time", dims)], shown

    def _silent(self, scrapes: Scrapes, late: NDArray[np.float64]) -> NDArray[np.bool_]:
        silent = np.isnan(late) | (late > 10.0)
        for fault in self._spoilt:
            if fault.kind == "scrape_gap":
                on = (scrapes.at_ns >= fault.start_ns) & (scrapes.at_ns < fault.end_ns)
                silent |= on & (self._draw.random(len(silent)) < fault.value)
        return np.asarray(silent)


def _name(one: Shown) -> str:
    return f"{one.name}{{{one.labels}}}" if one.labels else one.name


def _by_minute(
    values: NDArray[np.float64], minute: NDArray[np.int64], minutes: int
) -> NDArray[np.float64]:
    out = np.full((minutes, values.shape[1]), np.nan)
    for m in np.unique(minute):
        out[m] = mean_there(values[minute == m], 0)
    return out


def with_metrics(heard: Heard, series: tuple[Series, ...], values: F32) -> Heard:
    """What was heard, with columns of metrics beside."""
    return Heard(
        heard.start_ns,
        heard.clocks,
        (*heard.series, *series),
        np.concatenate([heard.values, values], axis=1),
    )
