"""`tailburn backtest --prometheus`: answers of one, in and out of shape."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tailburn.engine.names import (
    SLO_BAD_METRIC,
    SLO_IN_FLIGHT_METRIC,
    SLO_REQUESTS_METRIC,
    SLO_UNMEASURED_METRIC,
)
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.slo.parse import parse
from tests.app.conftest import Result, Run
from tests.app.planning.answers import Rows, iso, rows_by_type
from tests.app.planning.canned import Canned, serving
from tests.engine.store.samples import MINUTE_NS

BEGIN: Final = 28_000_080  # minutes since the epoch, a whole hour
MINUTES: Final = 5 * 60
OUTAGE: Final = range(120, 150)
SLO: Final = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec:
  by: [model]
  clocks: {ttft: {acceptable: {p95: 600ms}, critical: {p95: 2s}}}
  availability: 99%
"""
Row = dict[str, Any]


@dataclass
class Place:
    run: Run
    canned: Canned
    url: str
    slo: Path

    def backtest(self, *flags: object) -> Result:
        times = ("--since", utc(BEGIN), "--until", utc(BEGIN + MINUTES))
        return self.run("backtest", self.slo, "--prometheus", self.url, *times, *flags)

    def rows(self, *flags: object) -> Rows:
        return rows_by_type(self.backtest(*flags, "--json"))

    def scraped(self, bad_ratio: float = 1.0, **labels: str) -> None:
        """Every counter of the SLO: 100 requests a minute, in an outage so many of them bad."""
        bad = [100 * bad_ratio if minute in OUTAGE else 0 for minute in range(MINUTES)]
        self.counted([100] * MINUTES, bad, **labels)

    def counted(self, requests: list[float], bad: list[float], **labels: str) -> None:
        for metric, each in (
            (SLO_REQUESTS_METRIC, requests),
            (SLO_BAD_METRIC, bad),
            (SLO_UNMEASURED_METRIC, [0.0] * len(bad)),
        ):
            total = [0.0, *np.cumsum(each).tolist()]
            for objective in objectives(slo_of()):
                told = {
                    "slo": "chat",
                    "objective": objective.name,
                    "definition": definition_of(slo_of(), objective),
                    "model": "llama",
                }
                self.canned.add(BEGIN, total, metric, **(told | labels))


def slo_of() -> Slo:
    return parse([("chat.yaml", SLO)]).slos[0]


@pytest.fixture
def place(run: Run, tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "chat.yaml").write_text(SLO)
    canned = Canned()
    with serving(canned) as url:
        yield Place(run, canned, url, tmp_path / "chat.yaml")


def utc(minute: int) -> str:
    return iso(minute * MINUTE_NS)


def minute(ns: int) -> int:
    return ns // MINUTE_NS - BEGIN


def ended(alert: Row) -> int:
    return MINUTES if alert["end_ns"] is None else minute(alert["end_ns"])


def forget(place: Place, minutes: range) -> None:
    """Nothing was scraped in these."""
    place.canned.series = [
        (labels, {at: v for at, v in values.items() if at - BEGIN not in minutes})
        for labels, values in place.canned.series
    ]


def test_an_outage_is_paged_and_takes_its_budget(place: Place) -> None:
    place.scraped()
    found = place.rows()
    pages = [row for row in found["alert"] if row["severity"] == "page"]
    assert {row["alert"] for row in pages} == {"TailburnBudgetBurn"}
    begun = sorted(minute(row["start_ns"]) for row in pages)
    assert 120 < begun[0] <= 130 and begun[-1] < 150
    availability = [row for row in found["budget"] if row["objective"] == "availability"]
    assert sum(row["bad"] for row in availability) == 3_000
    assert sum(row["requests"] for row in availability) == 30_000
    assert found["score"][0]["requests"] == 30_000


def test_two_services_that_count_the_same_add_up(place: Place) -> None:
    place.scraped(instance="a:1")
    place.scraped(instance="b:1")
    assert place.rows()["score"][0]["requests"] == 60_000


def test_what_it_does_not_have_is_told(place: Place) -> None:
    place.scraped()
    said = " ".join(place.backtest().err.split())
    for what in (
        "not judged: deadlines of chat: no series tailburn_slo_deadline_requests_total",
        'not judged: stalled queues of chat: no series tailburn_slo_in_flight_requests{slo="chat"}',
        "not judged: percentiles of ttft of chat: no series tailburn_ttft_seconds_bucket",
    ):
        assert what in said


