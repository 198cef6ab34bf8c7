"""Requests in flight by SLO, from what engines and gateways showed."""

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tailburn.engine.gauges import STALE_NS, EngineGauges
from tailburn.engine.schema import SIGNALS
from tailburn.engine.slo.model import Place, Slo

CHAT = Slo("chat", Place("chat.yaml", 1), select={"pool": "interactive"})
BY_MODEL = replace(CHAT, name="by-model", select={}, by=("model",))
S = 1_000_000_000


def reading(at_s: int, replica: str, labels: dict[str, str] | None = None, **values: float) -> Any:
    """One answer of a target: that it is up, and its gauges."""
    told = {"replica": replica, "source": "vllm", **(labels or {})}
    rows = [("up", json.dumps({"replica": replica}), 1.0)]
    rows += [(name, json.dumps(told, sort_keys=True), value) for name, value in values.items()]
    columns: dict[str, Any] = {
        "received_ns": [at_s * S] * len(rows),
        "time_ns": [at_s * S] * len(rows),
        "tenant": ["default"] * len(rows),
        "service": ["vllm"] * len(rows),
        "resource": [json.dumps({"service.instance.id": replica})] * len(rows),
        "name": [name for name, _, _ in rows],
        "kind": ["gauge"] * len(rows),
        "unit": ["1"] * len(rows),
        "labels": [labels for _, labels, _ in rows],
        "value": [value for _, _, value in rows],
    }
    arrays = [
        pa.array(columns[f.name]).dictionary_encode().cast(f.type)
        if pa.types.is_dictionary(f.type)
        else pa.array(columns[f.name], f.type)
        for f in SIGNALS
    ]
    return pa.Table.from_arrays(arrays, schema=SIGNALS)


def gauges(*readings: pa.Table, slos: tuple[Slo, ...] = (CHAT, BY_MODEL)) -> EngineGauges:
    found = EngineGauges(slos)
    found.take(pa.concat_tables(readings))
    return found


def test_waiting_and_running_of_all_replicas_are_in_flight() -> None:
    found = gauges(
        reading(
            10, "a", {"model": "m", "pool": "interactive"}, requests_waiting=2, requests_running=3
        ),
        reading(11, "b", {"model": "m", "pool": "batch"}, requests_waiting=0, requests_running=7),
    )

    assert found.in_flight(20 * S) == {("chat", ()): 5.0, ("by-model", ("m",)): 12.0}


def test_a_gateway_that_holds_more_than_its_engines_counts() -> None:
    engine = reading(10, "a", {"model": "m"}, requests_running=3, requests_waiting=0)
    gateway = reading(10, "gw", {"model": "m"}, gateway_requests_running=9)

    assert gauges(engine, gateway).in_flight(20 * S) == {("by-model", ("m",)): 9.0}


def test_a_target_that_stopped_showing_a_series_or_answering_has_none() -> None:
    shown = reading(10, "a", {"model": "m"}, requests_running=3)
    without = reading(20, "a")

    found = gauges(shown, without)

    assert found.in_flight(15 * S) == {("by-model", ("m",)): 3.0}
    assert found.in_flight(25 * S) == {}
    assert gauges(shown).in_flight(10 * S + STALE_NS) == {}


def test_what_no_engine_can_tell_is_said_and_not_guessed() -> None:
    typed = replace(CHAT, name="typed", select={"request_type": "chat"}, by=("route", "model"))
    found = gauges(reading(10, "a", {"model": "m"}, requests_running=3), slos=(typed, CHAT))

    assert found.in_flight(20 * S) == {}
    assert found.unmapped(20 * S) == {
        "typed": "no metric of an engine tells request_type, route",
        "chat": "no series that is read has pool=interactive",
    }
    assert EngineGauges([CHAT]).unmapped(0) == {"chat": "no engine's metrics are read"}


def test_queue_and_cache_are_means_over_replicas_and_two_minutes() -> None:
    labels = {"model": "m"}
    found = gauges(
        reading(10, "a", labels, requests_waiting=90, kv_usage_ratio=0.9),  # too old
        reading(200, "a", labels, requests_waiting=4, kv_usage_ratio=0.5),
        reading(215, "a", labels, requests_waiting=8, kv_usage_ratio=0.7),
        reading(216, "b", labels, requests_waiting=2, kv_usage_ratio=0.2),
    )

    ((key, replicas),) = found.replicas(220 * S).items()
    assert key == ("by-model", ("m",))
    assert (replicas.count, replicas.waiting) == (2, 4.0)
    assert replicas.kv_ratio == pytest.approx(0.4)


def test_what_is_trimmed_is_no_longer_needed() -> None:
    found = gauges(
        *(reading(at_s, "a", {"model": "m"}, requests_running=at_s) for at_s in range(0, 600, 15))
    )
    before = found.in_flight(595 * S)

    found.trim(595 * S)

    assert found.in_flight(595 * S) == before == {("by-model", ("m",)): 585.0}
    found.trim(3600 * S)
    assert found.in_flight(595 * S) == {}


def test_readings_of_a_clock_that_was_set_back_are_as_much_older() -> None:
    found = gauges(
        reading(3_000, "a", {"model": "m"}, requests_running=5),
        reading(3_590, "a", {"model": "m"}, requests_running=7),
        reading(3_600, "b", {"model": "m"}, requests_running=9),
        reading(10, "a", {"model": "m"}, requests_running=1),
    )

    found.set_back(20 * S, 3_600 * S)

    assert found.in_flight(20 * S) == {("by-model", ("m",)): 10.0}
    assert found.in_flight(3_600 * S) == {}
