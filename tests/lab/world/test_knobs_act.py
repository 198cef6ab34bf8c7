"""Every knob turned: what it stands for in a fleet changes by it, and the other way is as it was.

A knob without a case is red, so that none is only a name.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tailburn.lab.fleet import Adapters, Fleet, Policy, Router, Scheduler, split
from tailburn.lab.physics import Layout
from tailburn.lab.physics.layout import Speculation
from tailburn.lab.records import Attempts, Outcome
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import layout as w
from tailburn.lab.world.knobs import KNOBS
from tailburn.lab.world.samples import Samples
from tailburn.lab.world.world import World
from tests.lab.world.fleets import CLIENTS, S, behaving, plain, requests

TOLD_ALONE = {"release", "clock_offset_s"}
"""What telemetry alone sees: its own tests turn it."""
Turned = tuple[str, float] | tuple[str, float, str] | tuple[str, float, str, int]
SECONDS = 240


@dataclass(frozen=True)
class Ran:
    """What came of a run."""

    told: Attempts
    samples: Samples

    def ms(self, first: str, last: str, percent: float = 50.0) -> float:
        a, b = getattr(self.told, first), getattr(self.told, last)
        return float(np.percentile((b - a)[(a >= 0) & (b >= 0)] / 1e6, percent))

    def share(self, outcome: Outcome) -> float:
        return float(np.mean(self.told.outcome == outcome))

    def count(self, column: int) -> float:
        return float(self.samples.engine[-1, :, column].sum())

    def step_ms(self) -> float:
        return self.count(c.BUSY_NS) / self.count(c.STEPS) / 1e6

    def tpot(self) -> float:
        some = self.told.take(self.told.output_done > 16)
        return float(np.median((some.engine_last - some.engine_first) / some.output_done)) / 1e6

    def itl(self, percent: float = 99.0) -> float:
        longest = self.told.itl_max_ns
        return float(np.percentile(longest[longest >= 0], percent)) / 1e6

    def most(self, column: int) -> float:
        return float(self.samples.engine[:, :, column].max())


Measure = Callable[[Ran], float]


def span(first: str, last: str, percent: float = 50.0) -> Measure:
    return lambda ran: ran.ms(first, last, percent)


def outcome(which: Outcome) -> Measure:
    return lambda ran: ran.share(which)


def count(column: int) -> Measure:
    return lambda ran: ran.count(column)


def gate(column: int) -> Measure:
    return lambda ran: float(ran.samples.gateways[-1, :, column].sum())


def tries(ran: Ran) -> float:
    return float(ran.told.upstream_tries.mean())


def attempts(ran: Ran) -> float:
    return len(ran.told) / len(np.unique(ran.told.request))


def between_tries(ran: Ran) -> float:
    """Ms from the end of a first try to the beginning of the second, in the mean."""
    a = ran.told.take(np.lexsort((ran.told.attempt, ran.told.request)))
    second = np.flatnonzero((a.attempt[1:] > 0) & (a.request[1:] == a.request[:-1])) + 1
    return float(np.mean(a.client_start[second] - a.client_end[second - 1])) / 1e6


def late_answers(ran: Ran) -> float:
    return ran.ms("engine_last", "client_last", 95.0)


def sent_away(ran: Ran) -> float:
    """Share of attempts that the first replica had."""
    return float(np.mean(ran.told.replica == 0))


def busiest(ran: Ran) -> float:
    """Share of attempts that the busiest replica had."""
    sent = np.bincount(ran.told.replica[ran.told.replica >= 0])
    return float(sent.max() / sent.sum())


def away_s(ran: Ran) -> float:
    """Seconds in which the first replica got nothing, at the most."""
    at = np.sort(ran.told.engine_in[(ran.told.replica == 0) & (ran.told.engine_in >= 0)])
    return float(np.diff(np.append(at, SECONDS * S)).max()) / 1e9


def hits(ran: Ran) -> float:
    return ran.count(c.PREFIX_HITS) / max(ran.count(c.PREFIX_QUERIES), 1.0)


def unsteady(ran: Ran) -> float:
    """Spread of the first token's way from engine to client."""
    return ran.ms("engine_first", "client_first", 95.0) - ran.ms(
        "engine_first", "client_first", 5.0
    )