def test_what_it_has_of_some_hours_only_is_told(place: Place) -> None:
    place.scraped()
    place.canned.add(BEGIN + 130, [2.0] * 180, SLO_IN_FLIGHT_METRIC, slo="chat", model="llama")
    [told] = [line for line in place.rows()["score"][0]["not_judged"] if "stalled" in line]
    assert told.startswith("stalled queues of chat in 2 of 5 hours: no value of ")


def test_counters_that_begin_again_are_no_outage_and_lose_nothing(place: Place) -> None:
    place.scraped(0.0)
    place.canned.series = [
        (
            labels,
            {at: v if at < BEGIN + 200 else v - values[BEGIN + 199] for at, v in values.items()},
        )
        for labels, values in place.canned.series
    ]
    found = place.rows()
    assert "alert" not in found
    assert found["score"][0]["requests"] == 30_000


def test_a_gap_freezes_what_fires_and_is_an_alert_of_its_own(place: Place) -> None:
    place.scraped()
    forget(place, range(140, 200))
    found = place.rows()
    [hole] = found["hole"]
    assert (minute(hole["start_ns"]), minute(hole["end_ns"])) == (139, 200)
    burning = [row for row in found["alert"] if row["alert"] == "TailburnBudgetBurn"]
    assert burning and all(not 140 <= ended(row) <= 200 for row in burning)
    gone = [row for row in found["alert"] if row["alert"] == "TailburnUnmeasured"]
    assert {row["objective"] for row in gone} == {"ttft_p95", "availability"}
    assert all(150 < minute(row["start_ns"]) < 160 for row in gone)
    # What was counted in it is of the budget, as soon as it was read.
    assert found["score"][0]["requests"] == 30_000
    assert "a hole from" in place.backtest().err


def test_a_scrape_that_fails_is_nothing_to_tell(place: Place) -> None:
    place.scraped(0.0)
    forget(place, range(140, 141))
    found = place.rows()
    assert "hole" not in found and "alert" not in found
    assert not any("minutes" in line for line in found["score"][0]["not_judged"])


def test_many_scrapes_that_fail_are_told(place: Place) -> None:
    place.scraped(0.0)
    for at in range(10, 290, 10):
        forget(place, range(at, at + 1))
    told = place.rows()["score"][0]["not_judged"]
    [line] = [line for line in told if "rates go over such short gaps" in line]
    assert line.startswith("chat in 9.33 % of the minutes: no value of a counter; ")


def test_a_budget_that_was_defined_otherwise_is_not_judged(place: Place) -> None:
    place.scraped()
    place.canned.series = [
        ({**labels, "definition": "0ld"} if labels["objective"] == "availability" else labels, v)
        for labels, v in place.canned.series
    ]
    found = place.rows()
    assert {row["objective"] for row in found["alert"]} == {"ttft_p95"}
    [told] = [line for line in found["score"][0]["not_judged"] if "availability" in line]
    assert told == "chat availability: counted, but defined otherwise than now, as 0ld"


def test_a_value_of_by_that_ends_alone_is_told(place: Place) -> None:
    place.scraped(0.0)
    place.scraped(0.0, model="qwen")
    place.canned.series = [
        (
            labels,
            {at: v for at, v in values.items() if labels["model"] == "llama" or at < BEGIN + 99},
        )
        for labels, values in place.canned.series
    ]
    told = place.rows()["score"][0]["not_judged"]
    assert any(line.startswith('chat {"model": "qwen"} after ') for line in told)


def test_the_time_before_the_first_value_is_not_told_of(place: Place) -> None:
    place.scraped(0.0)
    since = ("--since", utc(BEGIN - 600))
    [score] = place.rows(*since)["score"]
    assert minute(score["since_ns"]) == 0
    assert any(line.startswith("before ") for line in score["not_judged"])


