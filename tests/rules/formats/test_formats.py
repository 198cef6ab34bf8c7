"""The same groups for three readers, to the byte, whatever stands in a name."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from ruamel.yaml import YAML

from tailburn.engine.slo.model import EngineSource, Slo
from tailburn.rules.formats import FORMATS
from tailburn.rules.model import Group, Rule
from tailburn.rules.promql import duration
from tailburn.rules.ruleset import build
from tests.rules.promtool import slo, ttft
from tests.rules.strategies import slos

FULL = slo(clocks=ttft(acceptable={"p95": 0.5, "p99": 1.0}), availability_ratio=0.999)
GROUP = Group(
    "a",
    90,
    (
        Rule("up", record="a:up"),
        Rule(
            'up{job="x"}\nor\nup',
            alert="Up",
            for_s=3700,
            labels={"x": "1"},
            annotations={"y": "no"},
        ),
    ),
)


def loaded(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def as_loaded(group: Group) -> dict[str, Any]:
    """What a reader of YAML makes of a group."""
    return {
        "name": group.name,
        "interval": duration(group.interval_s),
        "rules": [_rule_as_loaded(rule) for rule in group.rules],
    }


def _rule_as_loaded(rule: Rule) -> dict[str, Any]:
    found: dict[str, Any] = {"record" if rule.record else "alert": rule.name, "expr": rule.expr}
    if rule.for_s:
        found["for"] = duration(rule.for_s)
    for name, values in (("labels", rule.labels), ("annotations", rule.annotations)):
        if values:
            found[name] = dict(values)
    return found


def test_prometheus_gets_groups_and_nothing_else() -> None:
    assert FORMATS["prometheus"]("chat", [GROUP]) == (
        "groups:\n"
        '  - name: "a"\n'
        "    interval: 1m30s\n"
        "    rules:\n"
        '      - record: "a:up"\n'
        "        expr: |-\n"
        "          up\n"
        '      - alert: "Up"\n'
        "        expr: |-\n"
        '          up{job="x"}\n'
        "          or\n"
        "          up\n"
        "        for: 1h1m40s\n"
        "        labels:\n"
        '          x: "1"\n'
        "        annotations:\n"
        '          y: "no"\n'
    )


def test_the_operator_gets_an_object_with_the_groups_in_its_spec() -> None:
    found = loaded(FORMATS["operator"]("chat", [GROUP]))
    assert (found["apiVersion"], found["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert found["metadata"]["name"] == "tailburn-chat"
    assert found["spec"] == {"groups": [as_loaded(GROUP)]}


def test_mimir_gets_a_namespace_for_each_slo() -> None:
    found = loaded(FORMATS["mimir"]("chat", [GROUP]))
    assert found == {"namespace": "tailburn-chat", "groups": [as_loaded(GROUP)]}


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(slos)
def test_what_is_written_is_read_back_as_it_was(promise: Slo) -> None:
    groups = build([promise]).groups
    found = loaded(FORMATS["prometheus"]("", groups))
    assert found["groups"] == [as_loaded(group) for group in groups]


@pytest.mark.program("promtool")
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(slos)
def test_promtool_finds_nothing_to_say(
    need_program: Callable[[str], str], tmp_path: Path, promise: Slo
) -> None:
    check(need_program("promtool"), tmp_path, promise)


@pytest.mark.program("promtool")
@pytest.mark.parametrize("histogram", ["classic", "native"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "triton", "dynamo"])
def test_promtool_accepts_the_rules_of_every_engine(
    engine: Any, histogram: Any, need_program: Callable[[str], str], tmp_path: Path
) -> None:
    source = EngineSource(engine, {"job": "engine"}, histogram=histogram)
    promise = slo(clocks=FULL.clocks, availability_ratio=0.99, source=source, by=("model",))
    check(need_program("promtool"), tmp_path, promise)


def check(promtool: str, folder: Path, promise: Slo) -> None:
    (folder / "rules.yaml").write_text(FORMATS["prometheus"]("", build([promise]).groups))
    ran = subprocess.run(
        [promtool, "check", "rules", "rules.yaml"], cwd=folder, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
