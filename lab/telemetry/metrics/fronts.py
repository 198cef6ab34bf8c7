"""What stands before engines: gateways and routers, by the requests that pass through them."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.fleet import Fleet, FleetArrays
from tailburn.lab.records import Attempts, Outcome
from tailburn.lab.telemetry.metrics.boards import (
    Grown,
    Signals,
    always,
    first_of,
    picked,
    prompt,
    seconds,
)
from tailburn.lab.telemetry.metrics.rows import Rows, first_router, ratio
from tailburn.lab.telemetry.metrics.tally import Seen
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import layout as w

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

STATUSES: Final = (400, 408, 429, 500, 503, 504)
"""Errors that are told apart."""


class Fronts:
    """Shared by gateways and routers. Streams `each_*` are by the replica behind."""

    def __init__(self, fleet: Fleet, arrays: FleetArrays, targets: int) -> None:
        self.fleet, self.arrays, self.targets = fleet, arrays, targets
        self.grown = Grown()

    def began_ns(self, rows: Rows) -> I64:
        return always(rows, self.targets)

    def late_s(self, rows: Rows) -> F64:
        return prompt(rows, self.targets) + 0.005

    def passed(
        self, a: Attempts, target: I64, came: I64, went: I64, first: I64, last: I64
    ) -> Iterator[tuple[str, Seen]]:
        """The streams of those that came: when they came, were sent on, answered first and last."""
        ok = (a.outcome == Outcome.OK) & (last >= 0)
        gone = np.isin(a.outcome, (Outcome.CANCELLED, Outcome.CLIENT_TIMEOUT))
        end = first_of(last, a.client_end, came)
        streamed = a.streamed > 0
        out = a.output_done

        def of(which: "NDArray[np.bool_]", at: I64, value: "NDArray[np.number]") -> Seen:
            return Seen.of(at[which], target[which], np.asarray(value[which], np.float64))

        whole, called = seconds(last - came), seconds(last - went)
        waited, told = seconds(first - came), seconds(first - went)
        yield "came", of(came >= 0, came, np.ones(len(a)))
        yield "streams", of(streamed, came, np.ones(len(a)))
        yield "unary", of(~streamed, came, np.ones(len(a)))
        yield "total_s", of(ok, end, whole)
        yield "api_s", of(ok, end, called)
        yield "overhead_s", of(ok & (went >= 0), end, seconds(went - came))
        yield (
            "auth_s",
            of(ok & (a.gateway_authed >= 0), end, seconds(a.gateway_authed - a.gateway_in)),
        )
        yield "headers_s", of((first >= 0) & (last >= 0), end, waited)
        yield "ttft_s", of((first >= 0) & (end >= 0), first, waited)
        yield "api_ttft_s", of(ok & streamed & (went >= 0), end, told)
        # LiteLLM divides a stream's time to its first token by its tokens.
        yield (
            "per_token_s",
            of(ok & (out > 0), end, np.where(streamed, told, called) / np.maximum(out, 1)),
        )
        gaps = np.maximum(out - 1, 0)
        mean = seconds(last - first) / np.maximum(gaps, 1)
        some = ok & streamed & (gaps > 0)
        yield "itl_s", Seen.of(end[some], target[some], mean[some], gaps[some].astype(np.float64))
        yield "tpot_s", of(some, end, mean)
        yield "input", of(ok, end, a.prompt_tokens)
        yield "output", of(ok, end, out)
        yield "cached", of(ok, end, a.cached_tokens)
        yield "tokens", of(ok, end, a.prompt_tokens + out)
        yield (
            "tokenize_s",
            of(ok, end, seconds(a.tokenize_end - first_of(a.tokenize_start, a.tokenize_end))),
        )
        yield "ok_streams", of(ok & streamed, end, whole)
        yield "ok_unary", of(ok & ~streamed, end, whole)
        yield "gone", of(gone, end, np.ones(len(a)))
        failed = ~ok & ~gone
        yield "failed", of(failed, end, seconds(end - came))
        known = np.isin(a.http_status, STATUSES)
        for status in STATUSES:
            mine = failed & (
                (a.http_status == status) if status != 500 else (a.http_status == 500) | ~known
            )
            yield f"failed_{status}", of(mine, end, np.ones(len(a)))
        yield "again", of(came >= 0, end, np.maximum(a.upstream_tries - 1, 0))
        sent = (went >= 0) & (a.replica >= 0)
        by = a.replica.astype(np.int64)
        yield "each_sent", Seen.of(went[sent], by[sent], np.ones(int(sent.sum())))
        done = sent & ok
        for name, value in (
            ("each_total_s", whole),
            ("each_input", a.prompt_tokens.astype(np.float64)),
            ("each_output", out.astype(np.float64)),
        ):
            yield name, Seen.of(end[done], by[done], value[done])
        broke = sent & failed
        yield "each_failed_s", Seen.of(end[broke], by[broke], seconds(end - came)[broke])

    def process(self, rows: Rows, inflight: F64, seen: F64) -> dict[str, F64]:
        """Signals of the process itself: [scrape, target]."""
        epoch = rows.epoch_unix_ns / 1e9
        alive = rows.samples.at_ns[:, None] / 1e9 + 86_400.0 + 0.0 * inflight
        return {
            "start_s": epoch - 86_400.0 + 0.0 * inflight,
            "created_s": epoch - 86_390.0 + 0.0 * inflight,
            "uptime_s": alive,
            "process_cpu_s": 60.0 + 0.004 * seen + 0.002 * alive,
            "process_work": seen,
            "gc_0": np.floor(seen / 40.0 + 1_500.0),
            "gc_1": np.floor(seen / 400.0 + 140.0),
            "gc_2": np.floor(seen / 6_000.0 + 12.0),
            "process_fds": 40.0 + 2.0 * inflight,
            "inflight": inflight,
        }


class Gateways(Fronts):
    """Gateways, in the order of the fleet's."""

    def __init__(self, fleet: Fleet, arrays: FleetArrays) -> None:
        super().__init__(fleet, arrays, len(fleet.gateways))

    def observe(self, attempts: Attempts) -> Iterator[tuple[str, Seen]]:
        a = picked(attempts, (attempts.gateway >= 0) & (attempts.gateway_in >= 0))
        target = a.gateway.astype(np.int64)
        yield from self.passed(
            a, target, a.gateway_in, a.gateway_out, a.gateway_first, a.gateway_last
        )

    def signals(self, rows: Rows) -> Signals:
        gates = rows.samples.gateways.astype(np.float64)
        stations = rows.samples.stations[:, : self.targets].astype(np.float64)
        found = self.process(rows, gates[:, :, w.G_INFLIGHT], gates[:, :, w.G_REQUESTS])
        found |= {
            "waiting": stations[:, :, w.S_WAITING],
            "busy": np.clip(ratio(stations[:, :, w.S_BUSY], stations[:, :, w.S_SERVERS]), 0.0, 1.0),
        }
        told: dict[str, list[F64]] = {name: list(values.T) for name, values in found.items()}
        each = _workers(rows, slice(None))
        return told | {name: [values] * self.targets for name, values in each.items()}


