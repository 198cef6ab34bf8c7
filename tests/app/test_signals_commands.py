"""`tailburn signals` as a user runs it."""

import json
from pathlib import Path

import pytest

from tests.app.conftest import Run
from tests.app.targets import answering, saved


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """A saved answer of a real vLLM."""
    file = tmp_path / "vllm.prom"
    file.write_bytes(saved("vllm-0.32.0"))
    return file


def test_check_tells_what_is_found_and_under_which_name(run: Run, vllm: Path) -> None:
    told = run("signals", "check", "vllm.prom")
    assert told.code == 0, told.out + told.err
    (line,) = [line for line in told.out.splitlines() if " kv_usage_ratio" in line]
    assert line.split() == ["3", "KV", "cache", "kv_usage_ratio", "*", "found",
                            "vllm:kv_cache_usage_perc"]  # fmt: skip
    assert "nobody tells collective_time" in told.out


def test_check_ends_with_1_where_the_walk_would_be_blind(run: Run, vllm: Path) -> None:
    text = vllm.read_text().replace("vllm:kv_cache_usage_perc", "vllm:renamed")
    vllm.write_text(text)
    told = run("signals", "check", "vllm.prom")
    assert told.code == 1
    (line,) = [line for line in told.out.splitlines() if " kv_usage_ratio" in line]
    assert "missing" in line
    assert "blind: a full KV cache; vllm:kv_cache_usage_perc would tell" in line


def test_check_as_json_is_one_object_per_target_and_signal(run: Run, vllm: Path) -> None:
    told = run("signals", "check", "vllm.prom", "--json")
    found = {row["signal"]: row for row in map(json.loads, told.out.splitlines())}
    assert found["queue_time"]["standing"] == "found"
    assert found["queue_time"]["unit"] == "s"
    assert found["max_concurrent"]["blinds"] == "the cap is learnt from plateaus instead"


def test_check_reads_a_file_of_targets_and_says_which_are_down(run: Run, tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text("- targets: ['127.0.0.1:1', '127.0.0.1:2']\n")
    told = run("signals", "check", "--file", "targets.yaml", "--json")
    assert told.code == 1
    rows = [json.loads(line) for line in told.out.splitlines()]
    assert [(row["target"], row["standing"]) for row in rows] == [
        ("127.0.0.1:1", "down"),
        ("127.0.0.1:2", "down"),
    ]


def test_check_reads_the_targets_of_the_settings(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(saved("vllm-0.32.0")) as address:
        (tmp_path / "targets.json").write_text(json.dumps([{"targets": [address]}]))
        monkeypatch.setenv("TAILBURN_TARGETS_FILES", "targets.json")
        told = run("signals", "check")
    assert told.code == 0, told.err
    assert told.out.startswith(f"{address}: vllm\n")


def test_check_asks_a_prometheus_for_the_targets_that_it_has(run: Run) -> None:
    metric = {"__name__": "tgi_queue_size", "job": "chat", "instance": "a:1"}
    data = {"resultType": "vector", "result": [{"metric": metric, "value": [1.5, "7"]}]}
    body = json.dumps({"status": "success", "data": data}).encode()
    with answering(body) as address:
        told = run("signals", "check", "--prometheus", f"http://{address}", "--json")
    rows = {row["signal"]: row for row in map(json.loads, told.out.splitlines())}
    assert rows["requests_waiting"]["target"] == "chat a:1"
    assert rows["requests_waiting"]["metric"] == "tgi_queue_size"
    assert rows["kv_usage_ratio"]["standing"] == "never told"
    assert told.code == 1


def test_check_says_what_a_file_of_targets_has_wrong(run: Run, tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text("- target: [a]\n- targets: ['x:y']\n")
    told = run("signals", "check", "--file", "targets.yaml")
    assert told.code == 2
    assert "targets.yaml:1: file[0].target: is not known; want one of labels, targets" in told.err
    assert "targets.yaml:2: file[1].targets[0]: 'x:y' Port could not" in told.err


def test_check_without_a_target_says_how_to_name_one(run: Run) -> None:
    told = run("signals", "check")
    assert (told.code, told.out) == (2, "")
    assert "no targets: name some" in told.err


def test_check_of_metrics_that_nobody_knows(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.prom").write_text("python_gc_objects_collected_total 3\n")
    told = run("signals", "check", "x.prom")
    assert told.code == 1
    assert told.out.startswith("x.prom: none of its 1 samples has a known name")


def test_names_of_a_user_are_known_to_check(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(
        "sources:\n  - source: own\n    role: engine\n    readings:\n"
        "      - {signal: requests_waiting, metric: own_depth}\n"
    )
    (tmp_path / "x.prom").write_text("own_depth 3\n")
    assert "own_depth" in run("signals", "check", "x.prom", "--signals", "ours.yaml").out
    (tmp_path / "ours.yaml").write_text("sources:\n  - source: own\n")
    told = run("signals", "check", "x.prom", "--signals", "ours.yaml")
    assert told.code == 2
    assert "ours.yaml:2: file.sources[0]: want readings" in told.err


def test_list_names_every_signal_and_what_is_blind_without_it(run: Run) -> None:
    told = run("signals", "list", "--json")
    found = {row["signal"]: row for row in map(json.loads, told.out.splitlines())}
    assert found["prefill_tokens"]["derived"] == "prompt_tokens - cached_prompt_tokens"
    assert "vllm" in found["prefill_tokens"]["sources"]
    assert "requests_waiting *" in run("signals", "list").out


def test_list_of_sources_gives_the_names_of_each_program(run: Run) -> None:
    told = run("signals", "list", "--sources", "--json")
    rows = [json.loads(line) for line in told.out.splitlines()]
    old = [r for r in rows if r["metric"] == "vllm:gpu_cache_usage_perc"]
    assert [(r["signal"], r["until"]) for r in old] == [("kv_usage_ratio", "0.11.2")]