def urgent_first(ran: Ran) -> float:
    """How much longer the less urgent wait than the urgent, ms in the mean."""
    a = ran.told
    waits = (a.scheduled - a.queued) / 1e6
    known = (a.scheduled >= 0) & (a.queued >= 0)
    means = [waits[known & (a.priority == level)].mean() for level in (0, 1)]
    return float(means[1] - means[0])


def loads_spread(ran: Ran) -> float:
    took = (ran.told.lora_end - ran.told.lora_start)[ran.told.lora_end >= 0]
    return float(np.std(took[took > 100_000_000]) / 1e9)


def of_pools(fleet: Fleet, **fields: object) -> Fleet:
    return replace(fleet, pools=tuple(replace(p, **fields) for p in fleet.pools))  # type: ignore[arg-type]


def usual() -> Fleet:
    return plain(2, cancel_share=0.0)


def apart() -> Fleet:
    return behaving(split(10, clients=CLIENTS), cancel_share=0.0)


def drafting() -> Fleet:
    layout = usual().pools[0].layout
    return of_pools(usual(), layout=replace(layout, speculation=Speculation(tokens=3)))


def experts() -> Fleet:
    layout = Layout("Qwen3-235B-A22B", "H200", 8, expert_ranks=8)
    return of_pools(usual(), layout=layout)


def staged() -> Fleet:
    return of_pools(usual(), layout=Layout("Llama-3.1-70B", "H200", 2, stages=2))


def routed_by(policy: Policy, refresh_ms: float = 1_000.0) -> Callable[[], Fleet]:
    router = replace(Router("front-1"), policy=policy, refresh_ms=refresh_ms)
    return lambda: of_pools(plain(3, cancel_share=0.0), router=router)


def narrow() -> Fleet:
    """Few sequences at once, so that requests wait."""
    return of_pools(usual(), scheduler=Scheduler(max_num_seqs=4))


def tight() -> Fleet:
    """Few blocks."""
    return of_pools(usual(), scheduler=Scheduler(kv_blocks=260, max_num_seqs=24))


def adapting() -> Fleet:
    return of_pools(usual(), adapters=Adapters(slots=6, host_slots=6, sigma=0.0))


@dataclass(frozen=True)
class Case:
    """A knob turned beside what else is turned, and what it moves how far at least."""

    knob: str
    value: float
    measure: Measure
    times: float
    """Above 1: the measure grows by so much; below: it shrinks to that."""
    beside: tuple[Turned, ...] = ()
    fleet: Callable[[], Fleet] = usual
    scope: str = "all"
    asked: tuple[tuple[str, int], ...] = ()
    from_s: int = 0


STALLS: tuple[Turned, ...] = (("gateway_stall_s", 3.0),)
RAG, CHAT, TALK = (("rag", 1),), (("route", 0),), (("session", 7),)
STREAMED = (("streamed", 1),)
TIMING_OUT: tuple[Turned, ...] = (("client_timeout_s", 0.1),)
GRAMMARS: tuple[Turned, ...] = (("grammar_s", 0.5),)
E2E, QUEUE = span("client_start", "client_last"), span("queued", "scheduled", 90.0)

