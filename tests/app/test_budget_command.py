"""`tailburn budget` on a store that a service ran on, and on one that it did not."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tailburn.engine.store.state.database import open_state, state_path
from tailburn.engine.store.state.versions import Versions
from tests.app.conftest import Run
from tests.app.slos import BY_MODEL, CHAT
from tests.app.verdicts import MINUTE_NS, store_with, verdict

NAMED = replace(BY_MODEL, name="by\x1b[2Jmodel")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tenth of the first tokens late for an hour; of availability nothing is known."""
    store = tmp_path / "store"
    now_ns = time.time_ns() // MINUTE_NS * MINUTE_NS
    rows = [verdict(CHAT, "ttft_p95", now_ns - m * MINUTE_NS, 10, 1) for m in range(1, 61)]
    rows.append(verdict(NAMED, "ttft_p95", now_ns - 90 * MINUTE_NS, 100, 3, model="a"))
    store_with(store, rows)
    state = open_state(state_path(store))
    Versions(state).load([CHAT, NAMED], now_ns)
    state.close()
    return store


def test_each_budget_is_told_with_what_is_left_and_when_it_is_gone(run: Run, folder: Path) -> None:
    told = run("budget", "--store", folder)

    assert told.code == 0
    lines = [" ".join(line.split()) for line in told.out.splitlines()]
    ttft = next(line for line in lines if line.startswith("chat ttft_p95"))
    assert "gone 5.0 % 600 60 200.0 % -100.0 % 2.0x since" in ttft
    availability = next(line for line in lines if line.startswith("chat availability"))
    assert "unknown 0.1 % 0 0 unmeasured unmeasured unmeasured" in availability
    by_model = next(line for line in lines if "model=a" in line)
    assert "no request lately 5.0 % 100 3 60.0 % 40.0 % since" in by_model
    assert "100 %" not in availability


def test_the_burn_down_is_drawn_and_no_name_acts_on_the_terminal(run: Run, folder: Path) -> None:
    told = run("budget", "--store", folder)

    assert "-100.0 % left, since" in told.out
    assert "\x1b[2J" not in told.out


def test_json_has_every_figure_of_each_budget(run: Run, folder: Path) -> None:
    rows = [
        json.loads(line) for line in run("budget", "--store", folder, "--json").out.splitlines()
    ]

    found = {(row["slo"], row["objective"]): row for row in rows}
    assert found["chat", "availability"]["left_ratio"] is None
    assert found["chat", "availability"]["outlook"] == "unmeasured"
    ttft = found["chat", "ttft_p95"]
    assert (ttft["requests"], ttft["bad"], ttft["outlook"]) == (600, 60, "gone")
    assert len(ttft["course"]) == 60


def test_one_slo_is_asked_for_by_name(run: Run, folder: Path) -> None:
    told = run("budget", "--store", folder, "--slo", "chat", "--json")
    wrong = run("budget", "--store", folder, "--slo", "chta")

    assert {json.loads(line)["slo"] for line in told.out.splitlines()} == {"chat"}
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean chat" in wrong.err


def test_as_of_an_earlier_time(run: Run, folder: Path) -> None:
    told = run("budget", "--store", folder, "--slo", "chat", "--until", "2h", "--json")

    assert {json.loads(line)["outlook"] for line in told.out.splitlines()} == {"unmeasured"}


def test_a_store_without_slos_says_so(run: Run, store: Path) -> None:
    told = run("budget", "--store", store)

    assert (told.code, told.out) == (0, "")
    assert "no service ran with --slo" in told.err


def test_a_service_that_does_not_answer_is_named(run: Run) -> None:
    told = run("budget", "--url", "http://127.0.0.1:9")

    assert told.code == 2
    assert "--url http://127.0.0.1:9: " in told.err
