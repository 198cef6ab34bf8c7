"""Courses of traffic for scaling: how long TTFT was slow, and how long it was not."""

from collections.abc import Mapping
from dataclasses import replace

from tailburn.engine.names import SLO_REQUESTS_METRIC
from tailburn.engine.scaling.terms import Targets
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import EngineSource, ScaleOut, objectives
from tailburn.rules.model import RuleSet
from tailburn.rules.promql import selector
from tailburn.rules.ruleset import build
from tailburn.rules.scaling.gauges import Replicas
from tailburn.rules.scaling.signals import group_of
from tests.rules.promtool import slo, ttft

CHAT = slo(clocks=ttft(acceptable={"p99": 1.0}), scale_out=ScaleOut())
VLLM = Replicas(CHAT, EngineSource("vllm", {"job": "vllm"}))

# Cumulative shares of the requests by bound; p99 is 0.98 s, over 0.8 times the acceptable 1 s.
SLOW: Mapping[float, float] = {0.2: 0.5, 0.75: 0.9, 1.0: 0.994}
WELL: Mapping[float, float] = {0.2: 0.995, 0.75: 1.0, 1.0: 1.0}  # p99: 0.199 s


def rules(replicas: Replicas | None = None) -> RuleSet:
    """The signals of the SLO behind those of its rules that they rest on."""
    group = group_of(CHAT, Targets(), replicas)
    wanted = list(group.rules)
    for rule in wanted:  # grows: what these rest on, rests on others
        wanted += [r for r in build([CHAT]).records if r.record in rule.expr and r not in wanted]
    groups = [
        replace(built, rules=tuple(rule for rule in built.rules if rule in wanted))
        for built in build([CHAT]).groups
    ]
    return RuleSet((*(built for built in groups if built.rules), group))


def traffic(*stretches: tuple[int, Mapping[float, float]], per_minute: int = 120) -> dict[str, str]:
    """Series of so many minutes each with these shares of TTFT, and of the verdicts."""
    bounds = {bound: 0.0 for bound in (*SLOW, float("inf"))}
    values: dict[float, list[str]] = {bound: [] for bound in bounds}
    for minutes, shares in stretches:
        for _ in range(minutes):
            for bound in bounds:
                bounds[bound] += per_minute * shares.get(bound, 1.0)
                values[bound].append(f"{bounds[bound]:g}")
    budget = objectives(CHAT)[0]
    verdicts = selector(
        SLO_REQUESTS_METRIC,
        {"slo": "chat", "objective": budget.name, "definition": definition_of(CHAT, budget)},
    )
    return {
        **{_bucket(bound): " ".join(found) for bound, found in values.items()},
        verdicts: " ".join(values[float("inf")]),
    }


def gauges(
    minutes: int, waiting: float = 0, kv_ratio: float = 0.1, count: int = 4
) -> dict[str, str]:
    """What so many replicas of vLLM show, all the same, for so many minutes."""
    found = {}
    for replica in range(count):
        labels = {"job": "vllm", "instance": f"vllm-{replica}:8000", "model_name": "llama"}
        for metric, value in (
            ("vllm:num_requests_waiting", waiting),
            ("vllm:kv_cache_usage_perc", kv_ratio),
        ):
            found[selector(metric, labels)] = f"{value:g}x{minutes}"
    return found


def _bucket(bound: float) -> str:
    le = "+Inf" if bound == float("inf") else f"{bound:g}"
    return selector("tailburn_ttft_seconds_bucket", {"vantage": "gateway", "le": le})
