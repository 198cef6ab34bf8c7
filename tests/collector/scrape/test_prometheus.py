"""The same signals out of a Prometheus as from the targets themselves."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.fetch import Bounds
from tailburn.collector.scrape.prometheus import Asked, PrometheusSource
from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.signals.mapper import Mapper
from tests.collector.scrape.answers import client_of
from tests.collector.signals.reading import mapped, saved

Series = dict[str, str]


class Prometheus:
    """Answers instant queries of a name, or of names by regular expression."""

    def __init__(self) -> None:
        self.series: list[tuple[Series, str]] = []
        self.asked: list[str] = []

    def scraped(self, text: str, **target: str) -> None:
        """Takes in an answer as a scrape would."""
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                metric = {"__name__": sample.name, **sample.labels, **target}
                self.series.append((metric, repr(sample.value)))

    def up(self, value: str, **target: str) -> None:
        self.series.append(({"__name__": "up", **target}, value))

    def __call__(self, request: httpx.Request) -> httpx.Response:
        (query,) = parse_qs(request.content.decode())["query"]
        self.asked.append(query)
        found = re.fullmatch(r'\{__name__=~"(.*)"\}', query)
        wanted = re.compile(found[1] if found else query)
        result = [
            {"metric": metric, "value": [1_796_145_000.123, value]}
            for metric, value in self.series
            if wanted.fullmatch(metric["__name__"])
        ]
        data = {"resultType": "vector", "result": result}
        return httpx.Response(200, json={"status": "success", "data": data})


def asks(
    answer: Callable[[httpx.Request], httpx.Response], source: PrometheusSource | None = None
) -> list[Asked]:
    source = source or PrometheusSource("http://prometheus:9090/", load_catalogue(), "acme")

    async def run() -> list[Asked]:
        async with client_of(answer) as client:
            return await source.ask(client, Bounds())

    return asyncio.run(run())


@pytest.mark.parametrize("name", ["vllm-0.32.0", "litellm-1.108", "production-stack-a6c01db"])
def test_what_it_has_of_a_target_is_what_the_target_says(name: str) -> None:
    text = saved(name).decode()
    prometheus = Prometheus()
    prometheus.scraped(text, job="chat", instance="engine-a:8000")
    (asked,) = asks(prometheus)
    assert asked.scanned is not None
    told = Mapper(load_catalogue(), asked.target).map(asked.scanned)
    assert (asked.target.job, asked.target.instance) == ("chat", "engine-a:8000")
    # A declared family without a sample is no series, so Prometheus has nothing of it.
    assert told.rows == mapped(text).rows
    assert told.told == {k: v for k, v in mapped(text).told.items() if k in told.told}


def test_targets_are_told_apart_and_take_the_labels_that_all_their_series_share() -> None:
    prometheus = Prometheus()
    both = 'vllm:num_requests_waiting{model_name="m"} 3\nvllm:num_requests_running 4\n'
    prometheus.scraped(both, job="chat", instance="a:1", pod="chat-0", pool="interactive")
    gpus = 'DCGM_FI_DEV_SM_CLOCK{gpu="0",exported_pod="x"} 1\nDCGM_FI_DEV_MEM_CLOCK{gpu="1"} 1\n'
    prometheus.scraped(gpus, job="dcgm", instance="b:1", node="n1")
    targets = {asked.target.instance: asked.target for asked in asks(prometheus)}
    assert targets["a:1"].labels == {"replica": "chat-0", "pool": "interactive"}
    assert targets["b:1"].labels == {"node": "n1"}


def test_a_target_that_goes_down_is_said_so_until_prometheus_forgets_it() -> None:
    source = PrometheusSource("http://prometheus:9090", load_catalogue(), "acme")
    prometheus = Prometheus()
    prometheus.scraped("tgi_queue_size 1\n", job="chat", instance="a:1")
    prometheus.up("1", job="chat", instance="a:1")
    prometheus.up("0", job="other", instance="c:1")  # never told a signal: none of ours
    assert [asked.scanned is None for asked in asks(prometheus, source)] == [False]
    prometheus.series.clear()
    prometheus.up("0", job="chat", instance="a:1")
    assert [asked.scanned is None for asked in asks(prometheus, source)] == [True]
    prometheus.series.clear()
    assert asks(prometheus, source) == []
    prometheus.up("0", job="chat", instance="a:1")
    assert asks(prometheus, source) == []


def test_labels_come_back_as_they_were() -> None:
    prometheus = Prometheus()
    odd = 'a "quoted"\n\\name\\'
    metric = {"__name__": "vllm:num_requests_waiting", "model_name": odd, "instance": "a:1"}
    prometheus.series.append((metric, "3"))
    prometheus.series.append(({**metric, "engine": "1"}, "NaN"))
    (asked,) = asks(prometheus)
    assert asked.scanned is not None
    rows = Mapper(load_catalogue(), asked.target).map(asked.scanned).rows
    (key,) = rows
    assert json.loads(key[2])["model"] == odd
    assert rows[key] == [3.0]
    assert asked.scanned.dropped.total() == 1


def test_it_is_asked_with_the_token_that_the_file_holds_at_the_time(tmp_path: Path) -> None:
    token = tmp_path / "token"
    source = PrometheusSource("http://prometheus:9090", load_catalogue(), "acme", token)
    told: set[str] = set()

    def answer(request: httpx.Request) -> httpx.Response:
        told.add(request.headers["authorization"])
        return Prometheus()(request)

    for text in ("first", "second"):
        token.write_text(f"{text}\n")
        asks(answer, source)
    assert told == {"Bearer first", "Bearer second"}
    token.write_bytes(b"\xff\xfe")
    with pytest.raises(ScrapeError, match="no token: .*2 bytes that are no bearer token"):
        asks(answer, source)
    token.unlink()
    with pytest.raises(ScrapeError, match="no token"):
        asks(answer, source)


def test_queries_stay_short() -> None:
    prometheus = Prometheus()
    asks(prometheus)
    assert prometheus.asked[0] == "up"
    assert len(prometheus.asked) < 20
    assert max(map(len, prometheus.asked)) < 8_000


@pytest.mark.parametrize(
    ("answer", "reason", "told"),
    [
        (httpx.Response(200, text="<html>"), Reason.NOT_METRICS, "is no Prometheus"),
        (httpx.Response(401), Reason.STATUS, "HTTP 401"),
        (
            httpx.Response(200, json={"status": "error", "error": "too many series"}),
            Reason.STATUS,
            "answers: too many series",
        ),
    ],
)
def test_a_prometheus_that_refuses_has_a_reason(
    answer: httpx.Response, reason: Reason, told: str
) -> None:
    with pytest.raises(ScrapeError, match=told) as error:
        asks(lambda request: answer)
    assert error.value.reason is reason