class Routers(Fronts):
    """Routers, one a pool: those of a prefill pool are their decode pool's."""

    def __init__(self, fleet: Fleet, arrays: FleetArrays) -> None:
        super().__init__(fleet, arrays, len(fleet.pools))

    def observe(self, attempts: Attempts) -> Iterator[tuple[str, Seen]]:
        a = picked(attempts, (attempts.router_in >= 0) & (attempts.replica >= 0))
        target = self.arrays.replica_pool[a.replica].astype(np.int64)
        yield from self.passed(a, target, a.router_in, a.router_out, a.router_first, a.router_end)

    def signals(self, rows: Rows) -> Signals:
        s = rows.samples
        pools = s.pools.astype(np.float64)
        first = first_router(self.fleet)
        stations = s.stations[:, first : first + self.targets].astype(np.float64)
        found = self.process(rows, pools[:, :, w.P_INFLIGHT], pools[:, :, w.P_REQUESTS])
        found |= {
            "waiting": stations[:, :, w.S_WAITING],
            "busy": np.clip(found["inflight"] / 400.0, 0.0, 1.0),
        }
        told: dict[str, list[F64]] = {name: list(values.T) for name, values in found.items()}
        begins, sizes = self.arrays.pool_first, self.arrays.pool_size
        each = [
            _workers(rows, slice(int(b), int(b + n))) for b, n in zip(begins, sizes, strict=True)
        ]
        return told | {name: [one[name] for one in each] for name in each[0]}


def _workers(rows: Rows, which: slice) -> dict[str, F64]:
    """The replicas behind: what is known of each, [scrape, replica], and of all."""
    s = rows.samples
    engine, world = s.engine[:, which].astype(np.float64), s.replicas[:, which].astype(np.float64)
    free = engine[:, :, c.CLEAN] + engine[:, :, c.CACHE]
    span = rows.seconds[:, None]
    sent = rows.grown("replicas", w.R_SENT)[:, which]
    queries = rows.grown("engine", c.PREFIX_QUERIES)[:, which]
    steps = rows.grown("engine", c.STEPS)[:, which]
    up = world[:, :, w.R_STATE] == w.UP
    total = {
        "workers": up.sum(axis=1).astype(np.float64),
        "tokens_made": engine[:, :, c.GENERATION_TOKENS].sum(axis=1),
        "blocks": engine[:, :1, c.BLOCKS].sum(axis=1),
        "block_size": engine[:, :1, c.BLOCK_SIZE].sum(axis=1),
        "max_seqs": engine[:, :1, c.MAX_SEQS].sum(axis=1),
        "max_batched_tokens": engine[:, :1, c.TOKEN_BUDGET].sum(axis=1),
        "model_len": engine[:, :1, c.MODEL_LEN].sum(axis=1),
        "ready": (up.sum(axis=1) > 0).astype(np.float64),
    }
    return total | {
        "each_inflight": world[:, :, w.R_INFLIGHT],
        "each_healthy": world[:, :, w.R_SEEN],
        "each_open": 1.0 - world[:, :, w.R_SEEN],
        "each_running": engine[:, :, c.RUNNING_COUNT],
        "each_waiting": engine[:, :, c.WAITING_COUNT],
        "each_kv_usage": np.clip(1.0 - free / np.maximum(engine[:, :, c.BLOCKS], 1.0), 0.0, 1.0),
        "each_blocks_used": np.maximum(engine[:, :, c.BLOCKS] - free, 0.0),
        "each_throughput": rows.grown("engine", c.GENERATION_TOKENS)[:, which] / span,
        "each_hit_rate": ratio(rows.grown("engine", c.PREFIX_HITS)[:, which], queries),
        "each_itl_s": ratio(rows.grown("engine", c.BUSY_NS)[:, which], steps) / 1e9,
        "each_qps": sent / span,
    }
