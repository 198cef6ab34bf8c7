"""`tailburn alerts` on the store of a service, and how rows are told apart."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tailburn.app.answers.alerts import alert_rows
from tests.app.conftest import Run
from tests.app.lives import Lives
from tests.app.slos import CHAT

ONE = replace(CHAT, clocks={}, availability_ratio=0.99)


@pytest.fixture(scope="module")
def burning(tmp_path_factory: pytest.TempPathFactory) -> Lives:
    """Seven hours that were well, and ten minutes in which all was bad."""
    lives = Lives(tmp_path_factory.mktemp("alerts") / "store", [ONE], healthy=420)
    lives.minutes(10, 1.0)
    return lives


def test_what_fires_is_told_with_its_begin_and_its_reason(
    run: Run, burning: Lives, tmp_path: Path
) -> None:
    answer = run("alerts", "--store", burning.store.root, "--json")
    rows = [json.loads(line) for line in answer.out.splitlines()]
    pages = [row for row in rows if (row["status"], row["severity"]) == ("firing", "page")]
    assert answer.code == 0 and pages
    assert all("bad, too much is" in row["why"] and row["value"] > 0.1 for row in pages)
    shown = run("alerts", "--store", burning.store.root)
    assert "TailburnBudgetBurn" in shown.out and "no service runs on it" in shown.err


def test_a_quiet_alert_is_told_where_its_slo_is_known(burning: Lives) -> None:
    watches, states = burning.evaluating.watches, burning.evaluating.states()
    rows = alert_rows(states, watches)
    assert {row["status"] for row in rows} >= {"firing", "inactive"}
    assert rows == sorted(rows, key=lambda row: row["status"] == "inactive")
    assert len(rows) == len(watches)


def test_a_store_without_alerts_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    answer = run("alerts", "--store", tmp_path)
    assert (answer.code, answer.out) == (0, "")
    assert "no alert was ever evaluated here" in answer.err


def test_a_service_and_a_store_are_not_both_asked(run: Run, tmp_path: Path) -> None:
    answer = run("alerts", "--store", tmp_path, "--url", "http://localhost:1")
    assert (answer.code, answer.err) == (
        2, "tailburn: --url asks a running service: no --store\n",
    )  # fmt: skip
    assert "--url http://localhost:1: " in run("alerts", "--url", "http://localhost:1").err
