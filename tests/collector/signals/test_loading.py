"""Files of signals: what is shipped, what users add, and every fault with its line."""

from pathlib import Path

import pytest

from tailburn.collector.signals.catalogue import Form, part_of
from tailburn.collector.signals.loading import SHIPPED, load_catalogue
from tailburn.engine.problems import BadFiles
from tests.collector.signals.reading import values, write

OURS = """\
signals:
  tokens_dropped: {kind: counter, unit: tokens, role: engine, about: tokens thrown away}
sources:
  - source: own-engine
    role: engine
    labels: {model: served}
    readings:
      - {signal: requests_waiting, metric: own_depth}
      - {signal: tokens_dropped, metric: own_dropped_total}
  - source: vllm
    readings:
      - {signal: requests_waiting, metric: vllm:our_fork_waiting}
"""


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(BadFiles) as told:
        load_catalogue([write(folder, text)])
    return [f"{p.line}: {p.field}: {p.wanted}" for p in told.value.problems]


def test_what_is_shipped_is_sound() -> None:
    catalogue = load_catalogue()
    assert {source.file for source in catalogue.sources} == {SHIPPED}
    told = {reading.signal for reading in catalogue.readings}
    derived = {s.name for s in catalogue.signals.values() if s.derived}
    assert set(catalogue.signals) - told - derived == set()


def test_each_stack_tells_the_queue_under_its_own_name() -> None:
    catalogue = load_catalogue()
    told = {r.source: r.through for r in catalogue.readings if r.signal == "requests_waiting"}
    assert told["vllm"] == "vllm:num_requests_waiting"
    assert told["trtllm"] == "trtllm_num_requests_waiting"
    assert told["tgi"] == "tgi_queue_size"


def test_readings_of_a_user_come_before_ours(tmp_path: Path) -> None:
    catalogue = load_catalogue([write(tmp_path, OURS)])
    waiting = [r.through for r in catalogue.readings if r.signal == "requests_waiting"]
    assert waiting[0] == "own_depth"
    assert waiting.index("vllm:our_fork_waiting") < waiting.index("vllm:num_requests_waiting")
    text = 'vllm:our_fork_waiting 3\nvllm:num_requests_waiting 4\nown_dropped_total{served="m"} 7\n'
    assert values(text, catalogue) == {"requests_waiting gauge": 3.0, "tokens_dropped sum": 7.0}


def test_a_counter_is_known_with_total_and_without() -> None:
    uses = load_catalogue().uses
    for name in (b"vllm:num_preemptions_total", b"vllm:num_preemptions"):
        assert [use.form for use in uses[name]] == [Form.SUM]
    assert b"vllm:num_preemptions_created" not in uses


def test_ray_writes_the_names_of_vllm_otherwise() -> None:
    assert values("ray_vllm_num_requests_waiting 5\n") == {"requests_waiting gauge": 5.0}


def test_a_part_is_named_by_what_others_do_not_share() -> None:
    metrics = ("a:num_queue_reqs", "a:num_grammar_queue_reqs")
    assert [part_of(metric, metrics) for metric in metrics] == ["queue_reqs", "grammar_queue_reqs"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1: file: is empty; want signals or sources, see docs/signals.md"),
        ("a: [", "1: YAML: "),
        ("rules: []", "1: file.rules: is not known; want one of signals, sources"),
        (
            "signals:\n  x: {kind: guage, unit: s, role: engine, about: y}",
            "2: file.signals.x.kind: is not known; want one of counter, gauge, histogram; "
            "did you mean gauge?",
        ),
        ("signals:\n  ttft: {kind: gauge}", "2: file.signals.ttft: signal ttft is already at "),
        ("signals:\n  x: {kind: gauge}", "2: file.signals.x: want unit, role, about"),
        (
            "signals:\n  x: {kind: gauge, unit: s, role: gpu, about: y, or: ttft}",
            "2: file.signals.x.or: want two signals with -, / or * between them",
        ),
        (
            "sources:\n  - source: x\n    readings: []",
            "2: file.sources[0]: want role, one of engine, gateway, ",
        ),
        (
            "sources:\n  - source: vllm\n    readings:\n      - {signal: tttf, metric: a}",
            "4: file.sources[0].readings[0].signal: is not known; want one of ",
        ),
        (
            "sources:\n  - source: vllm\n    readings:\n      - {signal: ttft}",
            "4: file.sources[0].readings[0]: want exactly one of metric, each, or sum with count",
        ),
        (
            "sources:\n  - source: vllm\n    readings:\n      - {signal: ttft, metric: 'a b'}",
            "4: file.sources[0].readings[0].metric: want the name of a metric, such as ",
        ),
        (
            "sources:\n  - source: vllm\n    readings:\n"
            "      - {signal: ttft, metric: a, factor: -1}",
            "4: file.sources[0].readings[0].factor: want a number above 0",
        ),
        (
            "sources:\n  - source: vllm\n    readings:\n"
            "      - {signal: ttft, metric: a, labels: {le: b}}",
            "4: file.sources[0].readings[0].labels.le: want a name of letters, digits and _, ",
        ),
        (
            "sources:\n  - source: vllm\n    readings:\n"
            "      - {signal: requests_running, sum: a, count: b}",
            "4: file.sources[0].readings[0]: sum and count are for a histogram",
        ),
        (
            "sources:\n  - source: vllm\n    readings:\n"
            "      - {signal: ttft, metric: a, items_of: b}",
            "4: file.sources[0].readings[0]: want a gauge: ttft is a histogram",
        ),
        (
            "sources:\n  - source: vllm\n    readings:\n"
            "      - {signal: ttft, metric: a, where: {b: 're:('}}",
            "4: file.sources[0].readings[0].where.b: is no regular expression: ",
        ),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    found = faults(tmp_path, text)
    assert len(found) == 1
    assert found[0].startswith(told)


def test_all_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    text = "signals:\n  x: {kind: gauge}\nsources:\n  - {source: vllm}\n"
    assert [fault.split(":")[0] for fault in faults(tmp_path, text)] == ["2", "4"]
    with pytest.raises(BadFiles) as told:
        load_catalogue([tmp_path / "none.yaml", write(tmp_path, text)])
    assert len(told.value.problems) == 3
