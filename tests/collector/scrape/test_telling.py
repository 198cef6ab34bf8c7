"""What the log says of targets: each trouble once, also of one that comes and goes, or of all."""

import logging
from collections import Counter

import httpx
import pytest

from tailburn.collector.scrape.errors import Reason
from tailburn.collector.scrape.telling import WELL_AGAIN
from tests.collector.scrape.bench import Bench, scraper_of, targets


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "target" in record.getMessage()]


def test_a_target_that_comes_back_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    answer = httpx.Response(503)
    bench = Bench(targets("a:1"), lambda request: answer)
    bench.round()
    bench.round()
    answer = httpx.Response(200, text="tgi_queue_size 1\n")
    for _ in range(WELL_AGAIN + 2):
        bench.round()
    assert told(caplog) == [
        "target a:1 (a test): answers HTTP 503",
        "target a:1 (a test) is read again",
    ]
    assert bench.scraper.tally.reads == {Reason.STATUS: 2, Reason.UP: WELL_AGAIN + 2}


def test_a_target_that_comes_and_goes_is_told_once_for_each_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    bad = [httpx.Response(503), httpx.Response(200, text="<html>")]
    answers = [bad[0], httpx.Response(200, text="tgi_queue_size 1\n"), bad[1]] * 20
    bench = Bench(targets("a:1"), lambda request: answers.pop())
    for _ in range(60):
        bench.round()
    assert told(caplog) == [
        "target a:1 (a test): answers HTML, not metrics: is the path right?",
        "target a:1 (a test): answers HTTP 503",
    ]


def test_a_thousand_that_fail_and_come_back_are_a_few_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    answer = httpx.Response(503)
    now_s = 1_000.0
    bench = Bench(targets(*(f"a:{i}" for i in range(1, 1_001))), lambda request: answer)
    bench.scraper = scraper_of(bench, lambda: now_s)
    bench.round()
    now_s += 60.0
    answer = httpx.Response(200, text="tgi_queue_size 1\n")
    for _ in range(WELL_AGAIN):
        bench.round()
    now_s += 60.0
    bench.round()
    more = "980 more targets changed in a minute: `tailburn signals check` shows each"
    said = told(caplog)
    assert said.count(more) == 2
    assert Counter(" is read again" in line for line in said) == {False: 22, True: 20}
    assert {s.reason for s in bench.scraper.tally.targets.values()} == {Reason.UP}
