"""Every page is read by Prometheus's own parsers, and says what its exporter would say."""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.lab.faults.catalogue import SCENARIOS
from tailburn.lab.fleet import standard
from tailburn.lab.fleet.parts import Offload
from tailburn.lab.physics.layout import Layout, Speculation
from tailburn.lab.telemetry.metrics import MetricsText, PageError
from tailburn.lab.telemetry.metrics.gpus import cards_of
from tailburn.lab.telemetry.metrics.listing import (
    ENGINE_PAGES,
    GATEWAY_PAGES,
    KINDS,
    ROUTER_PAGES,
)
from tailburn.lab.telemetry.metrics.page import _go, _python, template
from tailburn.lab.telemetry.spans.of_fleet import wiring_of
from tailburn.lab.world.world import World
from tests.lab.telemetry.metrics.running import S, last_of, parsed, run, target, value, with_stacks

STACKS = [
    *[{"engine": stack} for stack in ENGINE_PAGES],
    *[{"gateway": stack} for stack in GATEWAY_PAGES],
    *[{"router": stack} for stack in ROUTER_PAGES],
]
LINTS = (
    "should not contain ':'",
    "camelCase",
    'should have "_total" suffix',
    'should not have "_total" suffix',
    'should not have "_count" suffix',
    'should not have "le" label',
    "should not contain abbreviated units",
    "no help text",
    "use base unit",
    "should not include type",
    "counter metrics should",
)
"""What promtool says of names that real exporters have."""


def _pages() -> Iterator[tuple[str, bytes]]:
    seen = set()
    here = run()
    for stacks in STACKS:
        scrapes = last_of(here.scrapes(with_stacks(here.fleet, **stacks)))
        for one in scrapes.targets:
            if (one.kind, one.stack) in seen:
                continue
            seen.add((one.kind, one.stack))
            text = scrapes.text(one, len(scrapes) - 1)
            assert text is not None
            yield f"{one.kind} {one.stack}", text


@pytest.fixture(scope="module")
def pages() -> dict[str, bytes]:
    """One page of each stack."""
    return dict(_pages())


def test_all_stacks_have_pages_that_prometheus_client_reads(pages: dict[str, bytes]) -> None:
    assert len(pages) == len(ENGINE_PAGES) + len(GATEWAY_PAGES) + len(ROUTER_PAGES) + 4
    for name, text in pages.items():
        families = parsed(text)
        assert sum(len(family.samples) for family in families.values()) > 1, name


def test_promtool_reads_all_pages_and_blames_names_alone(
    pages: dict[str, bytes], need_program: Callable[[str], str]
) -> None:
    promtool = need_program("promtool")
    for name, text in pages.items():
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True)
        told = (done.stderr + done.stdout).decode()
        assert done.returncode in (0, 3), f"{name}: {told}"
        strange = [line for line in told.splitlines() if not any(lint in line for lint in LINTS)]
        assert not strange, f"{name}: {strange[:5]}"


def test_no_series_appears_twice_and_histograms_hold_together(pages: dict[str, bytes]) -> None:
    for name, text in pages.items():
        lines = [line for line in text.decode().splitlines() if line and line[0] != "#"]
        series = [line.rpartition(" ")[0] for line in lines]
        assert len(series) == len(set(series)), name
        for family in parsed(text).values():
            if family.type == "histogram":
                _holds_together(name, family)


