"""What a service would know of a fleet, minute by minute: clocks, hops, engines' metrics.

An `Ear` takes what a run tells and keeps minutes of it: histograms of each model's clocks,
and one number a minute of each series. No detector sees more, none sees the truth.
Clocks are those of the gateways (client's where it says so); edges carry the error of their
hosts' clocks where telemetry is spoilt. A request counts in the minute in which it was over.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.faults.parts import TelemetryFault
from tailburn.lab.fleet import Fleet, arrays_of
from tailburn.lab.records import Attempts, Outcome, RequestType
from tailburn.lab.score.minutes import MINUTE_NS, by_minute
from tailburn.lab.score.outcome import Dims

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

LEAST_TOKENS: Final = 16
"""Fewer output tokens have no TPOT: a few gaps are noise."""


@dataclass(frozen=True)
class Series:
    """What a column of minutes is: a canonical signal (`grounds.SIGNALS`), and where."""

    signal: str
    name: str
    """As its source calls it."""
    dims: Dims = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Heard:
    """Minutes on end, from `start_ns` on."""

    start_ns: int
    clocks: Mapping[tuple[str, str], U32]
    """(clock, model) -> counts [minute, bucket] of `minutes`."""
    series: tuple[Series, ...]
    values: NDArray[np.float32]
    """[minute, series]; NaN: nothing there."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def end_ns(self) -> int:
        """End of the last minute."""
        return self.start_ns + len(self) * MINUTE_NS

    def column(self, signal: str, **dims: str) -> F64:
        """The first series of a signal whose dimensions are as given; KeyError if none."""
        for i, one in enumerate(self.series):
            if one.signal == signal and dict(one.dims) == dims:
                return self.values[:, i].astype(np.float64)
        raise KeyError(f"no series of {signal} {dims}")

    @classmethod
    def join(cls, parts: "Sequence[Heard]") -> "Heard":
        """One after the other; at least one, all of one fleet."""
        first = parts[0]
        return cls(
            first.start_ns,
            {key: np.concatenate([p.clocks[key] for p in parts]) for key in first.clocks},
            first.series,
            np.concatenate([p.values for p in parts]),
        )


class Minutes:
    """Means and shares of rows by minute."""

    def __init__(self, minute: I64, minutes: int) -> None:
        self.minute, self.minutes = minute, minutes

    def count(self, where: "NDArray[np.bool_]") -> F64:
        """How many rows of each minute."""
        return np.bincount(self.minute[where], minlength=self.minutes).astype(np.float64)

    def mean(self, values: F64, where: "NDArray[np.bool_]") -> F64:
        """Mean of the rows of each minute; NaN where there are none."""
        n = self.count(where)
        total = np.bincount(self.minute[where], values[where], minlength=self.minutes)
        return np.where(n > 0, total / np.maximum(n, 1), np.nan)

    def highest(self, values: F64, where: "NDArray[np.bool_]") -> F64:
        """Largest of the rows of each minute; NaN where there are none."""
        out = np.full(self.minutes, -np.inf)
        np.maximum.at(out, self.minute[where], values[where])
        return np.where(np.isfinite(out), out, np.nan)


Column = tuple[Series, F64]
Mask = NDArray[np.bool_]
Known = tuple[str, F64, Mask]
"""A clock or hop, seconds of each attempt, and where they are known."""


def _between(first: I64, last: I64) -> tuple[F64, Mask]:
    """Seconds from one instant to another, and where both happened."""
    return (last - first) / 1e9, (first >= 0) & (last >= 0)


def _both(*parts: tuple[F64, Mask]) -> tuple[F64, Mask]:
    total = np.sum([value for value, _ in parts], axis=0)
    there = np.logical_and.reduce([mask for _, mask in parts])
    return total, there


