"""Events as an API server lists them, and the changes that they tell of."""

from typing import Any

import msgspec
import pytest

from tailburn.collector.scrape.kubernetes_events import Event, changes_of
from tailburn.engine.changes import Change, Kind


def listed(reason: str, message: str = "", kind: str = "Pod", **more: Any) -> Event:
    """As `kubectl get events -o json` prints one."""
    said = {
        "metadata": {"name": "vllm-0.17c", "namespace": "serving", "uid": "0a-1"},
        "involvedObject": {"kind": kind, "namespace": "serving", "name": "vllm-0"},
        "reason": reason, "message": message, "type": "Normal", "count": 3,
        "firstTimestamp": "2026-12-03T03:00:00Z", "lastTimestamp": "2026-12-03T03:10:00Z",
        "eventTime": None, **more,
    }  # fmt: skip
    return msgspec.json.decode(msgspec.json.encode(said), type=Event)


def told(*events: Event) -> list[Change]:
    return list(changes_of(events, "acme"))


@pytest.mark.parametrize(
    ("message", "sizes"),
    [
        ("Scaled up replica set vllm-7d9f to 3", ("", "3")),
        ("Scaled up replica set vllm-7d9f to 3 from 2", ("2", "3")),
        ("Scaled down replica set vllm-7d9f from 3 to 1", ("3", "1")),
        ("Scaled down", ("", "")),
    ],
)
def test_a_deployment_that_scales_says_from_what_to_what(
    message: str, sizes: tuple[str, str]
) -> None:
    (change,) = told(listed("ScalingReplicaSet", message, kind="Deployment"))
    assert (change.kind, change.what) == (Kind.SCALE, "Deployment serving/vllm-0")
    assert (change.old, change.new) == sizes
    assert change.tenant == "acme" and change.who == "kubernetes" and change.where == {}


def test_a_pod_that_is_ended_is_a_restart_of_that_replica_when_it_began() -> None:
    (change,) = told(listed("Killing", "Stopping container vllm"))
    assert (change.kind, change.new) == (Kind.RESTART, "Killing")
    assert change.where == {"replica": "vllm-0"}
    assert change.at_ns == 1_796_266_800_000_000_000


def test_the_same_event_listed_again_is_the_same_change() -> None:
    first, again = told(listed("BackOff"), listed("BackOff", count=9))
    assert first.key == again.key
    other = listed("BackOff", metadata={"uid": "0a-2"})
    assert told(other)[0].key != first.key


@pytest.mark.parametrize(
    "odd",
    [
        {"reason": "Pulled"}, {"firstTimestamp": None}, {"firstTimestamp": "soon"},
        {"metadata": {}},
    ],
)  # fmt: skip
def test_what_tells_of_no_change_is_left_alone(odd: dict[str, Any]) -> None:
    assert told(listed(**{"reason": "Killing", **odd})) == []


def test_an_autoscaler_tells_the_new_size() -> None:
    message = "New size: 5; reason: cpu resource utilization above target"
    (change,) = told(listed("SuccessfulRescale", message, kind="HorizontalPodAutoscaler"))
    assert (change.kind, change.old, change.new) == (Kind.SCALE, "", "5")


def test_event_time_stands_where_the_first_time_is_not_told() -> None:
    event = listed("Killing", firstTimestamp=None, eventTime="2026-12-03T03:00:00.123456Z")
    assert told(event)[0].at_ns == 1_796_266_800_123_456_000