CASES = (
    Case("guardrail_servers", 1, span("guardrail_start", "guardrail_end", 95), 1.5,
         (("guardrail_s", 0.15),), asked=CHAT),
    Case("guardrail_s", 0.2, span("guardrail_start", "guardrail_end"), 5, asked=CHAT),
    Case("guardrail_factor", 5, span("guardrail_start", "guardrail_end"), 3, asked=CHAT),
    Case("retrieval_servers", 1, span("retrieval_start", "retrieval_end", 95), 1.5,
         (("retrieval_s", 0.1),), asked=RAG),
    Case("retrieval_s", 0.4, span("retrieval_start", "retrieval_end"), 5, asked=RAG),
    Case("retrieval_factor", 5, span("retrieval_start", "retrieval_end"), 3, asked=RAG),
    Case("retrieval_tail_factor", 8, span("retrieval_start", "retrieval_end", 99), 3, asked=RAG),
    Case("storage_gbps", 0.8, away_s, 1.5, fleet=usual),
    Case("client_timeout_s", 0.1, outcome(Outcome.CLIENT_TIMEOUT), 10),
    Case("retry_max", 4, attempts, 1.3, TIMING_OUT),
    Case("retry_backoff_s", 4.0, between_tries, 4, TIMING_OUT),
    Case("retry_backoff_cap_s", 0.1, between_tries, 0.3, TIMING_OUT),
    Case("retry_jitter", 0.0, between_tries, 1.2, TIMING_OUT),
    Case("client_pool_limit", 1, span("client_start", "client_slot", 90), 100),
    Case("hedge_after_s", 0.05, attempts, 1.3),
    Case("client_cancel_share", 1.0, outcome(Outcome.CANCELLED), 10, (("client_patience_s", 0.5),)),
    Case("client_patience_s", 0.2, outcome(Outcome.CANCELLED), 2, (("client_cancel_share", 0.5),)),
    Case("client_stream_off", 1.0, span("engine_first", "client_first"), 5, asked=STREAMED),
    Case("client_loop_delay_s", 0.3, span("client_start", "client_slot"), 100),
    Case("client_read_tokens_s", 20, late_answers, 5, asked=STREAMED),
    Case("gateway_workers", 1, span("gateway_in", "gateway_authed", 95), 2,
         (("gateway_work_s", 0.15),)),
    Case("gateway_work_s", 0.1, span("gateway_in", "gateway_authed"), 10),
    Case("gateway_auth_s", 0.1, span("gateway_in", "gateway_authed"), 10),
    Case("gateway_factor", 50, span("gateway_in", "gateway_authed"), 10),
    Case("gateway_stall_share", 1, span("gateway_in", "gateway_authed"), 100, STALLS),
    Case("gateway_stall_s", 9, span("gateway_in", "gateway_authed"), 100,
         (("gateway_stall_share", 1.0),)),
    Case("gateway_buffer_bytes", 16_384, span("engine_first", "client_first"), 5,
         asked=STREAMED),
    Case("gateway_max_inflight", 1, gate(w.G_REFUSED), 10, (("client_timeout_s", 60.0),)),
    Case("abort_lost", 1.0, count(c.N_ABORTED), 0.1,
         (("client_cancel_share", 1.0), ("client_patience_s", 0.3))),
    Case("gateway_down", 1.0, lambda r: float(np.mean(r.told.gateway == 1)), 1.5,
         scope="gateway-1"),
    Case("gateway_retries", 3, tries, 1.5, (("gateway_timeout_s", 0.1),)),
    Case("gateway_timeout_s", 0.1, outcome(Outcome.ERROR), 10),
    Case("route_policy", 0, busiest, 0.6, (), routed_by(Policy.PREFIX_AFFINITY), asked=TALK),
    Case("router_refresh_s", 30, span("queued", "scheduled", 99), 1.2, (("max_num_seqs", 6.0),),
         routed_by(Policy.LEAST_BY_METRICS, refresh_ms=10.0)),
    Case("router_work_s", 0.2, span("router_in", "router_out"), 50),
    Case("router_max_inflight", 2, span("router_in", "router_queued_end", 90), 50),
    Case("affinity_overload", 1e-3, busiest, 0.6, (), routed_by(Policy.PREFIX_AFFINITY),
         asked=TALK),
    Case("health_check_s", 60, away_s, 1.3),
    Case("route_to_loading", 1, away_s, 0.7),
    Case("handoff_s", 0.3, span("prefill_end", "kv_transfer_start"), 5, (), apart),
    Case("router_retries", 3, tries, 1.5, (("router_timeout_s", 0.1),)),
    Case("router_timeout_s", 0.1, outcome(Outcome.ERROR), 10),
    Case("hbm_ratio", 0.5, Ran.tpot, 1.2),
    Case("sm_clock_ratio", 0.5, span("scheduled", "prefill_end"), 1.2),
    Case("allreduce_factor", 4, Ran.step_ms, 1.2),
    Case("kernel_factor", 2, Ran.step_ms, 1.3),
    Case("host_factor", 8, Ran.step_ms, 1.5),
    Case("spec_acceptance", 0.1, Ran.tpot, 1.5, (), drafting),
    Case("allreduce_eager", 1, Ran.step_ms, 1.1),
    Case("straggler_ratio", 0.6, Ran.step_ms, 1.2),
    Case("alltoall_factor", 10, Ran.step_ms, 1.2, (), experts),
    Case("expert_skew", 3, Ran.step_ms, 1.05, (), experts),
    Case("stage_link_factor", 50, Ran.step_ms, 1.05, (), staged),
    Case("allreduce_jitter", 1.0, lambda r: r.itl(90), 1.05),
    Case("max_num_seqs", 3, QUEUE, 10),
    Case("max_num_batched_tokens", 128, span("scheduled", "prefill_end"), 2),
    Case("prefill_chunk_limit", 128, span("scheduled", "prefill_end"), 2),
    Case("priority_scheduling", 1, urgent_first, 3, (), narrow),
    Case("kv_blocks", 260, count(c.N_PREEMPTIONS), 10, (("max_num_seqs", 24.0),)),
    Case("prefix_cache_blocks", 0, hits, 0.1),
    Case("kv_watermark_blocks", 150, QUEUE, 1.5, (), tight),
    Case("admit_whole_prompts", 1, count(c.N_PREEMPTIONS), 0.8,
         (("max_num_batched_tokens", 128.0),), tight),
    Case("tier_blocks", 50_000, count(c.TIER_HITS), 100, (("prefix_cache_blocks", 20.0),)),
    Case("kv_load_gbps", 0.05, span("kv_load_start", "kv_load_end", 90), 5,
         (("tier_blocks", 50_000.0), ("prefix_cache_blocks", 20.0))),
    Case("transfer_gbps", 0.2, span("kv_transfer_start", "kv_transfer_end"), 10, (), apart),
    Case("transfer_flow_gbps", 0.2, span("kv_transfer_start", "kv_transfer_end"), 10, (), apart),
    Case("kv_load_latency_s", 0.5, span("kv_load_start", "kv_load_end"), 5,
         (("tier_blocks", 50_000.0), ("prefix_cache_blocks", 20.0))),
    Case("transfer_latency_s", 0.5, span("kv_transfer_start", "kv_transfer_end"), 10, (), apart),
    Case("lora_slots", 1, count(c.LORA_LOADS), 1.5, (), adapting),
    Case("lora_host_slots", 1, span("lora_start", "lora_end"), 3, (("lora_slots", 1.0),),
         adapting),
    Case("lora_cold_s", 20, span("lora_start", "lora_end", 95), 2, (("lora_slots", 1.0),
         ("lora_host_slots", 1.0)), adapting),
    Case("lora_warm_s", 2, span("lora_start", "lora_end"), 2, (("lora_slots", 1.0),), adapting),
    Case("lora_load_sigma", 0.5, loads_spread, 1.5, (("lora_slots", 1.0),
         ("lora_host_slots", 1.0)), adapting),
    Case("lora_blocking", 1, Ran.itl, 3, (("lora_slots", 1.0), ("lora_host_slots", 1.0)), adapting),
    Case("grammar_s", 0.5, QUEUE, 5, asked=(("structured", 1),)),
    Case("grammar_workers", 1, QUEUE, 1.5, GRAMMARS, asked=(("structured", 1),)),
    Case("gc_pause_s", 1.0, Ran.itl, 3, (("gc_every_s", 5.0),)),
    Case("gc_every_s", 2.0, count(c.PAUSES), 5, (("gc_pause_s", 0.1),)),
    Case("compile_s", 1.0, count(c.COMPILES), 5),
    Case("forget_shapes", 1.0, count(c.COMPILES), 1.3, (("compile_s", 0.05),), from_s=20),
    Case("orphans_run_on", 1.0, lambda r: float(r.told.output_done.max()), 1.3,
         (("abort_lost", 1.0), ("client_cancel_share", 1.0), ("client_patience_s", 0.3)),
         asked=(("output_tokens", 100),)),
    Case("replica_down", 1.0, sent_away, 0.7, scope="vllm-0"),
    Case("replica_draining", 1.0, sent_away, 0.7, scope="vllm-0"),
    Case("route_weight", 0.2, sent_away, 0.7, scope="vllm-0"),
    Case("model_load_s", 120.0, away_s, 1.5),
    Case("weights_warm", 1.0, away_s, 0.8, (("model_load_s", 5.0), ("storage_gbps", 1.0))),
    Case("tokenizer_threads", 1, span("engine_in", "tokenize_start", 99), 2,
         (("tokenizer_factor", 20.0),)),
    Case("tokenizer_factor", 20, span("tokenize_start", "tokenize_end"), 10),
    Case("detokenizer_s", 0.1, span("prefill_end", "engine_first"), 20),
    Case("cpu_factor", 8, Ran.step_ms, 1.5),
    Case("edge_delay_s", 0.1, span("client_connected", "gateway_in"), 3, scope="client>gateway"),
    Case("edge_jitter_s", 0.1, unsteady, 3, scope="client>gateway", asked=STREAMED),
    Case("edge_loss", 0.3, unsteady, 3, scope="client>gateway", asked=STREAMED),
)  # fmt: skip