def hops_of(a: Attempts) -> Iterator[Known]:
    """Those of each attempt, on the way to its first token."""
    yield "client", *_between(a.client_start, a.client_slot)
    there = _between(a.client_slot, a.gateway_in)
    back = _between(a.gateway_first, a.client_first)
    yield "client>gateway", *_both(there, back)
    yield "gateway", *_gateway(a)
    yield "guardrail", *_between(a.guardrail_start, a.guardrail_end)
    yield "retrieval", *_between(a.retrieval_start, a.retrieval_end)
    yield "gateway>router", *_between(a.gateway_out, a.router_in)
    yield "router", *_between(a.router_in, a.router_out)
    yield "router>engine", *_between(a.router_out, a.engine_in)
    direct, known = _between(a.gateway_out, a.engine_in)
    yield "gateway>engine", direct, known & (a.router_in < 0)
    yield "tokenizer", *_between(a.engine_in, a.tokenize_end)
    yield "queue", *_between(a.queued, a.scheduled)
    yield "prefill", *_between(a.scheduled, a.prefill_end)
    yield "kv_load", *_between(a.kv_load_start, a.kv_load_end)
    yield "lora_load", *_between(a.lora_start, a.lora_end)
    yield "model_load", *_between(a.model_start, a.model_end)
    yield "kv_transfer", *_between(a.kv_transfer_start, a.kv_transfer_end)
    yield "detokenizer", *_between(np.maximum(a.prefill_end, a.kv_transfer_end), a.engine_first)
    span, known = _between(a.engine_first, a.engine_last)
    yield "decode", span / np.maximum(a.output_done - 1, 1), known & _long(a)


def _gateway(a: Attempts) -> tuple[F64, Mask]:
    """Its own time before the call, and what it holds back of the first answer."""
    own, known = _between(a.gateway_in, a.gateway_out)
    for first, last in (
        (a.guardrail_start, a.guardrail_end), (a.retrieval_start, a.retrieval_end),
    ):  # fmt: skip
        taken, there = _between(first, last)
        own = own - np.where(there, taken, 0.0)
    sent = np.where(a.router_first >= 0, a.router_first, a.engine_first)
    held, answered = _between(sent, a.gateway_first)
    return own + np.where(answered, held, 0.0), known


def _clocks_of(a: Attempts) -> Iterator[Known]:
    ttft, known = _between(a.gateway_in, a.gateway_first)
    yield "ttft", ttft, known & (a.streamed == 1)
    span, known = _between(a.gateway_first, a.gateway_last)
    tpot = span / np.maximum(a.output_done - 1, 1)
    yield "tpot", tpot, known & _long(a) & (a.streamed == 1)
    yield "e2e", *_between(a.gateway_in, a.gateway_last)


def _long(a: Attempts) -> Mask:
    return a.output_done >= LEAST_TOKENS


