"""Answers of real programs: which signals each tells, and that no figure changes on the way."""

import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.signals.survey import Standing, survey
from tests.collector.signals.reading import mapped, rows, saved, values


def scrape(name: str) -> str:
    return saved(name).decode()


def blind(text: str) -> set[str]:
    """What the walk needs and does not get."""
    found = survey(load_catalogue(), mapped(text))
    return {finding.signal.name for finding in found if finding.blinds_walk}


def sampled(text: str, name: str, **labels: str) -> float:
    """The sum of a metric's samples, as the client library reads them."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_vllm_tells_all_that_the_walk_needs() -> None:
    text = scrape("vllm-0.32.0")
    assert blind(text) == set()
    told = values(text)
    assert told["decode_tokens sum"] == sampled(text, "vllm:generation_tokens_total")
    assert told["prefill_tokens sum"] == sampled(
        text, "vllm:prompt_tokens_by_source_total", source="local_compute"
    )
    assert told["ttft histogram_sum"] == sampled(text, "vllm:time_to_first_token_seconds_sum")
    assert told["ttft histogram_bucket"] == sampled(text, "vllm:time_to_first_token_seconds_bucket")
    models = {json.loads(row["labels"]).get("model") for row in rows(text)}
    assert models == {"tiny-llama", None}  # the size of the cache names no model


def test_litellm_tells_the_gateway_without_a_word_of_its_users() -> None:
    text = scrape("litellm-1.108")
    assert blind(text) == set()
    assert values(text)["gateway_requests sum"] == sampled(
        text, "litellm_proxy_total_requests_metric_total"
    )
    kept = {label for row in rows(text) for label in json.loads(row["labels"])}
    assert kept == {"le", "model", "reason", "replica", "source"}


def test_a_worker_of_dynamo_speaks_through_its_engine_first() -> None:
    text = scrape("dynamo-1.6.1-worker")
    told = values(text)
    assert told["requests_running gauge"] == sampled(text, "vllm:num_requests_running") == 8
    assert told["requests_waiting gauge"] == sampled(text, "vllm:num_requests_waiting") == 11
    assert blind(text) == {"queue_time", "prefill_tokens", "decode_tokens"}


def test_a_frontend_of_dynamo_is_a_gateway() -> None:
    text = scrape("dynamo-1.6.1-frontend")
    told = values(text)
    assert told["gateway_requests_running gauge"] == 32
    assert told["max_concurrent gauge"] == 8
    assert blind(text) == set()


@pytest.mark.parametrize(
    ("name", "source", "healthy"),
    [
        ("smg-1.13.0", "sglang-router", 2),
        ("production-stack-a6c01db", "production-stack", 2),
        ("vllm-router-0.1.17", "vllm-router", 2),
    ],
)
def test_routers_tell_how_many_replicas_they_send_to(name: str, source: str, healthy: int) -> None:
    text = scrape(name)
    assert mapped(text).sources == {source}
    assert values(text)["gateway_workers_healthy gauge"] == healthy


@pytest.mark.parametrize(
    ("name", "sources", "missing"),
    [
        ("vllm_dynamo_worker_scrape", {"vllm", "lmcache", "dynamo-worker"}, set()),
        ("sglang_dynamo_worker_scrape", {"sglang", "dynamo-worker"}, set()),
        (
            "trtllm_dynamo_worker_scrape",
            {"trtllm", "dynamo-worker"},
            {"requests_waiting", "prefill_tokens", "decode_tokens", "preemptions"},
        ),
        ("dynamo_frontend_scrape", {"dynamo"}, set()),
        ("dcgm_exporter_default_shape", {"dcgm"}, set()),
        ("dcgm_exporter_readme", {"dcgm"}, {"gpu_xid"}),
        ("nccl_inspector", {"nccl-inspector"}, set()),
        ("node_exporter_infiniband", {"node-infiniband"}, set()),
        (
            "triton_trtllm_backend",
            {"triton"},
            {"requests_finished", "queue_time", "prefill_tokens", "decode_tokens", "ttft"}
            | {"preemptions"},
        ),
    ],
)
def test_answers_that_others_wrote_down(
    shared_dir: Path, name: str, sources: set[str], missing: set[str]
) -> None:
    text = (shared_dir / "samples" / f"{name}.prom").read_text()
    assert mapped(text).sources == sources
    assert blind(text) == missing


def test_every_sample_of_a_known_program_keeps_its_sum(shared_dir: Path) -> None:
    text = (shared_dir / "samples" / "node_exporter_infiniband.prom").read_text()
    told = values(text)
    sent = sampled(text, "node_infiniband_port_data_transmitted_bytes_total")
    assert told["ib_tx_bytes sum"] == sent
    assert told["ib_errors sum"] >= sampled(text, "node_infiniband_symbol_error_total")


def test_a_ratio_of_two_counters_counts_as_told() -> None:
    found = {f.signal.name: f for f in survey(load_catalogue(), mapped(scrape("vllm-0.32.0")))}
    assert found["prefix_cache_hit_ratio"].standing is Standing.DERIVED
    assert found["spec_accept_ratio"].standing is Standing.MISSING
    assert found["max_concurrent"].standing is Standing.NEVER
