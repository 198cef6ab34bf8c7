"""A PostgreSQL server that goes away under a service and comes back: nothing lost or told twice.

A course of traffic is sent twice: to a service whose state is in a file, and to one whose server is
stopped in the second third of it. What both leave behind must be the same.
"""

from collections.abc import Callable
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.live.kept import Kept, Series, kept
from tests.live.service import Service, living, run, until
from tests.live.told import CLOSES, Body, Sender, course, end_ns
from tests.postgres import server

MINUTES = 120
AWAY = slice(MINUTES // 3, 2 * MINUTES // 3)
"""Told minutes; in the midst of them `alpha` gets slow, which pages."""

SLO = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec:
  by: [model]
  vantage: client
  clocks: {ttft: {acceptable: {p95: 600ms}, critical: {p50: 1s}}}
  availability: 99%
"""


@pytest.mark.timeout(600)
def test_alerts_go_on_while_the_server_is_away_and_nothing_of_them_is_lost(
    tmp_path: Path, need_program: Callable[[str], str]
) -> None:
    (slo := tmp_path / "slo.yaml").write_text(SLO)
    bodies = course(MINUTES)
    part = len(bodies) // MINUTES
    first, away, last = (
        bodies[: AWAY.start * part],
        bodies[AWAY.start * part : AWAY.stop * part],
        bodies[AWAY.stop * part :],
    )
    with living(tmp_path / "whole", *CLOSES, "--slo", slo) as service:
        _send(service, bodies, MINUTES)
        whole = _ended(service)
    with (
        server(need_program("initdb"), is_durable=True) as postgres,
        living(tmp_path / "away", *CLOSES, "--slo", slo, "--state-url", postgres.url) as service,
    ):
        _send(service, first, AWAY.start)
        postgres.stop()
        slowest_s = _send(service, away, AWAY.stop)
        paging = [row for row in service.rows("/api/alerts") if row["status"] == "firing"]
        past = service.get("/api/baselines")
        waiting = _value(service, "tailburn_evaluation_unwritten")
        postgres.start()
        until(lambda: _value(service, "tailburn_evaluation_unwritten") == 0)
        _send(service, last, MINUTES)
        ended = _ended(service, postgres.url)

    assert waiting == AWAY.stop - AWAY.start
    assert {row["severity"] for row in paging} >= {"page"}
    assert past.status_code == 503 and "the state database is away" in past.text
    assert slowest_s < 10, "who sends is never held up"
    assert service.said.count("alerts are evaluated, and can't be written down") == 1
    assert service.said.count("tokens can't be read") == 1
    assert ended.alert_flips and ended.differences(whole) == {}


@pytest.mark.timeout(600)
def test_telemetry_is_taken_and_shown_while_the_server_says_nothing(
    tmp_path: Path, need_program: Callable[[str], str]
) -> None:
    bodies = course(4)
    with (
        server(need_program("initdb")) as postgres,
        living(tmp_path / "store", *CLOSES, "--state-url", postgres.url) as service,
    ):
        postgres.tell(SIGSTOP)
        with Sender(service, bodies) as sender:
            sender.join()
        shown = service.get("/metrics")
        postgres.tell(SIGCONT)
        assert service.stop() == 0

    assert sender.acknowledged == len(bodies)
    assert sender.slowest_s < 5
    assert shown.status_code == 200


def test_a_service_whose_server_is_not_there_says_so_and_ends(tmp_path: Path) -> None:
    url = "postgresql://me:hidden@127.0.0.1:1/db"
    ended = run("serve", "--store", tmp_path / "store", *_FREE, TAILBURN_STATE_URL=url)
    looked = run("doctor", "--store", tmp_path / "store", *_FREE, TAILBURN_STATE_URL=url)

    assert ended.returncode == 2 and "postgresql://me@127.0.0.1:1/db: " in ended.stderr
    assert looked.returncode == 1 and "postgresql://me@127.0.0.1:1/db: " in looked.stdout
    assert "hidden" not in ended.stderr + ended.stdout + looked.stdout + looked.stderr


_FREE = ("--http-port", "0", "--grpc-port", "0", "--web-port", "0")


def _send(service: Service, bodies: list[Body], minutes: int) -> float:
    """Send them, and wait until the minutes of the course so far are evaluated; the slowest, s."""
    with Sender(service, bodies) as sender:
        sender.join()
    until(lambda: _value(service, "tailburn_evaluated_timestamp_seconds") == end_ns(minutes) / 1e9)
    return sender.slowest_s


def _value(service: Service, name: str) -> float | None:
    return next((v for (n, _), v in _series(service).items() if n == name), None)


def _series(service: Service) -> Series:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(service.get("/metrics").text)
        for sample in family.samples
    }


def _ended(service: Service, url: str = "") -> Kept:
    """What a service leaves that has stopped; counters as /metrics shows them at last."""
    for _ in range(3):  # new series are shown at 0 first
        series = _series(service)
    assert service.stop() == 0
    counted = {key: value for key, value in series.items() if key[0].startswith("tailburn_slo_")}
    return kept(service.store, counted, url)