class Ear:
    """Hears one fleet. `spoilt`: faults of its telemetry, as far as minutes show them."""

    def __init__(self, fleet: Fleet, spoilt: Sequence[TelemetryFault] = (), seed: int = 0) -> None:
        self.fleet = fleet
        self._spoilt = spoilt
        self._draw = np.random.default_rng(seed)
        arrays = arrays_of(fleet)
        hosts = [h.name for h in fleet.hosts]
        self._gateway_host = [g.host for g in fleet.gateways]
        self._replica_host = [hosts[i] for i in arrays.replica_host]
        self._replicas = [r.name for r in fleet.replicas]

    def hear(self, a: Attempts, start_ns: int, end_ns: int) -> Heard:
        """Those that `arrived`, over from one whole minute until another."""
        minutes = (end_ns - start_ns) // MINUTE_NS
        over = np.maximum(np.maximum(a.client_end, a.gateway_last), a.aborted)
        minute = np.clip((over - start_ns) // MINUTE_NS, 0, minutes - 1)
        by = Minutes(minute, minutes)
        clocks = tuple(_clocks_of(a))
        columns = [*self._clocks(a, clocks, by), *self._hops(a, by), *self._asked(a, by)]
        return Heard(
            start_ns,
            dict(self._histograms(a, clocks, minute, minutes)),
            tuple(series for series, _ in columns),
            np.stack([values for _, values in columns], axis=1).astype(np.float32),
        )

    def arrived(self, a: Attempts) -> Attempts:
        """Those whose spans were not lost."""
        for fault in self._spoilt:
            on = (a.client_start >= fault.start_ns) & (a.client_start < fault.end_ns)
            if fault.kind == "span_loss":
                a = a.take(np.flatnonzero(~(on & (self._draw.random(len(a)) < fault.value))))
        return a

    def _skew_s(self, a: Attempts, at: I64) -> F64:
        """How far a replica's clock is ahead of its gateway's, in s."""
        ahead = np.zeros(len(a))
        for fault in self._spoilt:
            if fault.kind == "clock_skew":
                on = (at >= fault.start_ns) & (at < fault.end_ns)
                host = fault.scope.partition(":")[2]
                theirs = np.array([h == host for h in self._replica_host])[a.replica]
                ours = np.array([h == host for h in self._gateway_host])[a.gateway]
                ahead += on * fault.value * (theirs.astype(float) - ours)
        return ahead

    def _histograms(
        self, a: Attempts, clocks: Sequence[Known], minute: I64, minutes: int
    ) -> Iterator[tuple[tuple[str, str], U32]]:
        for clock, seconds, known in clocks:
            for number, model in enumerate(self.fleet.models):
                rows = known & (a.model == number)
                yield (clock, model), by_minute(minute[rows], seconds[rows], minutes)

    def _clocks(self, a: Attempts, clocks: Sequence[Known], by: Minutes) -> Iterator[Column]:
        for clock, seconds, known in clocks:
            signal = clock if clock != "e2e" else "ttft"
            yield Series(signal, f"{clock} mean"), by.mean(seconds, known)
            yield Series(signal, f"{clock} highest"), by.highest(seconds, known)
            for kind in RequestType:
                rows = known & (a.request_type == kind)
                dims = {"request_type": kind.name.lower()}
                yield Series(signal, f"{clock} mean", dims), by.mean(seconds, rows)
            for number, name in enumerate(self._replicas):
                rows = known & (a.replica == number)
                yield Series(signal, f"{clock} mean", {"replica": name}), by.mean(seconds, rows)
        first, known = _between(a.client_start, a.client_first)
        yield Series("client_ttft", "client ttft mean"), by.mean(first, known)
        gaps = a.itl_max_ns / 1e9
        yield Series("itl_max", "longest gap mean"), by.mean(gaps, a.itl_max_ns >= 0)

    def _hops(self, a: Attempts, by: Minutes) -> Iterator[Column]:
        skew = self._skew_s(a, a.gateway_out)
        for hop, seconds, known in hops_of(a):
            if hop in ("router>engine", "gateway>engine"):
                seconds = seconds + skew
            yield Series(f"hop:{hop}", f"{hop} mean"), by.mean(seconds, known)
            if hop in ("tokenizer", "queue", "prefill", "decode"):
                for number, name in enumerate(self._replicas):
                    rows = known & (a.replica == number)
                    yield (
                        Series(f"hop:{hop}", f"{hop} mean", {"replica": name}),
                        by.mean(seconds, rows),
                    )

    def _asked(self, a: Attempts, by: Minutes) -> Iterator[Column]:
        every = np.ones(len(a), bool)
        count = np.maximum(by.count(every), 1.0)
        yield Series("offered_requests", "requests/min"), by.count(a.attempt == 0)
        tokens = (a.prompt_tokens + a.output_done).astype(np.float64)
        yield Series("offered_tokens", "tokens/min"), by.mean(tokens, every) * count
        failed = (a.outcome == Outcome.ERROR) | (a.outcome == Outcome.REJECTED)
        gave_up = (a.outcome == Outcome.CLIENT_TIMEOUT) | (a.outcome == Outcome.CANCELLED)
        shares = (
            ("attempts", "share of retries", a.attempt > 0),
            ("aborts", "share given up", gave_up),
            ("errors", "share failed", failed),
            ("streamed_share", "share streamed", a.streamed == 1),
            ("structured_share", "share structured", a.structured == 1),
            ("batch_share", "share of batch", a.request_type == RequestType.BATCH),
        )
        for signal, name, rows in shares:
            yield Series(signal, name), by.count(rows) / count
        prompt = a.prompt_tokens.astype(np.float64)
        yield Series("prompt_tokens", "prompt tokens"), by.mean(prompt, every)
        yield (
            Series("output_tokens", "output tokens"),
            by.mean(a.output_done.astype(np.float64), every),
        )
        served = a.scheduled >= 0
        hit = by.mean(a.cached_tokens.astype(np.float64), served) / by.mean(prompt, served)
        yield Series("prefix_cache_hit_ratio", "prompt tokens cached"), hit
        for tenant in range(12):
            yield (
                Series("tenant_share", "tenant's tokens", {"tenant": f"tenant-{tenant}"}),
                by.mean(np.where(a.tenant == tenant, tokens, 0.0), every) * count,
            )
        for number, name in enumerate(self._replicas):
            share = by.count(a.replica == number) / count
            yield Series("request_share", "share of requests", {"replica": name}), share
