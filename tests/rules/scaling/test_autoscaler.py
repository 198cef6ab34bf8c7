"""The objects of autoscalers: each metric that is asked for is given, and within their limits."""

from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from tailburn.engine.slo.model import Clock, ScaleOut, Tier
from tailburn.rules.scaling.autoscaler import (
    Scaled,
    adapter,
    credentials,
    drain,
    hpa,
    keda,
    keda_of_service,
)
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


COUNT = {"type": "integer", "minimum": 0}
NAMED = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
SCALED_OBJECT = {
    # keda.sh/v1alpha1 as its CRD has it, of what is written here; metadata of a trigger is text.
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "keda.sh/v1alpha1"},
        "kind": {"const": "ScaledObject"},
        "metadata": NAMED,
        "spec": {
            "type": "object",
            "required": ["scaleTargetRef", "triggers"],
            "additionalProperties": False,
            "properties": {
                "scaleTargetRef": NAMED,
                "pollingInterval": COUNT,
                "minReplicaCount": COUNT,
                "maxReplicaCount": COUNT,
                "advanced": {"type": "object"},
                "triggers": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["type", "metadata"],
                        "additionalProperties": False,
                        "properties": {
                            "type": {"enum": ["prometheus", "metrics-api"]},
                            "name": {"type": "string", "pattern": "^[a-z0-9-]+$"},
                            "metricType": {"enum": ["Value", "AverageValue"]},
                            "metadata": {
                                "type": "object",
                                "additionalProperties": {"type": "string"},
                            },
                            "authenticationRef": NAMED,
                        },
                    },
                },
            },
        },
    },
}
METRICS_API = {"url", "format", "valueLocation", "targetValue"}  # authMode beside, with a token


@pytest.mark.parametrize("secret", [None, "tailburn-read"])
def test_keda_takes_what_is_written(secret: str | None) -> None:
    jsonschema.validate(keda(SCALED, "http://p:9090"), SCALED_OBJECT)
    asked = keda_of_service(SCALED, "http://tailburn:9464", secret)
    jsonschema.validate(asked, SCALED_OBJECT)
    wanted = METRICS_API | ({"authMode"} if secret else set())
    triggers = asked["spec"]["triggers"]
    assert all(set(trigger["metadata"]) == wanted for trigger in triggers)
    assert len({trigger["name"] for trigger in triggers}) == len(triggers) == 4


def test_the_service_is_asked_for_the_signals_that_prometheus_is_asked_for() -> None:
    of_service = keda_of_service(SCALED, "http://tailburn:9464")["spec"]
    of_prometheus = keda(SCALED, "http://p:9090")["spec"]
    names, wanted = ([t["name"] for t in spec["triggers"]] for spec in (of_service, of_prometheus))
    assert names == wanted
    rest = [
        {k: v for k, v in spec.items() if k != "triggers"} for spec in (of_service, of_prometheus)
    ]
    assert rest[0] == rest[1]
    assert of_service["triggers"][0]["metadata"]["url"] == (
        "http://tailburn:9464/api/scaling/chat"
        "?signal=scale_out_gated&model=meta-llama%2FLlama-3.1-8B"
    )


def test_a_token_comes_from_a_secret_and_stands_in_no_file() -> None:
    trigger = keda_of_service(SCALED, "http://tailburn:9464", "tailburn-read")["spec"]["triggers"][
        0
    ]
    found = credentials(SCALED, "tailburn-read")
    assert trigger["metadata"]["authMode"] == "bearer"
    assert trigger["authenticationRef"]["name"] == found["metadata"]["name"]
    assert found["metadata"]["namespace"] == "serving"
    assert found["spec"]["secretTargetRef"] == [
        {"parameter": "token", "name": "tailburn-read", "key": "token"}
    ]
