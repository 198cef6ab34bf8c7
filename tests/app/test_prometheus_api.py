"""What is read from a Prometheus' answers, and what ends with a clear word."""

import httpx
import pytest

from tailburn.app.errors import UserError
from tailburn.app.prometheus_api import PrometheusApi, duration_s

RUNTIME = "/api/v1/status/runtimeinfo"
BUILD = "/api/v1/status/buildinfo"
QUERY = "/api/v1/query"


def api(answers: dict[str, object], asked: list[str] | None = None) -> PrometheusApi:
    """A Prometheus that answers these paths with data, and no other."""

    def answer(request: httpx.Request) -> httpx.Response:
        if asked is not None:
            asked.append(str(request.url))
        if request.url.path not in answers:
            return httpx.Response(404, text="404 page not found")
        return httpx.Response(200, json={"status": "success", "data": answers[request.url.path]})

    client = httpx.Client(transport=httpx.MockTransport(answer))
    return PrometheusApi("http://prometheus:9090/", client)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("15d", 15 * 86_400), ("1d12h or 10GiB", 36 * 3600), ("10GiB", None), ("", None)],
)
def test_retention_is_the_time_of_what_it_says(said: str, seconds: float | None) -> None:
    assert api({RUNTIME: {"storageRetention": said}}).retention_s == seconds


def test_what_tells_nothing_of_itself_is_asked_all_the_same() -> None:
    silent = api({QUERY: {"result": []}})
    assert (silent.version, silent.retention_s, list(silent.query("up"))) == ("0", None, [])


def test_samples_that_are_no_number_are_left_out() -> None:
    rows = [
        {"metric": {"le": "1"}, "value": [0, "NaN"]},
        {"metric": {"le": "2"}, "value": [0, "7"]},
        {"metric": {"le": "3"}, "value": [0, "+Inf"]},
    ]
    found = api({QUERY: {"result": rows}}).query("x")
    assert [(sample.labels["le"], sample.value) for sample in found] == [
        ("2", 7.0),
        ("3", float("inf")),
    ]


def test_a_question_is_asked_once() -> None:
    asked: list[str] = []
    prometheus = api({QUERY: {"result": []}}, asked)
    prometheus.query("up")
    prometheus.query("up")
    assert [url for url in asked if QUERY in url] == [
        "http://prometheus:9090/api/v1/query?query=up"
    ]


def test_a_page_that_is_no_prometheus_is_told() -> None:
    with pytest.raises(UserError, match="HTTP 404 without JSON; want the address"):
        api({}).query("up")


def test_what_prometheus_refuses_is_passed_on() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(400, json={"status": "error", "error": "parse error: 1:1"})

    client = httpx.Client(transport=httpx.MockTransport(answer))
    with pytest.raises(UserError, match="parse error: 1:1"):
        PrometheusApi("http://prometheus:9090", client)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15d", 1_296_000), ("1h30m", 5400), ("100ms", 0.1), ("15", None), ("d15", None), ("", None)],
)
def test_durations_are_prometheus_own(text: str, seconds: float | None) -> None:
    assert duration_s(text) == seconds
