"""The objects of autoscalers: each metric that is asked for is given, and within their limits."""

from dataclasses import replace
from typing import Any

import pytest

from tailburn.engine.slo.model import Clock, ScaleOut, Tier
from tailburn.rules.scaling.autoscaler import Scaled, adapter, drain, hpa, keda
from tests.rules.scaling.courses import CHAT

MODEL = "meta-llama/Llama-3.1-8B"
SCALED = Scaled(
    replace(CHAT, by=("model",)), "chat-8b", "serving", 2, 16, True, True, {"model": MODEL}
)


def metrics(autoscaler: dict[str, Any]) -> list[str]:
    return [m["external"]["metric"]["name"] for m in autoscaler["spec"]["metrics"]]


@pytest.mark.parametrize("is_gated", [True, False])
@pytest.mark.parametrize("has_engines", [True, False])
def test_the_adapter_gives_what_the_hpa_asks_for(is_gated: bool, has_engines: bool) -> None:
    scaled = replace(SCALED, is_gated=is_gated, has_engines=has_engines)
    given = [rule["name"]["as"] for rule in adapter(scaled)["externalRules"]]
    assert metrics(hpa(scaled)) == given
    assert [t["name"] for t in keda(scaled, "http://p:9090")["spec"]["triggers"]] == given
    assert any("scale-out-gated" in name for name in given) is is_gated
    assert len(given) == (4 if has_engines else 2)


def test_what_holds_is_always_among_them() -> None:
    assert metrics(hpa(SCALED))[-1] == "tailburn-chat-8b-scale-hold"


def test_both_ask_prometheus_for_the_same() -> None:
    asked = [rule["metricsQuery"] for rule in adapter(SCALED)["externalRules"]]
    triggers = keda(SCALED, "http://p:9090")["spec"]["triggers"]
    assert [t["metadata"]["query"] for t in triggers] == asked
    assert all(f'{{slo="chat",model="{MODEL}"}}' in query for query in asked)


def test_a_value_that_kubernetes_takes_for_no_label_is_in_no_selector() -> None:
    assert MODEL not in str(hpa(SCALED))


def test_a_signal_that_is_missing_changes_nothing_under_keda() -> None:
    for trigger in keda(SCALED, "http://p:9090")["spec"]["triggers"]:
        assert trigger["metadata"]["ignoreNullValues"] == "false"


def test_both_behave_alike_within_the_limits_of_an_hpa() -> None:
    slow = replace(
        SCALED.slo,
        scale_out=ScaleOut(for_s=7200.0),
        clocks={**SCALED.slo.clocks, Clock.E2E: {Tier.ACCEPTABLE: {"p99": 7200.0}}},
    )
    scaled = replace(SCALED, slo=slow)
    behavior = hpa(scaled)["spec"]["behavior"]
    advanced = keda(scaled, "http://p:9090")["spec"]["advanced"]
    assert advanced["horizontalPodAutoscalerConfig"]["behavior"] == behavior
    for way in behavior.values():
        assert all(0 < policy["periodSeconds"] <= 1800 for policy in way["policies"])
        assert 0 <= way["stabilizationWindowSeconds"] <= 3600


def test_replicas_go_one_by_one_and_finish_their_streams() -> None:
    down = hpa(SCALED)["spec"]["behavior"]["scaleDown"]["policies"]
    assert [(policy["type"], policy["value"]) for policy in down] == [("Pods", 1)]
    pod = drain(SCALED)["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == down[0]["periodSeconds"] == 600
