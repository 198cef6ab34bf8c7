"""A clock that goes back an hour under a running service: nothing lost, said once, no storm."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.live.kept import asked
from tests.live.service import living, until
from tests.live.told import (
    BEGIN_NS,
    CLOSES,
    MINUTE_NS,
    REQUESTS_A_MINUTE,
    SLOW_AT,
    Body,
    Sender,
    course,
)

MINUTES = 120
BEFORE = round(MINUTES * SLOW_AT) + 20
"""So many minutes are told before it goes back; in eighteen of the last twenty `alpha` is slow."""

BACK = 60
AFTER = 50
"""So many minutes, all well, are told from then on."""

SLO = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec:
  by: [model]
  vantage: client
  clocks: {ttft: {acceptable: {p95: 600ms}, critical: {p50: 10s}}}
"""
_COUNTED = """
    SELECT sum(requests)::BIGINT, sum(bad)::BIGINT FROM read_parquet(?, union_by_name = true)
    WHERE objective = 'ttft_p95'
"""
_FLIPS = """
    SELECT alertname || severity || objective || long || by, new FROM alert_flips
    WHERE new = 'firing' OR old IN ('firing', 'frozen') ORDER BY id
"""


def later(bodies: Iterable[Body], by_ns: int) -> Iterator[Body]:
    """As if other requests were sent so much later."""
    for body in bodies:
        request = ExportTraceServiceRequest.FromString(body.content)
        for span in (s for r in request.resource_spans for o in r.scope_spans for s in o.spans):
            span.trace_id = bytes(byte ^ 0xA5 for byte in span.trace_id)
            span.start_time_unix_nano += by_ns
            span.end_time_unix_nano += by_ns
        yield Body(body.told_ns + by_ns, request.SerializeToString())


def at_ns(minute: int) -> int:
    return BEGIN_NS + minute * MINUTE_NS


def evaluated_ns(store: Path) -> int:
    """The last minute that was; 0 before the first."""
    rows = asked(store, "SELECT minute_ns FROM evaluated")
    return int(rows[0][0]) if rows else 0


@pytest.mark.timeout(600)
def test_an_hour_told_twice_loses_no_request_and_fires_nothing_twice(tmp_path: Path) -> None:
    store, slo, bodies = tmp_path / "store", tmp_path / "slo.yaml", course(MINUTES)
    a_minute = len(bodies) // MINUTES
    before = bodies[: BEFORE * a_minute]
    after = list(later(bodies[: AFTER * a_minute], (BEFORE - BACK) * MINUTE_NS))
    slo.write_text(SLO)
    with living(store, *CLOSES, "--slo", slo) as service:
        with Sender(service, before) as sender:
            sender.join()
        until(lambda: evaluated_ns(store) == at_ns(BEFORE - 1))
        fired = asked(store, _FLIPS)
        assert "TailburnBudgetBurnpage" in str(fired)
        for part in (after[:a_minute], after[a_minute:]):  # it is seen before time goes on
            with Sender(service, part) as sender:
                sender.join()
            until(lambda: evaluated_ns(store) < at_ns(BEFORE - 1))
        until(lambda: evaluated_ns(store) == at_ns(BEFORE - BACK + AFTER - 1))
        assert service.stop() == 0
        said = service.said

    ((requests, bad),) = duckdb.execute(_COUNTED, [f"{store}/verdicts/*/*/*.parquet"]).fetchall()
    assert requests == (BEFORE + AFTER) * REQUESTS_A_MINUTE
    assert bad > 0
    assert said.count("the clock went back by ") == 1
    changes: dict[str, list[str]] = {}
    for alert, new in asked(store, _FLIPS):
        changes.setdefault(alert, []).append(new)
    assert changes.keys() == {alert for alert, _ in fired}, "nothing of the hour fires anew"
    for alert, news in changes.items():
        assert news.count("firing") == 1, (alert, news)
        assert news[-1] == "inactive" or "ticket" in alert, (alert, news)
    assert " ERROR " not in said and "Traceback" not in said
