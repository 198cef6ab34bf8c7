"""Rounds over many targets, good and bad: each bad one costs itself one line and nobody else."""

import asyncio
import logging
from collections.abc import Sequence

import httpx
import pytest

from tailburn.collector.scrape.discovery import Discovery
from tailburn.collector.scrape.errors import Reason
from tailburn.collector.scrape.fetch import Bounds, new_client
from tailburn.collector.scrape.prometheus import PrometheusSource
from tailburn.collector.scrape.scraper import Pace, Scraper
from tailburn.collector.scrape.tally import KEPT, REFUSED, UNKNOWN
from tailburn.collector.signals.exposition import Dropped
from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.signals.targets import Target, target_of
from tests.collector.scrape.answers import Answer, client_of, http, listening, pours, says
from tests.collector.scrape.bench import (
    NOW_NS,
    PACE,
    Bench,
    Listed,
    Taken,
    targets,
    text,
)


def test_rows_of_every_target_are_taken_at_the_time_handed_in() -> None:
    bench = Bench(targets("a:1", "b:1"), text("tgi_queue_size 3\n"))
    bench.round()
    assert len(bench.taken.tables) == 2
    for tenant, received_ns, table in bench.taken.tables:
        assert (tenant, received_ns) == ("acme", NOW_NS)
        assert table.column("received_ns").to_pylist() == [NOW_NS] * 2
        assert table.column("name").to_pylist() == ["up", "requests_waiting"]


@pytest.mark.timeout(60)
def test_bad_targets_cost_themselves_a_line_and_nobody_else_anything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    good = "vllm:num_requests_waiting 3\nvllm:num_requests_running 4\n"
    long_label = 'vllm:num_requests_running{a="' + "x" * 900_000 + '"} 1\n'
    twice = 'tgi_queue_size{a="1"} 1\ntgi_queue_size{a="1"} 2\nvllm:num_requests_waiting NaN\n'
    answers: dict[str, Answer] = {
        "good": says(http(good.encode())),
        "pours": pours,
        "html": says(http(b"<html>")),
        "long": says(http((long_label + good).encode())),
        "twice": says(http(twice.encode())),
        "dies": says(http(good.encode(), length=9_999)),
    }

    async def run() -> tuple[Scraper, Taken, dict[str, str]]:
        taken, names, listed = Taken(), {}, Listed([])
        async with new_client(16) as client:
            scraper = Scraper(
                load_catalogue(), Discovery([listed]), client, taken, lambda: NOW_NS, PACE
            )
            async with asyncio.TaskGroup() as group:
                stop = asyncio.Event()

                async def serve(name: str, answer: Answer) -> None:
                    async with listening(answer) as port:
                        names[name] = f"127.0.0.1:{port}"
                        await stop.wait()

                for name, answer in answers.items():
                    group.create_task(serve(name, answer))
                while len(names) < len(answers):
                    await asyncio.sleep(0.01)
                listed.targets = [target_of(at, {}, name, "x") for name, at in names.items()]
                await scraper.round()
                await scraper.round()
                stop.set()
        return scraper, taken, names

    scraper, taken, names = asyncio.run(run())
    standings = {standing.via: standing for standing in scraper.tally.targets.values()}
    assert {name: standing.reason for name, standing in standings.items()} == {
        "good": Reason.UP,
        "pours": Reason.TOO_LARGE,
        "html": Reason.NOT_METRICS,
        "long": Reason.UP,
        "twice": Reason.UP,
        "dies": Reason.BROKEN,
    }
    assert standings["long"].message.startswith("samples left out: line over 64 KiB (1); first: ")
    assert standings["twice"].message == (
        "samples left out: not a number (1), same series twice (1); "
        "first: 'vllm:num_requests_waiting NaN'"
    )
    # Two rounds, one line for each that is not well, none for the good one.
    assert len(caplog.records) == 5
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    rows = [row for _, _, table in taken.tables for row in table.to_pylist()]
    of_good = [r["value"] for r in rows if names["good"] in r["resource"]]
    assert of_good == [1.0, 3.0, 4.0] * 2
    down = [r["value"] for r in rows if names["dies"] in r["resource"]]
    assert down == [0.0, 0.0]


def test_every_sample_of_an_answer_has_a_fate() -> None:
    answer = (
        "tgi_queue_size 1\ntgi_queue_size 2\ntgi_queue_size x\npython_info 1\n"
        'nv_trt_llm_request_metrics{request_type="context"} 1\nDCGM_FI_DEV_SM_CLOCK 9.3e18\n'
        "tgi_batch_current_size NaN\n"
    )
    bench = Bench(targets("a:1"), text(answer))
    bench.round()
    assert bench.scraper.tally.samples == {
        KEPT: 1,
        UNKNOWN: 2,
        Dropped.DUPLICATE: 1,
        Dropped.BROKEN: 1,
        Dropped.NAN: 1,
        Dropped.BLANK: 1,
    }


def test_ten_thousand_series_of_one_target_are_all_kept() -> None:
    lines = (f'vllm:num_requests_waiting{{model_name="m{i}"}} {i}\n' for i in range(10_000))
    answer = "".join(lines)
    bench = Bench(targets("a:1"), text(answer))
    bench.round()
    ((_, _, table),) = bench.taken.tables
    waiting = [row for row in table.to_pylist() if row["name"] == "requests_waiting"]
    assert sorted(row["value"] for row in waiting) == [float(i) for i in range(10_000)]


