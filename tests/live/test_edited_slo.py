"""An SLO edited while it burns, on a running service: nothing lost, said once, no storm."""

from pathlib import Path

import duckdb
import pytest

from tests.live.kept import asked
from tests.live.service import living, until
from tests.live.told import CLOSES, SLOW_AT, Sender, course, end_ns

MINUTES = 120
BURNING = round(MINUTES * SLOW_AT) + 14
"""In the fifteenth minute in which `alpha` is slow, of eighteen."""

SLO = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {{name: chat}}
spec:
  by: [model]
  vantage: client
  clocks: {{ttft: {{acceptable: {{p95: {ttft}}}, critical: {{p50: 10s}}}}}}
"""
_COUNTED = """
    SELECT definition, sum(requests)::BIGINT FROM read_parquet(?, union_by_name = true)
    WHERE objective = 'ttft_p95' GROUP BY definition
"""
_MEASURED = """
    SELECT count(ttft_client_s) FROM (
        SELECT * FROM read_parquet(?, union_by_name = true)
        QUALIFY row_number() OVER (PARTITION BY request_id ORDER BY version DESC) = 1
    ) WHERE NOT tombstone
"""
_PAGES = """
    SELECT alertname || objective || long || by, new FROM alert_flips
    WHERE severity = 'page' AND (new = 'firing' OR old IN ('firing', 'frozen')) ORDER BY at_ns, id
"""


@pytest.mark.timeout(600)
def test_an_edit_while_it_burns_loses_no_request_and_is_said_once(tmp_path: Path) -> None:
    store, slo, bodies = tmp_path / "store", tmp_path / "slo.yaml", course(MINUTES)
    edited_at = len(bodies) * BURNING // MINUTES
    slo.write_text(SLO.format(ttft="600ms"))
    with living(store, *CLOSES, "--slo", slo) as service:
        with Sender(service, bodies[:edited_at]) as sender:
            sender.join()
        until(lambda: "TailburnBudgetBurn" in str(asked(store, _PAGES)))
        slo.write_text(SLO.format(ttft="700ms"))
        assert service.stop() == 0
        service.start()
        with Sender(service, bodies[edited_at:]) as sender:
            sender.join()
        until(lambda: asked(store, "SELECT minute_ns FROM evaluated")[0][0] == end_ns(MINUTES))
        assert service.stop() == 0
        said = service.said

    counted = duckdb.execute(_COUNTED, [f"{store}/verdicts/*/*/*.parquet"]).fetchall()
    ((measured,),) = duckdb.execute(_MEASURED, [f"{store}/requests/*/*/*.parquet"]).fetchall()
    assert len(counted) == 2, "a budget before the edit and one after it"
    assert sum(requests for _, requests in counted) == measured > 0
    assert said.count("the SLO was edited: its budget is counted anew") == 1
    pages: dict[str, list[str]] = {}
    for page, new in asked(store, _PAGES):
        pages.setdefault(page, []).append(new)
    assert pages and all(news == ["firing", "inactive"] for news in pages.values()), pages
