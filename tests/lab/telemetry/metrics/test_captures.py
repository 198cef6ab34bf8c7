"""Stack by stack: our pages have the families of scrapes recorded from running programs.

Compared are names, types, help texts, keys of labels with their order, and bounds of histograms.
What is ours alone, or the capture's alone, is named here with the reason.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tailburn.lab.telemetry.metrics.page import PAGES
from tests.lab.telemetry.metrics.captured import Shape, captured, shapes
from tests.lab.telemetry.metrics.running import last_text, run, with_stacks

LONGER = re.compile(r"vllm:request_(prompt|generation|params_max|max_num|prefill_kv)\w*tokens")
"""Bounds up to the model's length: of the capture's small model they end sooner."""


@dataclass(frozen=True)
class Case:
    """A capture, the target that should look like it, and what of either is its own."""

    kind: str
    stack: str
    name: str
    folder: str
    pattern: str
    ours: str = "$^"
    """Families that the capture had no reason for."""
    theirs: str = "$^"
    """Families that ours never has a reason for."""
    keys: str = "$^"
    """Families whose series have other labels in ours, for a reason."""


CASES = (
    Case("engine", "vllm", "vllm-0", "captures/vllm-0.32.0/metrics", "run*.prom"),
    Case("engine", "vllm", "vllm-0", "captures/litellm-vllm/metrics", "vllm-*.prom"),
    Case("gateway", "litellm", "gateway-1", "captures/litellm-vllm/metrics", "litellm-*.prom"),
    Case(
        "router", "sglang-router", "main-router", "captures/sglang-router/metrics",
        "run[12]*router.prom",
    ),
    Case(
        "router", "smg", "main-router", "captures/sglang-router/metrics", "run3*router.prom",
    ),
    Case(
        "router", "vllm-router", "main-router", "captures/vllm-router/metrics", "*router.prom",
    ),
    Case(
        "router", "production-stack", "main-router", "captures/production-stack/metrics",
        "*router.prom",
    ),
    Case(
        "router", "dynamo", "main-router", "captures/dynamo-mocker/metrics", "run1*frontend.prom",
    ),
    Case(
        "engine", "dynamo", "vllm-0", "captures/dynamo-mocker/metrics", "run1*worker*.prom",
        # The mocker is no TensorRT-LLM, and loads no model.
        ours="trtllm_.*|dynamo_component_(gpu_cache_usage_percent|total_blocks|model_load.*)",
        theirs="vllm:.*",
    ),
    Case(
        "engine", "dynamo-vllm", "vllm-0", "captures/dynamo-mocker/metrics", "run1*worker*.prom",
        ours="vllm:.*|python_.*|process_.*|dynamo_component_(gpu_cache_usage_percent|total_blocks|"
        "model_load.*)",
        theirs="vllm:gpu_cache_usage_perc",
        keys="vllm:.*",
    ),
)  # fmt: skip


def _ours(case: Case) -> dict[str, Shape]:
    return shapes([_text(case).decode()])


def _text(case: Case) -> bytes:
    here = run()
    wiring = with_stacks(here.fleet, **{case.kind: case.stack})
    return last_text(here.scrapes(wiring), case.name)


def _told(families: dict[str, Shape], without: str) -> dict[str, Shape]:
    return {name: shape for name, shape in families.items() if not re.fullmatch(without, name)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.stack} in {case.folder[9:-8]}")
def test_a_page_has_the_families_of_the_recorded_one(case: Case, shared_dir: Path) -> None:
    theirs = _told(captured(shared_dir / case.folder, case.pattern), case.theirs)
    ours = _told(_ours(case), case.ours)
    if case.stack == "dynamo-vllm":
        theirs = _told(theirs, case.keys)
    assert set(ours) == set(theirs)
    assert {name: shape.kind for name, shape in ours.items()} == {
        name: shape.kind for name, shape in theirs.items()
    }
    for name, shape in ours.items():
        real = theirs[name]
        if shape.keys:
            assert shape.keys <= real.keys, name
            assert shape.order == real.order, name
        assert shape.help == real.help, name
        if LONGER.match(name):
            assert shape.bounds[: len(real.bounds) - 1] == real.bounds[:-1], name
        elif shape.bounds and real.bounds:
            assert shape.bounds == real.bounds, name


SAMPLES = (
    ("engine", "trtllm", "vllm-0", "trtllm_dynamo_worker_scrape.prom", r"dynamo_.*|.*_created"),
    ("engine", "triton", "vllm-0", "triton_core_nv_inference.prom", "$^"),
    ("engine", "triton", "vllm-0", "triton_trtllm_backend.prom", "$^"),
    ("gateway", "envoy-ai-gateway", "gateway-1", "envoy_aigw_metrics.prom", "$^"),
    ("dcgm", "dcgm", "dcgm-exporter-node-0", "dcgm_exporter_default_shape.prom", "$^"),
    ("nccl", "nccl", "nccl-inspector-node-0", "nccl_inspector.prom", "nccl_p2p.*"),
    ("node", "node", "node_exporter-node-0", "node_exporter_infiniband.prom", ".*legacy.*"),
)


@pytest.mark.parametrize(
    ("kind", "stack", "name", "file", "without"), SAMPLES, ids=lambda v: str(v)
)
def test_a_page_has_the_families_of_a_published_one(
    kind: str, stack: str, name: str, file: str, without: str, shared_dir: Path
) -> None:
    given = case_of(kind, stack, name)
    ours = _ours(given)
    theirs = _told(captured(shared_dir / "samples", file), without)
    assert set(theirs) <= set(ours), sorted(set(theirs) - set(ours))
    for family, real in theirs.items():
        shape = ours[family]
        assert shape.kind == real.kind, family
        if shape.keys:
            assert shape.keys <= real.keys, family
        if file != "envoy_aigw_metrics.prom":
            assert shape.bounds == real.bounds, family


def case_of(kind: str, stack: str, name: str) -> Case:
    """A case without a capture; hosts have no stack to choose."""
    if kind in ("dcgm", "nccl", "node"):
        kind, stack = "engine", "vllm"
    return replace(CASES[0], kind=kind, stack=stack, name=name)


def test_sglang_has_the_families_of_its_release_and_the_bounds_of_the_published_scrape(
    shared_dir: Path,
) -> None:
    """The published one is of 0.5.6 to 0.5.9: what 0.5.23 renamed or dropped is named here."""
    gone = {
        "sglang:num_retractions", "sglang:engine_startup_time", "sglang:engine_load_weights_time",
        "sglang:cuda_graph_passes_total", "sglang:num_prefill_prealloc_queue_reqs",
        "sglang:kv_transfer_speed_gb_s", "sglang:kv_transfer_bootstrap_ms",
        "sglang:kv_transfer_alloc_ms", "sglang:kv_transfer_total_mb",
    }  # fmt: skip
    other = {"sglang:queue_time_seconds", "sglang:kv_transfer_latency_ms"}
    labelled = {"sglang:time_to_first_token_seconds", "sglang:e2e_request_latency_seconds"}
    ours = _ours(replace(CASES[0], stack="sglang"))
    theirs = _told(captured(shared_dir / "samples", "sglang_dynamo*"), "dynamo_.*")
    assert set(theirs) - set(ours) == gone
    for name in set(theirs) & set(ours) - other:
        assert ours[name].kind == theirs[name].kind, name
        assert ours[name].bounds == theirs[name].bounds, name
    for name in labelled:
        assert all("is_streaming" in keys for keys in ours[name].keys)
    assert not any(name.endswith("_created") for name in ours)


def test_the_service_finds_all_that_its_walk_needs(tmp_path: Path) -> None:
    """Its table of names is made of the exporters' sources, too, and not of these pages."""
    asked = []
    for stack in ("vllm", "sglang", "trtllm", "dynamo-vllm"):
        asked.append(tmp_path / f"{stack}.prom")
        asked[-1].write_bytes(_text(replace(CASES[0], stack=stack)))
    for name in ("gateway-1", "main-router", "dcgm-exporter-node-0", "nccl-inspector-node-0",
                 "node_exporter-node-0", "cadvisor-node-0"):  # fmt: skip
        asked.append(tmp_path / f"{name}.prom")
        asked[-1].write_bytes(_text(replace(CASES[0], name=name)))
    command = [sys.executable, "-m", "tailburn.app", "signals", "check", "--json", *map(str, asked)]
    told = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    rows = [json.loads(line) for line in told.stdout.splitlines()]
    found = {
        (Path(row["target"]).stem, row["signal"]) for row in rows if row["standing"] == "found"
    }
    assert {target for target, _ in found} == {path.stem for path in asked}
    missing = {
        (Path(row["target"]).stem, row["signal"])
        for row in rows
        if row["needed"] and row["standing"] == "missing" and row["target"]
    }
    assert not missing


def test_every_template_is_used() -> None:
    from tailburn.lab.telemetry.metrics import listing

    source = Path(listing.__file__).read_text() + "".join(p.read_text() for p in PAGES.glob("*"))
    unused = [path.stem for path in PAGES.glob("*.prom") if path.stem not in source]
    assert not unused