def test_one_that_can_not_be_read_at_all_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "a":
            raise RuntimeError("a fault of ours")
        return httpx.Response(200, text="tgi_queue_size 1\n")

    bench = Bench(targets("a:1", "b:1"), answer)
    bench.round()
    assert {s.instance: s.reason for s in bench.scraper.tally.targets.values()} == {
        "a:1": Reason.BROKEN,
        "b:1": Reason.UP,
    }
    assert len(bench.taken.tables) == 2


def test_rounds_go_on_after_one_that_failed(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Listed):
        async def find(self) -> Sequence[Target]:
            self.targets, found = [target_of("a:1", {}, "", "x")], self.targets
            if not found:
                raise RuntimeError("a fault of ours")
            return found

    listed = Failing([])
    taken = Taken()

    async def run() -> None:
        scraper = Scraper(
            load_catalogue(), Discovery([listed]), client_of(text("tgi_queue_size 1\n")), taken,
            lambda: NOW_NS, Pace(0.01, Bounds(timeout_s=30.0)),
        )  # fmt: skip
        task = asyncio.create_task(scraper.run())
        while not taken.tables:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(asyncio.wait_for(run(), 60))
    assert [record.getMessage() for record in caplog.records] == [
        "a round of reading metrics failed"
    ]


def test_values_whose_sum_is_beyond_all_numbers_cost_no_other_target() -> None:
    depth = "vllm:num_requests_waiting"
    huge = f'{depth}{{engine="0"}} 1.7e308\n{depth}{{engine="1"}} 1.7e308\n{depth} Inf\n'

    def answer(request: httpx.Request) -> httpx.Response:
        good = "tgi_queue_size 1\n"
        return httpx.Response(200, text=huge if request.url.host == "a" else good)

    bench = Bench(targets("a:1", "b:1"), answer)
    bench.round()
    assert len(bench.taken.tables) == 2
    standings = {s.instance: s.message for s in bench.scraper.tally.targets.values()}
    assert standings["a:1"].startswith("samples left out: infinite, or beyond 1e300 (3); first: ")
    assert standings["b:1"] == ""


def test_a_full_log_loses_this_answer_alone_and_says_so() -> None:
    bench = Bench(targets("a:1"), text("tgi_queue_size 1\n"))
    bench.taken.problem = "the log is at its bound"
    bench.round()
    (standing,) = bench.scraper.tally.targets.values()
    assert standing.message == "read, but not taken: the log is at its bound"
    assert bench.scraper.tally.samples[REFUSED] == 2
    bench.taken.problem = ""
    bench.round()
    assert len(bench.taken.tables) == 1


def test_a_target_that_is_no_longer_named_is_forgotten() -> None:
    bench = Bench(targets("a:1", "b:1"), text("tgi_queue_size 1\n"))
    bench.round()
    bench.listed.targets = bench.listed.targets[1:]
    bench.round()
    assert [s.instance for s in bench.scraper.tally.targets.values()] == ["b:1"]


def test_labels_of_a_target_that_change_are_taken_up() -> None:
    bench = Bench(targets("a:1"), text("tgi_queue_size 1\n"))
    bench.round()
    bench.listed.targets = [target_of("a:1", {"pool": "batch"}, "", "acme")]
    bench.round()
    ((_, _, table),) = bench.taken.tables
    assert all('"pool": "batch"' in labels for labels in table.column("labels").to_pylist())


def test_a_prometheus_is_asked_beside_and_its_failure_costs_no_target() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/api"):
            return httpx.Response(500)
        return httpx.Response(200, text="tgi_queue_size 1\n")

    source = PrometheusSource("http://prometheus:9090", load_catalogue(), "acme")
    bench = Bench(targets("a:1"), answer, prometheus=source)
    bench.round()
    standings = {s.instance: s.reason for s in bench.scraper.tally.targets.values()}
    assert standings == {"a:1": Reason.UP, "prometheus:9090": Reason.STATUS}
    assert len(bench.taken.tables) == 1


def test_targets_of_a_prometheus_stay_known_while_it_does_not_answer() -> None:
    up = True

    def answer(request: httpx.Request) -> httpx.Response:
        metric = {"__name__": "tgi_queue_size", "job": "chat", "instance": "b:2"}
        result = [{"metric": metric, "value": [1.0, "7"]}] if b"tgi" in request.content else []
        told = {"status": "success", "data": {"result": result}}
        return httpx.Response(200, json=told) if up else httpx.Response(500)

    source = PrometheusSource("http://prometheus:9090", load_catalogue(), "acme")
    bench = Bench(Listed([]), answer, prometheus=source)
    bench.round()
    up = False
    bench.round()
    bench.round()
    assert [s.instance for s in bench.scraper.tally.targets.values()] == ["prometheus:9090", "b:2"]


def test_rows_out_of_a_prometheus_are_those_of_its_targets() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        metric = {"__name__": "tgi_queue_size", "job": "chat", "instance": "b:2"}
        result = [{"metric": metric, "value": [1.0, "7"]}] if b"tgi" in request.content else []
        return httpx.Response(200, json={"status": "success", "data": {"result": result}})

    source = PrometheusSource("http://prometheus:9090", load_catalogue(), "acme")
    bench = Bench(Listed([]), answer, prometheus=source)
    bench.round()
    ((tenant, _, table),) = bench.taken.tables
    assert tenant == "acme"
    assert table.select(["name", "service", "value"]).to_pylist() == [
        {"name": "up", "service": "chat", "value": 1.0},
        {"name": "requests_waiting", "service": "chat", "value": 7.0},
    ]


def test_moments_are_spread_over_what_the_time_out_leaves_of_a_round() -> None:
    assert PACE.spread_s == 60.0
    assert Pace(interval_s=5.0, bounds=Bounds(timeout_s=5.0)).spread_s == 0.0
