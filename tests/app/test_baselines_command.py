"""`tailburn baselines` and `/api/baselines`' rows, of a store of four days."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tailburn.app.answers.baselines import baseline_rows
from tailburn.app.answers.baselines_asked import asked_for
from tailburn.app.incidents import fired_lately
from tailburn.engine.baseline import Incident
from tailburn.engine.evaluation import AlertKey, Flip, Status
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import open_state, state_path
from tailburn.engine.store.state.versions import Versions
from tests.app.conftest import Run
from tests.app.slos import BY_MODEL
from tests.app.usual import store_of_days

HOUR_NS = 3_600 * 10**9
DAY_NS = 24 * HOUR_NS
CLOCK = "ttft_gateway_s"

Stored = tuple[Path, int]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """Slow a day ago, twice as slow as usual now."""
    folder = tmp_path_factory.mktemp("baselines") / "store"
    _, now_ns = store_of_days(folder, slow_day=1, slow=2.0)
    return folder, now_ns


def rows_of(
    week: Stored, by: str = "model,replica", fired: list[Incident] | None = None, **where: str
) -> list[Row]:
    folder, now_ns = week
    return baseline_rows(ParquetStore(folder), asked_for(now_ns, "15m", by, "ttft", where), fired)


def until(week: Stored) -> tuple[str, str]:
    return "--until", datetime.fromtimestamp(week[1] / 1e9, UTC).isoformat()


def test_the_tail_now_is_held_against_that_of_the_same_hour(week: Stored) -> None:
    by_replica = {row["replica"]: row for row in rows_of(week)}

    assert set(by_replica) == {"r0", "r1"}
    one = by_replica["r0"]
    assert one["clock"] == CLOCK
    assert [(d["days_ago"], d["state"]) for d in one["days"]] == [(n, "used") for n in (1, 2, 3)]
    assert one["usual"]["days"] == 3
    assert one["usual"]["requests"] == sum(day["requests"] for day in one["days"])
    assert one["ratio"]["p50"] == pytest.approx(2, rel=0.15)
    assert one["usual"]["p50_s"] < one["usual"]["p95_s"] < one["usual"]["p99_s"]
    assert one["usual"]["p99_s"] == sorted(day["p99_s"] for day in one["days"])[1]
    assert not one["alerts_known"]


def test_a_day_that_alerted_is_left_out_and_told_why(week: Stored) -> None:
    yesterday_ns = week[1] - DAY_NS
    fired = [Incident(yesterday_ns, yesterday_ns + 60, "TailburnBudgetBurn", {"model": "llama"})]

    [one, _] = rows_of(week, fired=fired)

    assert [d["state"] for d in one["days"]] == ["excluded", "used", "used"]
    assert one["days"][0]["left_out"] > 3_000 and one["days"][0]["requests"] == 0
    assert [d["left_out_for"] for d in one["days"]] == [["TailburnBudgetBurn"], [], []]
    assert one["usual"]["days"] == 2 and one["alerts_known"]
    elsewhere = [Incident(yesterday_ns, None, "TailburnBudgetBurn", {"model": "qwen"})]
    assert rows_of(week, fired=elsewhere)[0]["days"][0]["state"] == "used"


def test_deadlines_are_those_of_the_load_there_is(week: Stored) -> None:
    held = rows_of(week)[0]["deadline"]

    assert held["rate_per_s"] == pytest.approx(1.0, rel=0.25)  # two a second on two replicas
    assert held["matched_on"] == "uncached"
    assert (held["judged"], held["missing_requests"]) == (held["requests"], 0)
    assert held["seen_requests"] > 5_000 and held["seen_days"] == 4
    assert held["outside"] == {}
    assert "by arrival rate and uncached prompt tokens" in held["told"]


def test_a_filter_by_what_is_pooled_leaves_its_parents_whole(week: Stored) -> None:
    [one] = rows_of(week, by="model", replica="r1")
    [all_of] = rows_of(week, by="model")

    assert (one["model"], one["replica"]) == ("llama", "r1")
    assert one["now"]["requests"] < all_of["now"]["requests"]
    assert one["deadline"]["rate_per_s"] == pytest.approx(1.0, rel=0.25)


def test_a_filter_by_type_leaves_the_load_that_of_the_whole_replica(week: Stored) -> None:
    [chat, _] = rows_of(week, by="replica", request_type="chat")

    assert chat["now"]["requests"] == pytest.approx(450, rel=0.15)  # half a second, 15 min
    assert chat["deadline"]["rate_per_s"] == pytest.approx(1.0, rel=0.25)


def test_a_new_replica_is_held_against_its_siblings_even_when_asked_for_alone(
    tmp_path: Path,
) -> None:
    _, now_ns = store_of_days(tmp_path, renamed="r2")

    [alone] = rows_of((tmp_path, now_ns), replica="r2")

    assert alone["pooled"] == ["replica"] and alone["own_requests"] == 0
    assert alone["usual"]["days"] == 3 and alone["usual"]["p99_s"] > 0
    assert alone["own_needs_s"] is not None
    assert alone["deadline"]["seen_days"] == 1  # it has its own since an hour ended


def test_a_new_service_says_how_much_longer_it_takes(tmp_path: Path) -> None:
    _, now_ns = store_of_days(tmp_path, days=1)

    [one, _] = rows_of((tmp_path, now_ns))

    assert one["usual"]["p99_s"] is None and one["usual"]["requests"] == 0
    assert {day["state"] for day in one["days"]} == {"young"}
    assert one["needs_s"] == pytest.approx(23.5 * 3600 - 75 * 60 + 300, abs=600)
    assert one["ratio"] == {name: None for name in ("p50", "p95", "p99", "p999")}


def test_a_thin_present_is_shown_and_not_judged(week: Stored) -> None:
    folder, now_ns = week
    asked = asked_for(now_ns, "2m", "replica", "ttft", {})

    [one, _] = baseline_rows(ParquetStore(folder), asked, None)

    assert 0 < one["now"]["requests"] < 300 and one["now"]["p50_s"] > 0
    assert set(one["ratio"].values()) == {None}


def test_the_tables_tell_every_figure_and_what_it_rests_on(run: Run, week: Stored) -> None:
    told = run("baselines", "--store", week[0], *until(week), "--by", "model,replica")

    assert told.code == 0
    lines = [" ".join(line.split()) for line in told.out.splitlines()]
    assert "This hour on the days before, and the last 15m" in lines
    assert "Deadlines at the load of the last 15m" in lines
    assert sum(line.startswith("llama r0 ttft_gateway_s") for line in lines) == 2
    assert "no alert was ever evaluated on this store" in told.err


def test_json_has_the_rows_of_the_answer(run: Run, week: Stored) -> None:
    told = run(
        "baselines", "--store", week[0], *until(week),
        "--by", "model,replica", "--clock", CLOCK, "--json",
    )  # fmt: skip

    assert [json.loads(line) for line in told.out.splitlines()] == rows_of(week)


def test_what_fired_is_taken_from_the_state_of_the_store(run: Run, tmp_path: Path) -> None:
    _, now_ns = store_of_days(tmp_path, slow_day=1)
    state = open_state(state_path(tmp_path))
    key = AlertKey(
        "TailburnBudgetBurn", "by-model", "ttft_p95", "page", "1h", "5m", (("model", "llama"),)
    )
    began_ns = now_ns - DAY_NS
    flips = [
        Flip(key, Status.INACTIVE, Status.FIRING, began_ns, 3.0, "burns"),
        Flip(key, Status.FIRING, Status.INACTIVE, began_ns + 300 * 10**9, 0.0, "over"),
    ]
    Versions(state).load([BY_MODEL], began_ns)
    Alerts(state).write(now_ns, {}, {}, flips)
    state.close()

    told = run("baselines", "--store", tmp_path, *until((tmp_path, now_ns)), "--clock", "ttft")

    assert "1 d ago not used: 1," in told.out  # thousand and some, of each type and replica
    assert "requests left out for TailburnBudgetBurn" in told.out
    assert "no alert was ever evaluated" not in told.err


def test_an_alert_speaks_of_what_its_slo_selects(tmp_path: Path) -> None:
    state = open_state(state_path(tmp_path))
    chat = replace(BY_MODEL, select={"pool": "interactive"})
    Versions(state).load([chat], 11)
    key = AlertKey("TailburnStalled", "by-model", "stalled", "page", "", "", (("model", "m"),))
    Alerts(state).write(60, {}, {}, [Flip(key, Status.PENDING, Status.FIRING, 20, None, "")])

    found = fired_lately(Alerts(state), Versions(state), 60)
    state.close()

    assert found == [
        Incident(
            20, None, "TailburnStalled", {"pool": "interactive", "slo": "by-model", "model": "m"}
        )
    ]


def test_a_store_without_the_time_says_so(run: Run, week: Stored) -> None:
    told = run("baselines", "--store", week[0])

    assert (told.code, told.out) == (0, "")
    assert "no data: nothing that fits was measured now" in told.err
    assert "the newest request closed 2026-" in told.err and "--until" in told.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--by", "modle"), "baselines: dimension 'modle' is not known; want one of model, pool"),
        (("--where", "outcome=ok"), "baselines: dimension 'outcome' is not known"),
        (("--clock", "tftf"), "--clock 'tftf' is not known; want one of e2e"),
        (("--over", "2h"), "--over 2h: want 1m to 1h"),
        (("--over", "soon"), "--over 'soon': want a duration"),
        (("--url", "http://127.0.0.1:9"), "--url asks a running service: no --store"),
    ],
)
def test_what_can_not_be_asked_is_told(
    run: Run, week: Stored, flags: tuple[str, str], said: str
) -> None:
    told = run("baselines", "--store", week[0], *flags)

    assert told.code == 2 and said in told.err
