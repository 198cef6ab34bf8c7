"""kill -9 at random instants: no counter, baseline or alert changes, none is counted twice.

A course of traffic is sent twice: to a service that is left alone, and to one that is killed
again and again. What both leave behind must be the same, and the counters those of the requests.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.live.kept import Kept, Series, asked, kept
from tests.live.service import Service, living, until
from tests.live.told import CLOSES, MODELS, REQUESTS_A_MINUTE, Sender, course, end_ns

SLOS = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec:
  by: [model]
  vantage: client
  clocks:
    ttft: {acceptable: {p95: 600ms}, critical: {p50: 1s}}
  availability: 99%
  goodput: 90%
---
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: engines}
spec:
  vantage: engine
  calendar: day
  clocks:
    ttft: {acceptable: {p99: 900ms}}
"""

_LAST_VERSIONS = """
    WITH last AS (
        SELECT * FROM read_parquet(?, union_by_name = true)
        QUALIFY row_number() OVER (PARTITION BY request_id ORDER BY version DESC) = 1
    ), live AS (SELECT * FROM last WHERE NOT tombstone)
"""
_VERDICTS = f"""{_LAST_VERSIONS}
    SELECT 'chat', 'ttft_p95', model, count(ttft_client_s),
        count(*) FILTER (ttft_client_s > 0.6) FROM live GROUP BY model
    UNION ALL
    SELECT 'chat', 'availability', model, count(*), count(*) FILTER (outcome = 'error')
        FROM live GROUP BY model
    UNION ALL
    SELECT 'chat', 'goodput', model, count(*),
        count(*) FILTER (outcome = 'error' OR ttft_client_s > 0.6) FROM live GROUP BY model
    UNION ALL
    SELECT 'engines', 'ttft_p99', '', count(ttft_engine_s),
        count(*) FILTER (ttft_engine_s > 0.9) FROM live
"""
_VERSIONS = """
    SELECT version, ttft_client_s > 0 AND ttft_engine_s > 0, count(*)
    FROM read_parquet(?, union_by_name = true) GROUP BY ALL
"""
_TWICE = """
    SELECT alertname, slo, objective, severity, long, short, by, new, at_ns, count(*)
    FROM alert_flips GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9 HAVING count(*) > 1
"""
_CHAINS = """
    SELECT old, lag(new, 1, 'inactive') OVER (
        PARTITION BY alertname, slo, objective, severity, long, short, by ORDER BY id
    ) FROM alert_flips
"""


@dataclass(frozen=True)
class Plan:
    """How many told minutes, how often killed, and how long the lives between are in s."""

    minutes: int
    kills: int
    pause_s: float
    lives_s: tuple[float, ...]


