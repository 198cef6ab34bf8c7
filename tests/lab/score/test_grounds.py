"""What is right evidence agrees with what `tailburn lab explain` says of each scenario."""

import re
from collections.abc import Mapping
from typing import Final

import pytest

from tailburn.lab.faults.catalogue import SCENARIOS
from tailburn.lab.score.grounds import GROUNDS, HOPS, SIGNALS

SPOKEN: Final[Mapping[str, str]] = {
    "hop:client": r"its start and its own slot|first byte",
    "hop:client>gateway": r"client>gateway",
    "hop:gateway": r"gateway",
    "hop:gateway>engine": r"between gateway and engine|gateway>engine",
    "hop:gateway>router": r"router and gateway",
    "hop:router>engine": r"router>engine",
    "hop:retrieval": r"retrieval span",
    "hop:tokenizer": r"tokenizer's wait",
    "hop:queue": r"queue|wait",
    "hop:prefill": r"prefill",
    "hop:decode": r"decode|tpot|tokens|itl|gaps|batch",
    "hop:kv_transfer": r"hand-off|transfer",
    "hop:kv_load": r"load",
    "hop:model_load": r"loads?|weights",
    "hop:lora_load": r"adapter.*load|load.*adapter",
    "hop:retry": r"attempts",
    "ttft": r"ttft|before they are scheduled",
    "client_ttft": r"first (token|byte)|client's ttft",
    "tpot": r"tpot|every step|step time",
    "itl_max": r"gap|itl",
    "offered_requests": r"offered load|arriv",
    "offered_tokens": r"offered load|tokens",
    "requests_waiting": r"wait|queue",
    "requests_running": r"running",
    "max_concurrent": r"max_num_seqs|cap",
    "request_share": r"share of arrivals",
    "replicas_ready": r"ready",
    "replica_age": r"\bage\b|young",
    "attempts": r"attempts",
    "aborts": r"abort|499|hang up|gives? up",
    "gateway_inflight": r"gateway has.* in flight",
    "orphans": r"nobody tells the engine|orphan",
    "prompt_tokens": r"long prompt|prompts of",
    "context_tokens": r"contexts?",
    "tenant_share": r"tenant|batch client",
    "batch_share": r"batch share",
    "priority": r"priority",
    "step_tokens": r"tokens per step|token budget",
    "prefill_residual": r"prefill.*(predict|expected)|have to compute|same clock"
    r"|part.* that compute|prefill and (tpot|step time) up|prefill x",
    "decode_residual": r"steps?.* (longer|of what).*predict|kernels take longer|step time up"
    r"|tpot up alike",
    "tokens_per_step": r"tokens a step|tokens per step",
    "spec_acceptance": r"accepted",
    "version": r"release",
    "compile": r"compil",
    "grammar_waiting": r"wait for their grammar",
    "structured_share": r"structured",
    "host_cpu": r"cpu|one thread",
    "host_gap": r"between (two )?steps|launches nothing",
    "gc": r"garbage|pause",
    "sm_active": r"gpus (idle|wait)",
    "sm_clock": r"clock",
    "power_violation": r"throttle|power",
    "dram_active": r"bandwidth",
    "memory_errors": r"ecc|bad rows",
    "kv_usage_ratio": r"\bkv\b",
    "preemptions": r"preempt",
    "prefix_cache_hit_ratio": r"hits?\b",
    "computed_tokens": r"computed tokens",
    "kv_load_bandwidth": r"gb/s",
    "external_hits": r"hit in the tier",
    "kv_transfer_time": r"hand-off",
    "rdma_bytes": r"rdma",
    "tcp_bytes": r"tcp",
    "collective_time": r"collective",
    "collective_skew": r"peers|rank",
    "nvlink_bytes": r"nvlink",
    "pcie_bytes": r"pcie",
    "ib_errors": r"link_downed|link errors",
    "ib_wait": r"port_xmit_wait",
    "lora_slots": r"slot",
    "streamed_share": r"share of streamed",
    "flush_gaps": r"buffer.*full|flush",
    "stall_mode": r"exactly|constant",
    "pool_waiting": r"connection",
    "edge_gap": r"one way|under way|round trip",
    "zone_pair": r"zone|fabric",
    "scrape_late": r"scrapes are late",
}  # fmt: skip
"""How a scenario speaks of a signal."""

SHARED: Final[Mapping[frozenset[str], str]] = {
    frozenset({"S8", "S18"}): "collective times tell S8 from S18 by staying what they were",
    frozenset({"S25", "S35"}): "the same signals, of other replicas in another order",
}
"""Scenarios that share what tells them with their nearest, and how they are told all the same."""


def _said(scenario: str) -> str:
    s = SCENARIOS[scenario]
    near = (c.words for c in s.confusable)
    return " ".join((s.title, s.broken, s.expect, s.why, s.cause, s.verdict, *near)).lower()


def test_there_are_words_for_every_signal_that_is_a_ground() -> None:
    grounds = {name for groups in GROUNDS.values() for group in groups for name in group}
    assert grounds - SPOKEN.keys() == set()
    assert SPOKEN.keys() <= SIGNALS.keys()


@pytest.mark.parametrize("scenario", GROUNDS)
def test_every_ground_is_spoken_of_by_its_scenario(scenario: str) -> None:
    said = _said(scenario)
    grounds = {name for group in GROUNDS[scenario] for name in group}
    assert {name for name in grounds if not re.search(SPOKEN[name], said)} == set()


@pytest.mark.parametrize("scenario", GROUNDS)
def test_the_hop_of_a_scenario_is_where_its_time_goes(scenario: str) -> None:
    """By its span, or by what the span's time shows as."""
    first, hop = GROUNDS[scenario][0], SCENARIOS[scenario].hop
    assert hop in HOPS
    assert f"hop:{hop}" in first


@pytest.mark.parametrize("scenario", GROUNDS)
def test_what_tells_a_scenario_is_not_what_its_nearest_shows(scenario: str) -> None:
    nearest = SCENARIOS[scenario].confusable[0].scenario
    if nearest not in GROUNDS:
        return
    telling = GROUNDS[scenario][-1]
    shown, theirs = GROUNDS[nearest][0], GROUNDS[nearest][-1]
    assert not telling & shown, f"{nearest} shows it too"
    shared = telling & theirs
    assert bool(shared) == (frozenset({scenario, nearest}) in SHARED), sorted(shared)
