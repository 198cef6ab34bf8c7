"""Engines: what a replica's own counters and the requests it served make of its page."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.fleet import Fleet, FleetArrays
from tailburn.lab.physics import coef
from tailburn.lab.physics.step import HOST, PARTS
from tailburn.lab.records import Attempts
from tailburn.lab.telemetry.metrics.boards import (
    FOREVER_AGO,
    Grown,
    Signals,
    picked,
)
from tailburn.lab.telemetry.metrics.rows import Rows, first_tokenizer, ratio
from tailburn.lab.telemetry.metrics.served import over_http, prefilled, served
from tailburn.lab.telemetry.metrics.tally import Seen
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import layout as w
from tailburn.lab.world.samples import Samples

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_COUNTERS = {
    "steps": c.STEPS,
    "added": c.N_ADDED,
    "preemptions": c.N_PREEMPTIONS,
    "prompt_tokens": c.PROMPT_TOKENS,
    "generation_tokens": c.GENERATION_TOKENS,
    "prefix_queries": c.PREFIX_QUERIES,
    "prefix_hits": c.PREFIX_HITS,
    "tier_queries": c.TIER_QUERIES,
    "tier_hits": c.TIER_HITS,
    "drafted": c.DRAFTED,
    "accepted": c.ACCEPTED,
    "drafts": c.DRAFTS,
    "evicted_blocks": c.EVICTED,
    "loaded_bytes": c.LOADED_BYTES,
    "transferred_bytes": c.TRANSFERRED_BYTES,
    "busy_ns": c.BUSY_NS,
}
_GAUGES = {
    "running": c.RUNNING_COUNT,
    "waiting": c.WAITING_COUNT,
    "waiting_deferred": c.BLOCKED_COUNT,
    "held": c.HELD_COUNT,
    "max_seqs": c.MAX_SEQS,
    "max_batched_tokens": c.TOKEN_BUDGET,
    "blocks": c.BLOCKS,
    "block_size": c.BLOCK_SIZE,
    "tier_blocks_used": c.TIER_USED,
    "tier_blocks": c.TIER_BLOCKS,
}
_FROZEN = ("running", "waiting", "waiting_deferred", "waiting_capacity", "kv_usage")


class Engines:
    """The engines of a fleet, in the order of its replicas."""

    def __init__(self, fleet: Fleet, arrays: FleetArrays) -> None:
        self._grown = Grown()
        self._kv_bytes = arrays.kv_bytes.astype(np.float64)
        self._first = first_tokenizer(fleet)
        self._threads = np.array(
            [fleet.pool_of(r).tokenizer.threads for r in range(len(fleet.replicas))], np.float64
        )
        self._stuck = np.zeros(len(fleet.replicas), np.bool_)
        self._shown: dict[str, F64] = {}

    def began_ns(self, rows: Rows) -> I64:
        return started_ns(rows.samples)

    def anew(self, rows: Rows) -> "NDArray[np.bool_]":
        """[scrape, replica] whether its process is another one than at the scrape before."""
        now = started_ns(rows.samples)
        old = now[:1] if rows.before is None else started_ns(rows.before)[-1:]
        return np.asarray(np.diff(now, axis=0, prepend=old) != 0)

    def late_s(self, rows: Rows) -> F64:
        """A front end that tokenizes more than it can answers late: its event loop is behind.

        NaN while the process is down or loads: its port is not open.
        """
        s = rows.samples
        stations = s.stations[:, self._first :]
        served = rows.grown("stations", w.S_BEGUN)[:, self._first :]
        worked = rows.grown("stations", w.S_BUSY_AREA)[:, self._first :]
        mean = ratio(worked, served) / 1e9
        servers = np.minimum(np.maximum(stations[:, :, w.S_SERVERS], 1), 1 << 20)
        late = 0.002 + stations[:, :, w.S_WAITING] / servers * mean
        return np.where(s.replicas[:, :, w.R_STATE] == w.UP, late, np.nan)

    def signals(self, rows: Rows) -> Signals:
        s = rows.samples
        anew = self.anew(rows)
        found = {
            name: s.engine[:, :, column].astype(np.float64)
            for name, column in (_COUNTERS | _GAUGES).items()
        }
        idle = (s.engine[:, :, c.CLEAN] + s.engine[:, :, c.CACHE]).astype(np.float64)
        blocks = np.maximum(found["blocks"], 1.0)
        found["kv_usage"] = np.clip(1.0 - idle / blocks, 0.0, 1.0)
        capacity = found["waiting"] - found["waiting_deferred"]
        found["waiting_capacity"] = np.maximum(capacity, 0.0)
        self._freeze(rows, found)
        found["active"] = found["running"] + found["waiting"]
        found["kv_blocks_used"] = found["kv_usage"] * found["blocks"]
        found["kv_blocks_free"] = found["blocks"] - found["kv_blocks_used"]
        found["kv_tokens_used"] = found["kv_blocks_used"] * found["block_size"]
        found["kv_tokens"] = found["blocks"] * found["block_size"]
        found["kv_tokens_evictable"] = s.engine[:, :, c.CACHE] * found["block_size"]
        found["kv_tokens_free"] = s.engine[:, :, c.CLEAN] * found["block_size"]
        found["evicted_tokens"] = found["evicted_blocks"] * found["block_size"]
        found["tier_usage"] = ratio(found["tier_blocks_used"], found["tier_blocks"])
        found["tier_tokens"] = found["tier_blocks"] * found["block_size"]
        found["tier_tokens_used"] = found["tier_blocks_used"] * found["block_size"]
        computed = s.engine[:, :, c.COMPUTED_TOKENS] - s.engine[:, :, c.BATCH_SUM]
        # The one runs a step ahead of the other.
        found["local_compute_tokens"] = self._grown.peak(
            "compute", computed.astype(np.float64), anew
        )
        found["local_hit_tokens"] = found["prefix_hits"]
        found["cached_tokens"] = found["prefix_hits"] + found["tier_hits"]
        moved = ratio(found["transferred_bytes"], self._kv_bytes[None, :])
        found["external_tokens"] = found["tier_hits"] + np.floor(moved)
        found["loaded_tokens"] = ratio(found["loaded_bytes"], self._kv_bytes[None, :])
        found["load_s"] = ratio(found["loaded_bytes"], s.engine_real[:, :, c.LOAD_GBPS] * 1e9)
        size = np.maximum(found["block_size"], 1.0)
        found["reused_blocks"] = np.floor(found["prefix_hits"] / size)
        found["missed_blocks"] = np.floor((found["prefix_queries"] - found["prefix_hits"]) / size)
        found["missed_blocks"] = self._grown.peak("missed", found["missed_blocks"], anew)
        found["gen_blocks"] = np.floor(found["generation_tokens"] / size)
        found["evicted_bytes"] = found["evicted_tokens"] * self._kv_bytes[None, :]
        found["model_len"] = s.engine[:, :, c.MODEL_LEN].astype(np.float64)
        found["now_s"] = (rows.epoch_unix_ns + s.at_ns)[:, None] / 1e9 + 0.0 * found["running"]
        self._rates(rows, found)
        self._process(rows, anew, found)
        return {name: values.T for name, values in found.items()}

    def _freeze(self, rows: Rows, found: dict[str, F64]) -> None:
        """`shown_*`: gauges as vLLM has them, set only by a step that had outputs.

        After all requests were given up they stay as they were. SGLang's scheduler sets its
        own idle, too.
        """
        steps = rows.grown("engine", c.STEPS)
        given_up = (rows.grown("engine", c.N_ABORTED) > 0) & (
            rows.grown("engine", c.N_FINISHED) == 0
        )
        empty = found["running"] + found["waiting"] == 0
        shown = {name: found[name].copy() for name in _FROZEN}
        for r in range(len(rows)):
            self._stuck = empty[r] & (given_up[r] | (self._stuck & (steps[r] == 0)))
            for name, values in shown.items():
                last = self._shown.get(name, values[r])
                values[r] = np.where(self._stuck, last, values[r])
                self._shown[name] = values[r]
        found |= {f"shown_{name}": values for name, values in shown.items()}

    def _rates(self, rows: Rows, found: dict[str, F64]) -> None:
        """Gauges of what happened lately, as engines show them."""
        span = rows.seconds[:, None]
        steps = rows.grown("engine", c.STEPS)
        found["throughput"] = rows.grown("engine", c.GENERATION_TOKENS) / span
        busy_ns = rows.grown("engine", c.BUSY_NS)
        found["step_s"] = ratio(busy_ns, steps) / 1e9
        found["busy"] = np.minimum(busy_ns / 1e9 / span, 1.0)
        accepted = rows.grown("engine", c.ACCEPTED)
        found["spec_accept_rate"] = ratio(accepted, rows.grown("engine", c.DRAFTED))
        found["spec_accept_length"] = 1.0 + ratio(accepted, rows.grown("engine", c.DRAFTS))
        queries = rows.grown("engine", c.PREFIX_QUERIES)
        found["hit_rate"] = ratio(rows.grown("engine", c.PREFIX_HITS), queries)
        found["hit_rate_ever"] = ratio(found["prefix_hits"], found["prefix_queries"])
        parts = rows.grown("engine_real", slice(c.PARTS_SUM, c.PARTS_SUM + PARTS))
        gpu = parts.sum(axis=2) - parts[..., HOST]
        found["forward_s"] = self._grown.of("forward", gpu / 1e9)
        busy = found["busy_ns"] / 1e9
        alive = self._alive_s(rows)
        found["idle_s"] = np.maximum(alive - busy, 0.0)
        decoded = rows.grown("engine", c.BATCH_SUM)
        batch = ratio(decoded, steps)
        found["batch"] = batch
        found["context_requests"] = np.maximum(found["running"] - np.ceil(batch), 0.0)
        found["paused"] = 0.0 * batch
        prompts = rows.grown("engine", c.COMPUTED_TOKENS) - decoded
        prefills = rows.grown("engine", c.PREFILL_STEPS)
        found["context_step_tokens"] = np.floor(np.maximum(ratio(prompts, prefills), 0.0))
        # Set at every 40th step: it stays as it was when there is nothing to do.
        shown = found["throughput"].copy()
        for r in range(len(rows)):
            last = self._shown.get("throughput", shown[r])
            shown[r] = np.where(steps[r] >= 40, shown[r], last)
            self._shown["throughput"] = shown[r]
        found["stale_throughput"] = shown
        shared = np.maximum(found["running"] + found["held"], 1.0)
        found["context_tokens"] = found["kv_tokens_used"] * found["running"] / shared

    def _process(self, rows: Rows, anew: "NDArray[np.bool_]", found: dict[str, F64]) -> None:
        """The engine's process: when it began, and the CPU time it took."""
        s = rows.samples
        epoch = rows.epoch_unix_ns / 1e9
        began = s.replicas[:, :, w.R_STARTED].astype(np.float64)
        found["start_s"] = epoch + np.where(began < 0, -7_200.0, began / 1e9)
        found["created_s"] = found["start_s"] + 24.0
        found["uptime_s"] = self._alive_s(rows)
        took = found["steps"] * 0.0021 * s.engine_real[:, :, c.COEF + coef.HOST_FACTOR]
        found["process_cpu_s"] = self._grown.peak("cpu", 40.0 + took + 0.003 * found["added"], anew)
        found["process_work"] = found["added"] + found["steps"]
        for generation, every in enumerate((700.0, 7_000.0, 120_000.0)):
            found[f"gc_{generation}"] = np.floor(found["process_work"] / every)
        found["inflight"] = s.replicas[:, :, w.R_INFLIGHT].astype(np.float64)
        found["process_fds"] = 36.0 + found["inflight"]
        found["load_time_s"] = np.maximum(
            (s.replicas[:, :, w.R_READY] - s.replicas[:, :, w.R_LOAD_START]) / 1e9, 0.0
        )

    def _alive_s(self, rows: Rows) -> F64:
        began = rows.samples.replicas[:, :, w.R_STARTED]
        before = np.where(began < 0, -7_200 * 10**9, began)
        return np.maximum(rows.samples.at_ns[:, None] - before, 0) / 1e9

    def stepped(self, rows: Rows) -> Iterator[tuple[str, Seen]]:
        """Tokens a step, of the steps between two scrapes: with and without parts of prompts."""
        steps, prefills = rows.grown("engine", c.STEPS), rows.grown("engine", c.PREFILL_STEPS)
        tokens = rows.grown("engine", c.COMPUTED_TOKENS)
        batch = np.minimum(ratio(rows.grown("engine", c.BATCH_SUM), steps), ratio(tokens, steps))
        plain = np.maximum(steps - prefills, 0.0)
        chunk = ratio(tokens - plain * batch, prefills)
        at = np.broadcast_to(rows.samples.at_ns[:, None], steps.shape)
        target = np.broadcast_to(np.arange(steps.shape[1]), steps.shape)
        for size, count in ((batch, plain), (chunk, prefills)):
            some = count > 0
            yield "step_tokens", Seen.of(at[some], target[some], size[some], count[some])

    def observe(self, attempts: Attempts) -> Iterator[tuple[str, Seen]]:
        a = picked(attempts, attempts.engine_in >= 0)
        yield from over_http(a)
        aborted = picked(a, (a.aborted >= 0) & (a.replica >= 0))
        yield "aborted", Seen.of(aborted.aborted, aborted.replica, np.ones(len(aborted)))
        done = picked(a, (a.engine_last >= 0) & (a.aborted < 0) & (a.replica >= 0))
        split = done.prefill_replica >= 0
        yield from served(done, split, self._kv_bytes)
        yield from prefilled(picked(done, split & (done.prefill_end >= 0)))


def started_ns(samples: Samples) -> I64:
    """[scrape, replica] when its process began; FOREVER_AGO before the run."""
    began = samples.replicas[:, :, w.R_STARTED]
    return np.where(began < 0, FOREVER_AGO, began)