def test_it_asks_in_pieces_and_in_smaller_ones_where_they_are_too_much(place: Place) -> None:
    place.scraped()
    whole = place.rows()
    points = [(int(a["end"]) - int(a["start"])) // int(a["step"]) + 1 for a in place.canned.asked]
    assert max(points) == 360
    place.canned.most_points = 100
    assert place.rows() == whole


def test_what_is_too_much_in_the_smallest_piece_is_told(place: Place) -> None:
    place.scraped()
    place.canned.most_points = 5
    answer = place.backtest()
    assert answer.code == 2
    assert "HTTP 422: query processing would load too many samples" in answer.err


def test_the_token_of_the_settings_is_sent(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("abc\n")
    monkeypatch.setenv("TAILBURN_SIGNALS_PROMETHEUS_TOKEN", str(tmp_path / "token"))
    place.scraped()
    place.rows()
    assert {told.get("authorization") for told in place.canned.headers} == {"Bearer abc"}


def test_a_name_and_password_are_sent_and_told_nowhere(place: Place) -> None:
    place.canned.refusal = (403, b"{}")
    place.url = place.url.replace("http://", "http://ann:secret@")
    answer = place.backtest()
    assert "answers HTTP 403" in answer.err and "secret" not in answer.err
    assert place.canned.headers[0]["authorization"].startswith("Basic ")


def test_where_nobody_listens_is_told(place: Place) -> None:
    place.url = "http://127.0.0.1:1"
    answer = place.backtest()
    assert answer.code == 2
    assert "--prometheus 127.0.0.1:1: can't connect: " in answer.err


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>", "is no Prometheus, its answer can't be read"),
        (404, b"no such page", "answers HTTP 404"),
        (401, b'{"error": "who are you"}', "answers HTTP 401: who are you"),
    ],
)
def test_what_is_no_prometheus_is_told(place: Place, status: int, body: bytes, said: str) -> None:
    place.canned.refusal = (status, body)
    answer = place.backtest()
    assert answer.code == 2 and said in answer.err


def test_no_series_at_all_is_told(place: Place) -> None:
    answer = place.backtest()
    assert answer.code == 2
    assert "has no series tailburn_slo_requests_total; does it scrape" in answer.err


def test_series_of_other_slos_alone_are_told(place: Place) -> None:
    place.scraped(slo="batch")
    answer = place.backtest()
    assert answer.code == 2
    assert "has no series tailburn_slo_requests_total of chat, only of batch" in answer.err


def test_an_slo_that_was_defined_otherwise_is_told(place: Place) -> None:
    place.scraped(definition="0ld")
    answer = place.backtest()
    assert answer.code == 2
    assert "chat availability: counted, but defined otherwise than now, as 0ld" in answer.err


def test_a_time_without_a_value_is_told(place: Place) -> None:
    place.scraped()
    far = ("--since", utc(BEGIN + 60 * 24 * 30), "--until", utc(BEGIN + 60 * 24 * 30 + 60))
    answer = place.backtest(*far)
    assert answer.code == 2 and "no data: 127.0.0.1:" in answer.err
    near = ("--since", utc(BEGIN + MINUTES + 60), "--until", utc(BEGIN + MINUTES + 120))
    answer = place.backtest(*near)
    assert answer.code == 2 and "no data: the last value of these counters is of" in answer.err


def test_values_each_few_minutes_are_too_few(place: Place) -> None:
    place.scraped()
    forget(place, range(0, MINUTES + 1, 3))
    forget(place, range(1, MINUTES + 1, 3))
    answer = place.backtest()
    assert answer.code == 2
    assert "chat: its counters have a value each 3m; want one a minute at least" in answer.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--store", "store"), "--store and --prometheus: want one of them"),
        (("--prometheus", "http://"), "--prometheus 'http://': want host:port, or a URL"),
        (
            ("--since", "2019-01-01T00:00:30Z", "--until", "2019-01-01T00:00:40Z"),
            "want a whole minute that is past",
        ),
    ],
)
def test_what_can_not_be_asked_is_told(place: Place, flags: tuple[str, ...], said: str) -> None:
    answer = place.backtest(*flags)
    assert answer.code == 2 and said in answer.err


def test_since_when_has_to_be_said(place: Place) -> None:
    answer = place.run("backtest", place.slo, "--prometheus", place.url)
    assert answer.code == 2 and "--prometheus: want --since too, such as --since 14d" in answer.err


def test_an_slo_on_a_source_of_its_own_is_told(place: Place) -> None:
    place.slo.write_text(SLO + "  source: {engine: vllm}\n")
    answer = place.backtest()
    assert answer.code == 2 and "chat: rests on a source of its own" in answer.err


def test_an_slo_whose_counters_begin_late_is_judged_from_then_on(place: Place) -> None:
    place.scraped(0.0)
    place.scraped(slo="late", model="qwen")
    place.canned.series = [
        (labels, {at: v for at, v in values.items() if labels["slo"] == "chat" or at > BEGIN + 90})
        for labels, values in place.canned.series
    ]
    place.slo.write_text(SLO + "---\n" + SLO.replace("name: chat", "name: late"))
    found = place.rows()
    assert {row["slo"] for row in found["alert"]} == {"late"}
    assert {row["alert"] for row in found["alert"]} == {"TailburnBudgetBurn", "TailburnTier"}
    told = found["score"][0]["not_judged"]
    assert any(line.startswith("late before ") and "begin then" in line for line in told)
