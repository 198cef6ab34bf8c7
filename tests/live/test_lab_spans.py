"""The ear fed by the lab over HTTP: its rows are the lab's own truth, within clock error."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from tailburn.lab.records import Attempts, Outcome
from tailburn.lab.telemetry.sender import Sender
from tailburn.lab.telemetry.spans import SpanTelemetry, Wiring, trace_ids
from tests.lab.telemetry.making import MS, S, attempts, wiring
from tests.live.service import QUICK, Service, living, until

EPOCH = 1_764_600_000 * S
MINUTE = 60 * S


def _rows(store: Path) -> dict[str, dict[str, Any]]:
    if not any(store.glob("requests/*/*/*.parquet")):
        return {}
    found = duckdb.sql(
        """SELECT * FROM (
            SELECT * FROM read_parquet(?, union_by_name = true)
            QUALIFY row_number() OVER (PARTITION BY request_id ORDER BY version DESC) = 1
        ) WHERE NOT tombstone""",
        params=[f"{store}/requests/*/*/*.parquet"],
    ).to_arrow_table()
    rows = found.to_pylist()
    assert len({row["trace_id"] for row in rows}) == len(rows)
    return {row["trace_id"]: row for row in rows}


def _run(service: Service, told: Attempts, wired: Wiring, seed: int) -> SpanTelemetry:
    """All bodies of a run, each at its own instant; back when the ear has stored them."""
    before = _told(_rows(service.store))
    telemetry = SpanTelemetry(wired, seed=seed, epoch_unix_ns=EPOCH)
    with Sender(service.http, epoch_unix_ns=EPOCH) as sender:
        sender.send_all(telemetry.feed(told, 0))
        sent = sender.send_all(telemetry.finish())
    assert (sent.refused_bodies, sent.rejected_spans, sent.bodies) == (0, 0, telemetry.bodies)
    until(lambda: _told(_rows(service.store)) - before == telemetry.spans)
    return telemetry


def _told(rows: dict[str, dict[str, Any]]) -> int:
    """Spans that the rows rest on."""
    return sum(row["spans"] + row["token_sends"] for row in rows.values())


def _seconds(ns: Any) -> Any:
    return np.asarray(ns) / 1e9


def _close(rows: list[dict[str, Any]], column: str, truth: Any, within_s: float) -> None:
    measured = [row[column] for row in rows]
    assert None not in measured, f"{column}: {measured.count(None)} of {len(measured)} are null"
    worst = float(np.abs(np.asarray(measured) - truth).max())
    assert worst <= within_s, f"{column}: {worst:.6f} s off, want {within_s} at most"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An ear that goes by the lab's time."""
    store = tmp_path_factory.mktemp("lab") / "store"
    with living(store, "--clock", "telemetry", *QUICK) as running:
        yield running


def test_rows_are_what_happened(service: Service) -> None:
    told = attempts(600, seed=3, rag=True, tokens=True)
    _run(service, told, wiring("app", "fastapi", token_spans=True), seed=3)
    traces = trace_ids(told.request, 3)
    rows = _rows(service.store)
    assert set(rows) == set(traces)

    well = np.flatnonzero((told.outcome == Outcome.OK) & (told.streamed == 1))
    a, found = told.take(well), [rows[traces[i]] for i in well]
    _close(found, "ttft_client_s", _seconds(a.client_first - a.arrival_ns), 1e-6)
    _close(found, "e2e_client_s", _seconds(a.client_end - a.arrival_ns), 1e-6)
    _close(found, "ttft_engine_s", _seconds(a.engine_first - a.engine_in), 1e-6)
    _close(found, "queue_s", _seconds(a.scheduled - a.queued), 1e-6)
    _close(found, "ttft_queue_s", _seconds(a.scheduled - a.queued), 1e-3)
    _close(found, "ttft_prefill_s", _seconds(a.prefill_end - a.scheduled), 1e-3)
    _close(found, "ttft_retrieval_s", _seconds(a.retrieval_end - a.retrieval_start), 1e-6)
    _close(found, "ttft_guardrail_s", _seconds(a.guardrail_end - a.guardrail_start), 1e-6)
    assert [row["output_tokens"] for row in found] == a.output_done.tolist()
    assert [row["prompt_tokens"] for row in found] == a.prompt_tokens.tolist()
    assert {row["outcome"] for row in found} == {"ok"}
    several = np.flatnonzero(a.output_done > 1)
    tpot = (a.client_last - a.client_first) / np.maximum(a.output_done - 1, 1)
    _close([found[i] for i in several], "tpot_engine_s",
           _seconds((a.engine_last - a.engine_first) / np.maximum(a.output_done - 1, 1))[several],
           1e-3)  # fmt: skip
    assert np.isfinite(tpot).all()

    whole = np.flatnonzero((told.outcome == Outcome.OK) & (told.streamed == 0))
    assert len(whole)
    assert {rows[traces[i]]["ttft_client_s"] for i in whole} == {None}
    gone = np.flatnonzero(told.outcome == Outcome.CANCELLED)
    assert {rows[traces[i]]["outcome"] for i in gone} == {"cancelled"}
    refused = np.flatnonzero(told.outcome == Outcome.REJECTED)
    assert {rows[traces[i]]["outcome"] for i in refused} == {"error"}
    assert min(told.client_end - told.arrival_ns) > MS