RESTARTS = {"storage_gbps", "health_check_s", "route_to_loading", "model_load_s", "weights_warm"}
"""Knobs of a start: the first replica is away from 20 to 30 s."""


@cache
def ran(
    fleet: Callable[[], Fleet],
    turned: tuple[Turned, ...],
    restarts: bool,
    asked: tuple[tuple[str, int], ...],
) -> Ran:
    count = 1_500 if restarts else 250
    lora = np.arange(count) % 5 if fleet is adapting else -1
    world = World(replace(fleet(), scrape_s=2.0), seed=3)
    given: dict[str, Any] = {"lora": lora, **dict(asked)}
    world.feed(requests(count, 8.0, **given))
    for one in turned:
        world.set(*one)
    if restarts:
        world.set("replica_down", 1.0, "vllm-0", 20 * S, 30 * S)
    told = world.advance(SECONDS * S)
    return Ran(told, world.samples(SECONDS * S))


def test_every_knob_has_a_case() -> None:
    assert {case.knob for case in CASES} | TOLD_ALONE == set(KNOBS)


@pytest.mark.parametrize("case", CASES, ids=[case.knob for case in CASES])
def test_a_knob_moves_what_it_stands_for(case: Case) -> None:
    restarts = case.knob in RESTARTS
    before = case.measure(ran(case.fleet, case.beside, restarts, case.asked))
    turned = (*case.beside, (case.knob, case.value, case.scope, case.from_s * S))
    after = case.measure(ran(case.fleet, turned, restarts, case.asked))
    if case.times > 1.0:
        assert after > case.times * before + 1e-9, (before, after)
    else:
        assert after < case.times * before, (before, after)