def _holds_together(page: str, family: object) -> None:
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    counts = {}
    for sample in family.samples:  # type: ignore[attr-defined]
        labels = {k: v for k, v in sample.labels.items() if k != "le"}
        key = tuple(sorted(labels.items()))
        if sample.name.endswith("_bucket"):
            buckets.setdefault(key, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_count"):
            counts[key] = sample.value
    for key, found in buckets.items():
        heights = [height for _, height in found]
        assert [bound for bound, _ in found] == sorted(bound for bound, _ in found), (page, key)
        assert heights == sorted(heights), (page, family, key)
        assert heights[-1] == counts[key], (page, family, key)


def test_python_exporters_print_floats_and_created_and_others_neither(
    pages: dict[str, bytes],
) -> None:
    vllm, router = pages["engine vllm"].decode(), pages["router vllm-router"].decode()
    assert re.search(r"^vllm:num_requests_running\{.*\} \d+\.0$", vllm, re.M)
    assert "vllm:time_to_first_token_seconds_created{" in vllm
    assert 'engine="0",le="0.001",model_name=' in vllm
    assert re.search(r"^vllm_router_active_workers 2$", router, re.M)
    assert "_created" not in router
    # Dynamo's own series are printed by Rust, those of the engine behind it by Python.
    worker = pages["engine dynamo-vllm"].decode()
    own = r'^dynamo_component_requests_total\{.*dynamo_endpoint="generate".*\} \d+$'
    assert re.search(own, worker, re.M)
    assert re.search(r"^vllm:generation_tokens_total\{.*\} [\d.e+]+$", worker, re.M)
    assert 'le="0.3"' in worker and "vllm:e2e_request_latency_seconds_created" in worker


def test_process_metrics_tell_when_a_process_began(pages: dict[str, bytes]) -> None:
    assert value(pages["engine vllm"], "process_start_time_seconds") < 1_796_000_000


def test_a_target_of_stack_none_is_not_scraped() -> None:
    here = run()
    scrapes = here.scrapes(with_stacks(here.fleet, gateway="none", engine="none"))[0]
    assert {one.kind for one in scrapes.targets} == {"router", "node", "dcgm", "nccl"}


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_the_fleet_of_every_scenario_has_pages(name: str) -> None:
    fleet = SCENARIOS[name].fleet(4.0)
    world = World(fleet, seed=1)
    attempts = world.advance(31 * S)
    scrapes = MetricsText(fleet, wiring_of(fleet)).feed(attempts, world.samples(31 * S))
    assert len(scrapes) >= 2
    for one in scrapes.targets:
        assert scrapes.values[one.name].shape[1] == len(scrapes.pages[one.name].series)
    engines = {one.name for one in scrapes.targets if one.kind == "engine"}
    assert engines == {replica.name for replica in fleet.replicas}
    owned = {c.replica for cards in cards_of(fleet) for c in cards if c.replica >= 0}
    assert owned == set(range(len(fleet.replicas)))


@pytest.mark.parametrize("stack", ENGINE_PAGES)
def test_an_engine_shows_more_as_it_is_set_up(stack: str) -> None:
    layout = Layout("Llama-3.1-70B", "H200", 4, speculation=Speculation(3))
    fleet = standard(2.0, layout=layout, clients=50)
    tier = Offload(tier_blocks=5_000)
    fleet = replace(fleet, pools=tuple(replace(pool, offload=tier) for pool in fleet.pools))
    world = World(fleet, seed=1)
    attempts = world.advance(16 * S)
    scrapes = MetricsText(fleet, with_stacks(fleet, engine=stack)).feed(
        attempts, world.samples(16 * S)
    )
    text = scrapes.text(target(scrapes, "vllm-0"), 0)
    assert text is not None
    names = set(parsed(text))
    more = {
        "vllm": {"vllm:spec_decode_num_drafts", "vllm:kv_offload_load_bytes"},
        "dynamo-vllm": {"vllm:spec_decode_num_drafts", "vllm:kv_offload_load_bytes"},
        "sglang": {"sglang:hicache_backup_bytes", "sglang:spec_accept_length"},
        "trtllm": {"trtllm_spec_decode_num_draft_tokens", "trtllm_kv_cache_host_utilization"},
        "dynamo": {"trtllm_spec_decode_num_draft_tokens", "trtllm_kv_cache_host_utilization"},
    }
    assert more.get(stack, set()) <= names


def test_targets_are_told_apart_and_carry_where_they_are() -> None:
    scrapes = run().scrapes()[0]
    assert len({one.name for one in scrapes.targets}) == len(scrapes.targets)
    assert len({one.path for one in scrapes.targets}) == len(scrapes.targets)
    engine = target(scrapes, "vllm-0")
    assert engine.host == "node-0"
    assert engine.labels["zone"] == "zone-a"
    assert engine.labels["model"] == "llama-3.1-70b"
    assert {one.kind for one in scrapes.targets} == set(KINDS)


@given(st.floats(allow_nan=False, min_value=-1e18, max_value=1e18))
def test_printed_values_are_read_back_as_they_were(number: float) -> None:
    assert float(_python(number)) == number
    assert float(_go(number)) == number


@given(st.floats(min_value=0, max_value=1e17))
def test_python_values_are_printed_as_prometheus_client_prints_them(number: float) -> None:
    from prometheus_client.utils import floatToGoString

    assert _python(number).decode() == floatToGoString(number)  # type: ignore[no-untyped-call]


def test_unknown_pages_and_broken_lines_say_what_is_accepted() -> None:
    with pytest.raises(PageError, match="no page 'vlm'; there are .*vllm"):
        template("vlm")
