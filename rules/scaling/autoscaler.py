"""The files of autoscalers: prometheus-adapter with an HPA, or KEDA; and how a replica drains.

KEDA asks Prometheus for what rules record, or the service itself for its `/api/scaling`.

All signals are held at 1, so the number of replicas that an autoscaler wants is the largest
that any of them asks for, and `hold` keeps those that are there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from tailburn.engine.names import (
    SCALE_GATED_RECORD,
    SCALE_HOLD_RECORD,
    SCALE_KV_RECORD,
    SCALE_OUT_RECORD,
    SCALE_WAITING_RECORD,
    SLO_LABEL,
    scale_signal,
)
from tailburn.engine.slo.model import Slo
from tailburn.rules.alerts.stalled import patience_s
from tailburn.rules.promql import selector

Object = dict[str, Any]

_STABLE_S: Final = 300
_LONGEST_S: Final = 1800  # that an HPA takes as a period


@dataclass(frozen=True)
class Scaled:
    """What is scaled, by which signals, and between which numbers of replicas."""

    slo: Slo
    deployment: str
    namespace: str = "default"
    least: int = 1
    most: int = 10
    is_gated: bool = True
    has_engines: bool = False
    values: Mapping[str, str] = field(default_factory=dict)  # of the SLO's `by`, this one's

    @property
    def records(self) -> tuple[str, ...]:
        """The signals, what scales out first."""
        return (
            SCALE_GATED_RECORD if self.is_gated else SCALE_OUT_RECORD,
            *((SCALE_WAITING_RECORD, SCALE_KV_RECORD) if self.has_engines else ()),
            SCALE_HOLD_RECORD,
        )

    @property
    def labels(self) -> dict[str, str]:
        """Which series of a signal are its own."""
        return {SLO_LABEL: self.slo.name, **self.values}

    @property
    def drain_s(self) -> int:
        """How long the streams of a replica may take to end once it gets no more."""
        return patience_s(self.slo)


def adapter(scaled: Scaled) -> Object:
    """Rules for prometheus-adapter: each signal is an external metric of its own.

    No selector is left to the HPA: a value such as meta-llama/Llama-3.1-8B is none that
    Kubernetes takes there.
    """
    return {"externalRules": [_adapted(scaled, record) for record in scaled.records]}


def hpa(scaled: Scaled) -> Object:
    """A HorizontalPodAutoscaler that reads the external metrics of the adapter."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(scaled),
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": scaled.deployment,
            },
            "minReplicas": scaled.least,
            "maxReplicas": scaled.most,
            "metrics": [_metric(scaled, record) for record in scaled.records],
            "behavior": _behavior(scaled),
        },
    }


def keda(scaled: Scaled, prometheus_url: str) -> Object:
    """A ScaledObject that asks Prometheus itself; a signal that is missing changes nothing."""
    return _scaled_object(scaled, [_trigger(scaled, r, prometheus_url) for r in scaled.records])


def keda_of_service(scaled: Scaled, url: str, secret: str | None = None) -> Object:
    """A ScaledObject that asks the service at `url`; a signal that is missing is a failure there.

    `secret`: the Secret with the service's token, for which `credentials` is needed too.
    """
    triggers = [_service_trigger(scaled, record, url) for record in scaled.records]
    if secret is not None:
        for trigger in triggers:
            trigger["metadata"]["authMode"] = "bearer"
            trigger["authenticationRef"] = {"name": _metadata(scaled)["name"]}
    return _scaled_object(scaled, triggers)


def credentials(scaled: Scaled, secret: str) -> Object:
    """A TriggerAuthentication: the token of scope read is the key `token` of that Secret."""
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "TriggerAuthentication",
        "metadata": _metadata(scaled),
        "spec": {"secretTargetRef": [{"parameter": "token", "name": secret, "key": "token"}]},
    }


def drain(scaled: Scaled) -> Object:
    """A patch of the deployment: a replica that goes may finish its streams."""
    pod = {"spec": {"terminationGracePeriodSeconds": scaled.drain_s}}
    return {"spec": {"template": pod}}


def metric_name(scaled: Scaled, record: str) -> str:
    """A signal as prometheus-adapter and KEDA name it."""
    signal = scale_signal(record).replace("_", "-")
    return f"tailburn-{scaled.deployment}-{signal}"


def _adapted(scaled: Scaled, record: str) -> Object:
    series = selector(record, scaled.labels)
    return {
        "seriesQuery": series,
        "resources": {"namespaced": False},
        "name": {"matches": ".*", "as": metric_name(scaled, record)},
        "metricsQuery": f"max({series})",
    }


def _metadata(scaled: Scaled) -> Object:
    return {"name": f"tailburn-{scaled.deployment}", "namespace": scaled.namespace}


def _metric(scaled: Scaled, record: str) -> Object:
    return {
        "type": "External",
        "external": {
            "metric": {"name": metric_name(scaled, record)},
            "target": {"type": "Value", "value": "1"},
        },
    }


def _scaled_object(scaled: Scaled, triggers: list[Object]) -> Object:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": _metadata(scaled),
        "spec": {
            "scaleTargetRef": {"name": scaled.deployment},
            "pollingInterval": 30,
            "minReplicaCount": scaled.least,
            "maxReplicaCount": scaled.most,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behavior(scaled)}},
            "triggers": triggers,
        },
    }


def _service_trigger(scaled: Scaled, record: str, url: str) -> Object:
    signal = scale_signal(record)
    asked = urlencode({"signal": signal, **scaled.values}, quote_via=quote)
    return {
        "type": "metrics-api",
        "name": metric_name(scaled, record),
        "metricType": "Value",
        "metadata": {
            "url": f"{url}/api/scaling/{quote(scaled.slo.name, safe='')}?{asked}",
            "format": "json",
            "valueLocation": signal,
            "targetValue": "1",
        },
    }


def _trigger(scaled: Scaled, record: str, prometheus_url: str) -> Object:
    return {
        "type": "prometheus",
        "name": metric_name(scaled, record),
        "metricType": "Value",
        "metadata": {
            "serverAddress": prometheus_url,
            "query": f"max({selector(record, scaled.labels)})",
            "threshold": "1",
            "ignoreNullValues": "false",
        },
    }


def _behavior(scaled: Scaled) -> Object:
    """Out: at once, since the signal has waited, then no more until it can show what that did.
    In: one replica at a time, each after the streams of the one before it."""
    assert scaled.slo.scale_out is not None
    settled_s = min(_LONGEST_S, max(_STABLE_S, round(scaled.slo.scale_out.for_s)))
    return {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [
                {"type": "Pods", "value": 1, "periodSeconds": settled_s},
                {"type": "Percent", "value": 50, "periodSeconds": settled_s},
            ],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": _STABLE_S,
            "policies": [
                {"type": "Pods", "value": 1, "periodSeconds": min(_LONGEST_S, scaled.drain_s)},
            ],
        },
    }
