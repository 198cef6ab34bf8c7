"""The request series of /metrics, read by Prometheus' own parser and promtool."""

import subprocess
from collections.abc import Callable

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tailburn.app.exposition import RequestSeries
from tailburn.engine.schema import REQUESTS
from tests.app.rows import make_rows

Sample = tuple[str, frozenset[tuple[str, str]]]


def samples(text: str) -> dict[Sample, float]:
    return {
        (s.name, frozenset(s.labels.items())): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def buckets(text: str, metric: str, **labels: str) -> dict[float, float]:
    found = {
        float(dict(s[1])["le"]): value
        for s, value in samples(text).items()
        if s[0] == f"{metric}_bucket" and labels.items() <= dict(s[1]).items()
    }
    return dict(sorted(found.items()))


def test_a_clock_becomes_a_histogram_per_vantage_and_series() -> None:
    series = RequestSeries()
    series.observe(make_rows(ttft_client_s=[0.3, 0.5, None], model=["a", "a", "a"]))
    series.observe(make_rows(ttft_client_s=[2.0], ttft_engine_s=[0.1], model=["b"]))
    text = series.render()
    counts = buckets(text, "tailburn_ttft_seconds", model="a", vantage="client")
    assert counts[float("inf")] == 2
    assert all(n == sum(v <= le for v in (0.3, 0.5)) for le, n in counts.items())
    assert buckets(text, "tailburn_ttft_seconds", vantage="engine")[float("inf")] == 1
    sums = {s: v for s, v in samples(text).items() if s[0] == "tailburn_ttft_seconds_sum"}
    assert sorted(sums.values()) == [0.1, 0.8, 2.0]


def test_bounds_are_finer_than_a_factor_of_1_5_from_a_tenth_ms_to_a_quarter_hour() -> None:
    series = RequestSeries()
    series.observe(make_rows(e2e_gateway_s=[5_000.0]))
    counts = buckets(series.render(), "tailburn_e2e_seconds")
    bounds = np.array(list(counts)[:-1])
    assert bounds[0] < 0.000_1 and bounds[-1] > 700
    assert (bounds[1:] / bounds[:-1] < 1.5).all()
    assert list(counts.values())[-2:] == [0, 1]


def test_every_request_is_counted_also_one_without_a_clock() -> None:
    series = RequestSeries()
    series.observe(make_rows(queue_s=[None, 0.1, 0.2], model=["a", "a", "b"]))
    counts = {
        dict(labels)["model"]: value
        for (name, labels), value in samples(series.render()).items()
        if name == "tailburn_requests_total"
    }
    assert counts == {"a": 2, "b": 1}


def test_a_newer_version_is_not_counted_again() -> None:
    series = RequestSeries()
    series.observe(make_rows(queue_s=[0.2, 0.4], version=[1, 2]))
    assert buckets(series.render(), "tailburn_queue_seconds")[float("inf")] == 1


def test_a_series_that_changes_is_rendered_again_and_no_other_is_lost() -> None:
    series = RequestSeries()
    series.observe(make_rows(itl_max_s=[0.2, 0.3], replica=["one", "two"]))
    series.render()
    series.observe(make_rows(itl_max_s=[0.4], replica=["two"]))
    text = series.render()
    totals = {r: buckets(text, "tailburn_itl_max_seconds", replica=r) for r in ("one", "two")}
    assert (totals["one"][float("inf")], totals["two"][float("inf")]) == (1, 2)


def test_hops_are_counted_in_seconds_before_and_after_the_first_token() -> None:
    series = RequestSeries()
    times = {"ttft_queue_s": [0.25], "decode_decode_s": [1.5], "ttft_gateway_self_s": [0.5]}
    for _ in range(2):
        series.observe(make_rows(**times))
    hops = {
        (dict(labels)["phase"], dict(labels)["hop"]): value
        for (name, labels), value in samples(series.render()).items()
        if name == "tailburn_hop_seconds_total"
    }
    assert hops == {("ttft", "queue"): 0.5, ("decode", "decode"): 3.0, ("ttft", "gateway"): 1.0}


def test_past_the_bound_new_series_share_one() -> None:
    series = RequestSeries(max_series=2)
    series.observe(make_rows(queue_s=[0.1] * 5, model=["a", "b", "c", "d", "e"]))
    text = series.render()
    assert buckets(text, "tailburn_queue_seconds", model="other")[float("inf")] == 3


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "new\nline", "{}=,", "ümlaut"])
def test_any_text_survives_as_a_label(name: str) -> None:
    series = RequestSeries()
    series.observe(make_rows(queue_s=[0.1], model=[name]))
    assert buckets(series.render(), "tailburn_queue_seconds", model=name)[float("inf")] == 1


def test_promtool_finds_nothing_to_say(need_program: Callable[[str], str]) -> None:
    series = RequestSeries()
    one = {c: [0.5] for c in REQUESTS.names if c.endswith("_s")}
    series.observe(make_rows(**one, output_tokens=[20], model=["m"]))
    checked = subprocess.run(
        [need_program("promtool"), "check", "metrics"],
        input=series.render(),
        text=True,
        capture_output=True,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
