"""Series over a past time out of a Prometheus, and one clear word where there are none."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import numpy as np
import pytest

from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.fetch import Bounds
from tailburn.collector.scrape.ranges import PrometheusRanges, Ranged, is_too_much
from tests.collector.scrape.answers import client_of

BOUNDS = Bounds(timeout_s=30.0, body_bytes=1 << 20)
URL = "http://prometheus:9090/"
Answer = Callable[[httpx.Request], httpx.Response]


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> httpx.Response:
    result = [{"metric": labels, "values": values} for labels, values in series]
    data = {"resultType": "matrix", "result": result}
    return httpx.Response(200, json={"status": "success", "data": data})


def read(answer: Answer, ranges: PrometheusRanges | None = None, end_s: int = 240) -> list[Ranged]:
    async def run() -> list[Ranged]:
        async with client_of(answer) as client:
            return await (ranges or PrometheusRanges(URL)).read(client, "up", 60, end_s, 60, BOUNDS)

    return asyncio.run(run())


def refusal(answer: Answer) -> ScrapeError:
    with pytest.raises(ScrapeError) as told:
        read(answer)
    return told.value


def test_a_series_is_its_labels_times_and_values() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return matrix(({"slo": "chat"}, [(60, "7"), (180.0, "NaN"), (240, "+Inf")]))

    [found] = read(answer)
    assert found.labels == {"slo": "chat"}
    np.testing.assert_array_equal(found.at_s, [60, 180, 240])
    np.testing.assert_array_equal(found.values, [7, np.nan, np.inf])
    assert asked[0].url.path == "/api/v1/query_range"
    assert parse_qs(asked[0].content.decode()) == {
        "query": ["up"], "start": ["60"], "end": ["240"], "step": ["60"],
    }  # fmt: skip


def test_a_name_and_password_of_the_address_are_sent_and_not_told(tmp_path: Path) -> None:
    ranges = PrometheusRanges("https://ann:secret@prom/behind/")
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return matrix()

    assert read(answer, ranges) == []
    assert asked[0].headers["authorization"].startswith("Basic ")
    assert asked[0].url.path == "/behind/api/v1/query_range"
    assert ranges.name == "prom:443"


def test_a_token_is_read_for_each_question(tmp_path: Path) -> None:
    held = tmp_path / "token"
    held.write_text("first\n")
    ranges, seen = PrometheusRanges(URL, held), list[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return matrix()

    read(answer, ranges)
    held.write_text("second\n")
    read(answer, ranges)
    assert seen == ["Bearer first", "Bearer second"]
    held.unlink()
    with pytest.raises(ScrapeError, match="no token: "):
        read(answer, ranges)


def test_no_more_points_are_asked_for_than_a_prometheus_gives() -> None:
    with pytest.raises(ValueError, match="want 1 to 11,000 points, got 11,001"):
        read(lambda _: matrix(), end_s=60 + 60 * 11_000)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx.Response(200, text="<html>"), "is no Prometheus, its answer can't be read: "),
        (httpx.Response(200, json={"status": "success"}), "missing required field `data`"),
        (
            httpx.Response(200, json={"status": "success",
                                      "data": {"resultType": "vector", "result": []}}),
            "is no Prometheus, it answers with a 'vector', not a matrix",
        ),
        (matrix(({}, [(60, "many")])), "a value of it is no number: "),
    ],
)  # fmt: skip
def test_what_is_no_prometheus_is_told(answer: httpx.Response, said: str) -> None:
    told = refusal(lambda _: answer)
    assert said in str(told) and told.reason is Reason.NOT_METRICS
    assert not is_too_much(told)


def test_what_a_prometheus_refuses_is_told_in_its_words() -> None:
    body = {"status": "error", "error": "query processing would load too many samples"}
    told = refusal(lambda _: httpx.Response(422, json=body))
    assert str(told) == "answers HTTP 422: query processing would load too many samples"
    assert is_too_much(told)


@pytest.mark.parametrize("body", ["{", json.dumps({"detail": 7}), json.dumps([1])])
def test_a_refusal_that_says_nothing_is_its_status(body: str) -> None:
    answer = httpx.Response(404, text=body, headers={"content-type": "application/json"})
    told = refusal(lambda _: answer)
    assert str(told) == "answers HTTP 404" and not is_too_much(told)


def test_what_a_label_was_is_asked_of_the_series_named() -> None:
    asked: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        return httpx.Response(200, json={"status": "success", "data": ["chat"]})

    async def run() -> list[str]:
        async with client_of(answer) as client:
            return await PrometheusRanges(URL).label_values(client, "slo", 'x{a="b"}', BOUNDS)

    assert asyncio.run(run()) == ["chat"]
    assert asked[0].path == "/api/v1/label/slo/values" and asked[0].params["match[]"] == 'x{a="b"}'