SHORT = Plan(minutes=240, kills=6, pause_s=0.006, lives_s=(1.5,))
LONG = Plan(minutes=900, kills=50, pause_s=0.04, lives_s=(1.5, 1.5, 1.5, 1.5, 20.0))
"""Each fifth life may be long enough for a snapshot while spans come."""


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(SHORT, id="6 kills", marks=pytest.mark.timeout(900)),
        pytest.param(LONG, id="50 kills", marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_kills_change_no_counter_no_baseline_and_no_alert(tmp_path: Path, plan: Plan) -> None:
    with _running(tmp_path, "whole", plan) as (service, sender):
        whole = _ended(service, sender, plan)
    with _running(tmp_path, "killed", plan) as (service, sender):
        _kill(service, sender, plan)
        killed = _ended(service, sender, plan)

    store = tmp_path / "killed"
    counted = _counters(killed)
    print(
        f"{plan.kills} kills; {sum(counted[*_ALL, model, 'requests'] for model in MODELS):,.0f}"
        f" requests in {plan.minutes:,} told minutes, {sender.again:,} bodies sent again;"
        f" compared: {len(killed.series):,} series of /metrics, {len(killed.verdicts):,} minutes"
        f" of verdicts, {len(killed.usual):,} cells of what is usual,"
        f" {len(killed.alert_states):,} states and {len(killed.alert_flips):,} changes of alerts"
    )
    assert killed.alert_flips and killed.alert_states and killed.usual
    assert sum(n for (name, _), n in killed.series.items() if "deadline_missed" in name)
    assert counted == _exact(store)
    assert asked(store, _TWICE) == []
    assert {old for old, before in asked(store, _CHAINS) if old != before} == set()
    assert killed.differences(whole) == {}


def test_no_request_ends_because_a_service_that_is_told_the_time_was_away(tmp_path: Path) -> None:
    begun, rest = course(2)[:1], course(2)[1:]
    with living(tmp_path / "store", *CLOSES) as service:
        with Sender(service, begun) as sender:
            sender.join()
        service.kill()
        service.start()
        time.sleep(1.5)  # three times as long as the service waits before it looks what is due
        with Sender(service, rest) as sender:
            sender.join()
        assert service.stop() == 0
    requests = duckdb.execute(_VERSIONS, [f"{tmp_path}/store/requests/*/*/*.parquet"]).fetchall()
    assert requests == [(1, True, 2 * REQUESTS_A_MINUTE)]


_ALL = ("chat", "availability")

Counted = dict[tuple[str, str, str, str], float]
"""By SLO, objective, model and name of the series."""


def _exact(store: Path) -> Counted:
    """Counts of the requests in the store, by no code of the service."""
    rows = duckdb.execute(_VERDICTS, [f"{store}/requests/*/*/*.parquet"]).fetchall()
    found: Counted = {}
    for slo, objective, model, requests, bad in rows:
        found[slo, objective, model, "requests"] = requests
        found[slo, objective, model, "bad"] = bad
    return found


def _counters(of: Kept) -> Counted:
    found: Counted = {}
    for (name, labels), value in of.series.items():
        kind = name.removeprefix("tailburn_slo_").removesuffix("_total")
        if kind in ("requests", "bad"):
            told = dict(labels)
            key = told["slo"], told["objective"], told.get("model", ""), kind
            found[key] = found.get(key, 0) + value
    return found


@contextmanager
def _running(folder: Path, name: str, plan: Plan) -> Iterator[tuple[Service, Sender]]:
    """A service, and a sender that has begun."""
    (folder / "slo.yaml").write_text(SLOS)
    with living(folder / name, *CLOSES, "--slo", folder / "slo.yaml") as service:
        pause_s = plan.pause_s if name == "killed" else 0.0
        with Sender(service, course(plan.minutes), pause_s) as sender:
            yield service, sender


def _kill(service: Service, sender: Sender, plan: Plan) -> None:
    """At random instants, all of them while spans are sent; some before it is ready again.

    In the midst it is stopped once as it should be, so that later lives go on from a snapshot.
    """
    chance = random.Random(plan.kills)
    for kill in range(plan.kills):
        assert sender.is_alive(), f"all was sent after {kill} kills: send more, or more slowly"
        if kill == plan.kills // 2:
            assert service.stop() == 0
            service.start()
        time.sleep(chance.uniform(0, plan.lives_s[kill % len(plan.lives_s)]))
        service.kill()
        if kill % 3 == 2:
            service.spawn()
            time.sleep(chance.uniform(0, 3.0))
            service.kill()
        service.start()


def _ended(service: Service, sender: Sender, plan: Plan) -> Kept:
    """Wait until all is sent, counted and evaluated; what is left when it has stopped."""
    sender.join()
    until(lambda: _evaluated_ns(service.store) == end_ns(plan.minutes))
    for _ in range(3):  # new series are shown at 0 first
        series = _series(service)
    assert service.stop() == 0
    return kept(service.store, series)


def _evaluated_ns(store: Path) -> int:
    rows = asked(store, "SELECT minute_ns FROM evaluated")
    return int(rows[0][0]) if rows else 0


def _series(service: Service) -> Series:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(service.get("/metrics").text)
        for sample in family.samples
        if sample.name.startswith("tailburn_slo_") and "overflow" not in sample.name
    }
