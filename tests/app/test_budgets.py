"""Budgets as rows, from verdicts in a store."""

from dataclasses import replace
from pathlib import Path

import pytest

from tailburn.app.answers.budgets import budget_rows
from tailburn.app.answers.promises import Promise, promises_in, promises_of
from tailburn.engine.slo.model import Calendar, Rolling
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.state.database import open_state, state_path
from tailburn.engine.store.state.versions import Versions
from tests.app.slos import BY_MODEL, CHAT
from tests.app.verdicts import MINUTE_NS, store_with, verdict

NOW_NS = 1_780_000_000_000_000_000 // MINUTE_NS * MINUTE_NS
DAY = 24 * 60


def minutes_ago(minutes: int) -> int:
    return NOW_NS - minutes * MINUTE_NS


def test_a_budget_is_that_of_its_whole_window_and_of_its_definition_alone(tmp_path: Path) -> None:
    store = store_with(
        tmp_path,
        [
            verdict(CHAT, "ttft_p95", minutes_ago(31 * DAY), 1000, 1000),
            verdict(CHAT, "ttft_p95", minutes_ago(29 * DAY), 900, 9),
            verdict(CHAT, "ttft_p95", minutes_ago(5), 100, 21),
            verdict(CHAT, "ttft_p95", minutes_ago(5), 7, 7) | {"definition": "0badcafe"},
        ],
    )

    rows = budget_rows(store, promises_of([CHAT]), NOW_NS)

    ttft = next(row for row in rows if row["objective"] == "ttft_p95")
    assert (ttft["requests"], ttft["bad"]) == (1000, 30)
    assert ttft["left_ratio"] == pytest.approx(1 - 0.03 / 0.05)
    assert ttft["burn_rate"] == pytest.approx(0.21 / 0.05)
    assert ttft["outlook"] == "runs out"


def test_an_objective_without_a_verdict_is_unmeasured_not_whole(tmp_path: Path) -> None:
    store = store_with(tmp_path, [verdict(CHAT, "ttft_p95", minutes_ago(5), 0, 0, unmeasured=3)])

    rows = budget_rows(store, promises_of([CHAT]), NOW_NS)

    assert [(r["objective"], r["outlook"], r["left_ratio"]) for r in rows] == [
        ("availability", "unmeasured", None),
        ("ttft_p95", "unmeasured", None),
    ]
    assert rows[1]["unmeasured_ratio"] == 1.0


def test_an_empty_store_is_unmeasured(tmp_path: Path) -> None:
    rows = budget_rows(ParquetStore(tmp_path), promises_of([CHAT]), NOW_NS)

    assert {row["outlook"] for row in rows} == {"unmeasured"}


def test_a_short_window_is_counted_to_the_minute(tmp_path: Path) -> None:
    hours = replace(CHAT, window=Rolling(6 * 3600.0))
    store = store_with(
        tmp_path,
        [
            verdict(hours, "ttft_p95", minutes_ago(361), 100, 100),
            verdict(hours, "ttft_p95", minutes_ago(360), 100, 1),
        ],
    )

    ttft = budget_rows(store, promises_of([hours]), NOW_NS)[1]

    assert (ttft["requests"], ttft["bad"]) == (100, 1)


def test_each_value_of_by_has_a_budget_and_a_tenant_sees_its_own(tmp_path: Path) -> None:
    by_tenant = replace(BY_MODEL, by=("tenant", "model"))
    of = {"acme": 3, "umbra": 4}
    store = store_with(
        tmp_path,
        [
            verdict(by_tenant, "ttft_p95", minutes_ago(5), 10, bad, tenant=tenant, model="m")
            for tenant, bad in of.items()
        ],
    )
    promises = promises_of([by_tenant])

    everything = budget_rows(store, promises, NOW_NS)
    acmes = budget_rows(store, promises, NOW_NS, tenant="acme")

    assert {row["by"]["tenant"]: row["bad"] for row in everything} == of
    assert [(row["by"], row["bad"]) for row in acmes] == [({"tenant": "acme", "model": "m"}, 3)]
    assert budget_rows(store, promises_of([CHAT]), NOW_NS, tenant="acme") == []


def test_what_the_database_keeps_of_a_promise_is_the_promise(tmp_path: Path) -> None:
    slos = [
        CHAT,
        replace(BY_MODEL, window=Calendar("month", "Europe/Berlin"), select={"tenant": "t"}),
    ]
    state = open_state(state_path(tmp_path))
    Versions(state).load([*slos, replace(CHAT, name="gone")], 11)
    Versions(state).load(slos, 12)

    kept = promises_in(Versions(state).all())
    state.close()

    def by_name(promise: Promise) -> tuple[str, str]:
        return promise.slo, promise.objective

    assert sorted(kept, key=by_name) == sorted(promises_of(slos), key=by_name)
