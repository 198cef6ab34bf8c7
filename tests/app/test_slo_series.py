"""The SLOs' counters on /metrics: what counts, what is shown first, what a restart keeps."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tailburn.app.births import SETTLED_S, Scraper
from tailburn.app.slo_series import SloSeries
from tailburn.engine.counted import add_up
from tailburn.engine.schema import REQUESTS
from tailburn.engine.slo.model import Calendar, EngineSource
from tests.app.rows import make_rows
from tests.app.slos import BY_MODEL, CHAT, Remembered, slo_series

NOTHING = REQUESTS.empty_table()
ONE, OTHER = Scraper("10.0.0.1 Prometheus/2.42.0"), Scraper("10.0.0.2 Prometheus/2.42.0")


def requests(*ttft_s: float | None, **columns: Any) -> pa.Table:
    n = len(ttft_s)
    usual = {"outcome": ["ok"] * n, "streamed": [True] * n, "model": ["a"] * n}
    return make_rows(ttft_client_s=ttft_s, **{**usual, **columns})


def shown(series: SloSeries, scraper: Scraper = ONE, tenant: str | None = None) -> dict[str, int]:
    """Counts other than 0 by `objective what`, `by` values in between."""
    found = {}
    for family in text_string_to_metric_families(series.render(scraper, tenant)):
        for sample in family.samples:
            labels = dict(sample.labels)
            if "objective" not in labels:
                continue  # of what was slow
            words = (labels.get("model"), labels["objective"], labels.get("tenant"))
            what = sample.name.removeprefix("tailburn_slo_").removesuffix("_total")
            if sample.value:
                found[" ".join([*filter(None, words), what])] = int(sample.value)
    return found


def test_requests_bad_and_unmeasured_are_counted_apart() -> None:
    series = slo_series(CHAT)
    series.render(ONE)
    series.count(requests(0.2, 0.7, None, 0.3, outcome=["ok", "ok", "ok", "error"]), NOTHING)
    assert shown(series) == {
        "availability requests": 4,
        "availability bad": 1,
        "ttft_p95 requests": 3,
        "ttft_p95 bad": 1,
        "ttft_p95 unmeasured": 1,
    }


def test_a_new_series_is_shown_at_0_once_to_each_scraper() -> None:
    series = slo_series(BY_MODEL)
    series.count(requests(0.2, 0.7), NOTHING)
    for scraper in (ONE, OTHER):
        assert 'model="a"' in series.render(scraper)
    assert shown(series, Scraper("10.0.0.3 curl")) == {}
    for scraper in (ONE, OTHER):
        assert shown(series, scraper) == {"a ttft_p95 requests": 2, "a ttft_p95 bad": 1}
    series.count(requests(0.2, model=["b"]), NOTHING)
    assert set(shown(series, ONE)) == {"a ttft_p95 requests", "a ttft_p95 bad"}


def test_a_scrape_that_timed_out_is_made_good_on_the_next_connection() -> None:
    series = slo_series(BY_MODEL)
    series.count(requests(0.2), NOTHING)
    over = [replace(ONE, connection=n) for n in (1, 2, 2, 3)]
    assert [bool(shown(series, scraper)) for scraper in over] == [False, False, True, True]


def test_one_that_opens_a_connection_for_each_scrape_sees_0_twice() -> None:
    series = slo_series(BY_MODEL)
    series.count(requests(0.2), NOTHING)
    over = [replace(ONE, connection=n) for n in range(4)]
    assert [bool(shown(series, scraper)) for scraper in over] == [False, False, True, True]


def test_who_comes_long_after_the_birth_sees_what_is_counted() -> None:
    now_s = 11.0
    series = slo_series(BY_MODEL, now_s=lambda: now_s)
    series.count(requests(0.2), NOTHING)
    now_s += 10 * SETTLED_S
    assert shown(series, ONE) == {}, "nobody has seen it at 0 yet"
    now_s += SETTLED_S + 1
    assert shown(series, OTHER) == {"a ttft_p95 requests": 1}


def test_a_budget_told_apart_by_nothing_is_there_from_the_start() -> None:
    series = slo_series(CHAT)
    assert 'slo="chat",objective="ttft_p95"' in series.render(ONE)
    series.count(requests(0.2), NOTHING)
    assert shown(series) == {"ttft_p95 requests": 1, "availability requests": 1}


def test_what_was_shown_never_begins_at_0_again_after_a_kill() -> None:
    record = Remembered()
    before = slo_series(BY_MODEL, record=record)
    before.count(requests(0.2), NOTHING)
    before.render(ONE)
    assert shown(before) == {"a ttft_p95 requests": 1}
    after = slo_series(BY_MODEL, record=record)  # no snapshot has it: all is counted anew
    after.count(requests(0.2, 0.3), NOTHING)
    assert shown(after) == {"a ttft_p95 requests": 2}


def test_a_first_0_that_a_kill_took_with_it_is_shown_again() -> None:
    record = Remembered()
    before = slo_series(BY_MODEL, record=record)
    before.count(requests(0.2), NOTHING)
    before.render(ONE)
    after = slo_series(BY_MODEL, record=record)
    after.count(requests(0.2), NOTHING)
    assert shown(after, ONE) == {}
    assert shown(after, ONE) == {"a ttft_p95 requests": 1}


def test_nothing_is_shown_on_the_way_to_where_the_last_run_ended() -> None:
    series = slo_series(CHAT)
    series.caught_up = False
    assert series.render(ONE) == ""


def test_a_later_version_is_counted_as_late_where_it_changes_a_verdict() -> None:
    series = slo_series(CHAT)
    series.render(ONE)
    ids = {"request_id": [f"{i:016x}" for i in (1, 2)]}
    series.count(requests(0.2, 0.2, **ids), NOTHING)
    newer = requests(0.9, 0.3, **ids, version=[2, 2])
    series.count(newer, requests(0.2, 0.2, **ids))
    assert shown(series) == {
        "ttft_p95 requests": 2,
        "ttft_p95 late": 1,
        "availability requests": 2,
    }


def test_a_request_that_an_outer_span_takes_over_is_counted_once() -> None:
    series = slo_series(CHAT)
    series.render(ONE)
    inner = {"request_id": [f"{i:016x}" for i in (1, 2, 3)], "received_ns": [10**9] * 3}
    before = requests(None, 0.2, 0.9, **inner, outcome=["unknown", "ok", "ok"])
    series.count(before, NOTHING)
    gone = requests(None, None, None, **inner, version=[2] * 3, tombstone=[True] * 3)
    outer = {
        "request_id": [f"{i:016x}" for i in (11, 12, 13)],
        "replaces": inner["request_id"],
        "version": [2] * 3,
    }
    series.count(pa.concat_tables([gone, requests(0.9, 0.2, 0.2, **outer)]), before)
    assert shown(series) == {
        "availability requests": 3,
        "availability late": 1,  # it was not known how the first ended
        "availability unmeasured": 1,
        "ttft_p95 requests": 3,
        "ttft_p95 bad": 2,
        "ttft_p95 unmeasured": 1,
        "ttft_p95 late": 2,
    }


@given(st.lists(st.tuples(st.sampled_from([0.2, 0.9, None, "gone"]), st.booleans()), max_size=8))
def test_a_request_counts_at_most_once_whatever_its_versions_say(
    versions: list[tuple[Any, bool]],
) -> None:
    series = slo_series(replace(CHAT, availability_ratio=None, select={"pool": "chat"}))
    before, number, counts = NOTHING, 0, [0, 0, 0, 0]
    for version, (ttft_s, is_taken_over) in enumerate(versions, 1):
        here = {"pool": ["other" if ttft_s == "gone" else "chat"], "version": [version]}
        here["replaces"] = [f"{number:016x}" if is_taken_over and version > 1 else None]
        gone = before.slice(0)
        if is_taken_over and version > 1:
            number += 1
            gone = requests(
                None, request_id=before["request_id"], version=[version], tombstone=[True]
            )
        now = requests(None if ttft_s == "gone" else ttft_s, request_id=[f"{number:016x}"], **here)
        rows = pa.concat_tables([gone, now]) if number and is_taken_over else now
        series.count(rows, before)
        (saved,) = (s for s in series.state() if s["key"][1] == "ttft_p95")
        assert all(old <= new for old, new in zip(counts, saved["counts"], strict=True))
        counts, before = saved["counts"], now
        assert counts[0] <= 1 and counts[1] <= counts[0] and counts[2] <= 1
        assert counts[3] < version


def test_counts_outlive_a_restart_and_rest_while_their_slo_is_away() -> None:
    first = slo_series(CHAT, BY_MODEL)
    first.count(requests(0.2, 0.9), NOTHING)
    without = slo_series(CHAT)
    without.restore(json.loads(json.dumps(first.state())))
    without.count(requests(0.2), NOTHING)
    again = slo_series(CHAT, BY_MODEL)
    again.restore(json.loads(json.dumps(without.state())))
    again.render(ONE)
    assert shown(again) == {
        "ttft_p95 requests": 3,
        "ttft_p95 bad": 1,
        "availability requests": 3,
        "a ttft_p95 requests": 2,
        "a ttft_p95 bad": 1,
    }


def test_another_definition_is_another_budget() -> None:
    before = slo_series(BY_MODEL)
    before.count(requests(0.2, 0.9), NOTHING)
    after = slo_series(replace(BY_MODEL, vantage="gateway"))
    after.restore(before.state())
    after.render(ONE)
    assert shown(after) == {}


ROWS = st.lists(
    st.tuples(st.sampled_from([0.2, 0.9, None]), st.sampled_from("ab"), st.integers(1, 3)),
    min_size=1,
    max_size=30,
)


@given(ROWS, st.lists(st.integers(0, 30), max_size=4))
def test_counts_do_not_depend_on_how_rows_are_split_or_where_a_restart_falls(
    rows: list[tuple[float | None, str, int]], cuts: list[int]
) -> None:
    ends = sorted({0, len(rows), *(c for c in cuts if c < len(rows))})
    assert _counted(rows, ends) == _counted(rows, [0, len(rows)])


VERSIONS = st.lists(
    st.tuples(
        st.integers(0, 4),  # which request
        st.integers(0, 400),  # seconds until it closes
        st.sampled_from([0.2, 0.3, 0.9, 2.0, None]),
        st.sampled_from("abc"),
        st.booleans(),  # gone with this version
    ),
    max_size=40,
)
COUNTS = ("requests", "bad", "unmeasured", "late")
Version = tuple[int, int, float | None, str, bool]


@given(VERSIONS, st.lists(st.integers(1, 40), max_size=5), st.sampled_from([2, 20_000]))
def test_rows_of_minutes_add_up_to_the_counters_whatever_the_splits_and_the_restarts(
    versions: list[Version], cuts: list[int], room: int
) -> None:
    def series() -> SloSeries:
        return slo_series(CHAT, BY_MODEL, max_series=room)

    part = _in_parts(versions)
    whole = series()
    whole.count(*part(0, len(versions)))
    at_once = whole.take_rows()
    assert _sums(at_once["verdicts"]) == _counters(whole)
    minutes = set(at_once["verdicts"]["minute_ns"].to_pylist())
    assert minutes <= {at_s // 60 * 60 * 10**9 for _, at_s, *_ in versions}

    ends = sorted({0, len(versions), *(c for c in cuts if c < len(versions))})
    pieces, state = [], whole.state()[:0]
    for begin, end in zip(ends, ends[1:], strict=False):
        killed, again = series(), series()
        for one in (killed, again):  # the rows of the first are discarded and made again
            one.restore(state)
            one.count(*part(begin, end))
        pieces.append(again.take_rows())
        assert not any(len(rows) for rows in again.take_rows().values())
        state = json.loads(json.dumps(again.state()))
    for name, rows in at_once.items():
        found = pa.concat_tables([rows[:0], *(piece[name] for piece in pieces)])
        assert _in_order(add_up(name, found)) == _in_order(add_up(name, rows))


def _in_parts(versions: list[Version]) -> Callable[[int, int], tuple[pa.Table, pa.Table]]:
    """The versions from one to another, and those that they replace, as the pipeline gives them."""
    rows: list[dict[str, Any]] = []
    newest: dict[int, dict[str, Any]] = {}
    older: list[dict[str, Any] | None] = []
    for number, at_s, ttft_s, model, gone in versions:
        before = newest.get(number)
        newest[number] = {
            "request_id": f"{number:016x}",
            "version": before["version"] + 1 if before else 1,
            "received_ns": at_s * 10**9,
            "ttft_client_s": ttft_s,
            "ttft_queue_s": ttft_s,
            "model": model,
            "tombstone": gone,
        }
        rows.append(newest[number])
        older.append(before)

    def part(begin: int, end: int) -> tuple[pa.Table, pa.Table]:
        replaced = [row for row in older[begin:end] if row and not row["tombstone"]]
        return _table(rows[begin:end]), _table(replaced)

    return part


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    if not rows:
        return NOTHING
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return requests(*columns.pop("ttft_client_s"), **columns)


def _sums(verdicts: pa.Table) -> dict[tuple[str, ...], list[int]]:
    found: dict[tuple[str, ...], list[int]] = {}
    for row in verdicts.to_pylist():
        key = (row["slo"], row["objective"], row["definition"], row["by"])
        before = found.get(key, [0] * len(COUNTS))
        found[key] = [n + row[name] for n, name in zip(before, COUNTS, strict=True)]
    return found


def _counters(series: SloSeries) -> dict[tuple[str, ...], list[int]]:
    """Other than 0, by the keys of their rows."""
    saved = series.state()
    return {
        (*s["key"][:3], json.dumps(s["key"][3])): s["counts"] for s in saved if any(s["counts"])
    }


def _in_order(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


def _counted(rows: list[tuple[float | None, str, int]], ends: list[int]) -> list[Any]:
    """The state after a run for each stretch between two ends."""
    state: Any = []
    for begin, end in zip(ends, ends[1:], strict=False):
        series = slo_series(CHAT, replace(BY_MODEL, window=Calendar("month")))
        series.restore(state)
        ttft_s, models, weights = zip(*rows[begin:end], strict=True)
        series.count(requests(*ttft_s, model=models, weight=weights), NOTHING)
        state = series.state()
    return sorted(state, key=lambda saved: json.dumps(saved["key"]))


def test_a_calendar_budget_begins_anew_with_its_period() -> None:
    month = replace(CHAT, availability_ratio=None, window=Calendar("month", "Europe/Berlin"))
    now_ns = 0

    def at(text: str) -> int:
        nonlocal now_ns
        now_ns = int(datetime.fromisoformat(text).timestamp()) * 10**9
        return now_ns

    series = slo_series(month, now_ns=lambda: now_ns)
    series.render(ONE)
    series.count(requests(0.2, 0.9, received_ns=[at("2026-10-31T22:59:59Z")] * 2), NOTHING)
    told = {"ttft_p95 requests": 2, "ttft_p95 bad": 1}
    assert shown(series) == {**told, "ttft_p95 period_requests": 2, "ttft_p95 period_bad": 1}
    november_ns = at("2026-10-31T23:00:00Z")
    assert shown(series) == told
    series.count(requests(0.2, received_ns=[november_ns]), NOTHING)
    series.count(requests(0.9, received_ns=[november_ns - 1]), NOTHING)
    assert shown(series) == {
        "ttft_p95 requests": 4,
        "ttft_p95 bad": 2,
        "ttft_p95 period_requests": 1,
    }


def test_what_slow_requests_took_over_the_baseline_is_shown_by_hop() -> None:
    series = slo_series(BY_MODEL)
    minutes = {"received_ns": [60 * 10**9] * 9 + [120 * 10**9]}
    queue = {"ttft_queue_s": [0.1] * 9 + [2.1], "ttft_prefill_s": [0.2] * 10}
    series.count(requests(*[0.3] * 9, 2.3, **minutes, **queue), NOTHING)
    assert 'slow_seconds_total{slo="by-model",hop="queue",model="a"} 0.0' in series.render(ONE)
    text = series.render(ONE)
    assert 'slow_seconds_total{slo="by-model",hop="queue",model="a"} 2.0' in text
    assert 'slow_seconds_total{slo="by-model",hop="prefill",model="a"} 0.0' in text
    assert 'excess_seconds_total{slo="by-model",model="a"} 2.0' in text


def test_what_is_summed_over_tenants_is_for_who_may_see_all() -> None:
    by_tenant = replace(BY_MODEL, name="by-tenant", by=("tenant",))
    of_one = replace(CHAT, name="of-one", select={"tenant": "alpha"}, availability_ratio=None)
    series = slo_series(CHAT, by_tenant, of_one)
    tenants = {"tenant": ["alpha", "beta"]}
    series.count(requests(0.2, 0.2, **tenants), NOTHING)
    series.render(ONE)
    assert set(shown(series, tenant="alpha")) == {"ttft_p95 alpha requests", "ttft_p95 requests"}
    assert 'slo="chat"' not in series.render(ONE, "alpha")
    assert set(shown(series, tenant="beta")) == {"ttft_p95 beta requests"}


def test_past_the_bound_new_values_share_one_series() -> None:
    series = slo_series(BY_MODEL, max_series=4)
    series.count(requests(*[0.2] * 5, model=list("abcde")), NOTHING)
    series.count(requests(*[0.2] * 2, model=list("ae")), NOTHING)
    series.render(ONE)
    assert shown(series) == {
        "a ttft_p95 requests": 2,
        "b ttft_p95 requests": 1,
        "other ttft_p95 requests": 4,
    }
    assert series.overflowed


def test_an_slo_on_an_engines_histograms_is_not_counted_here() -> None:
    series = slo_series(replace(CHAT, source=EngineSource("vllm")))
    assert series.slos == () and 'slo="chat"' not in series.render(ONE)


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "new\nline", "{}=,"])
def test_any_text_survives_as_a_label(name: str) -> None:
    series = slo_series(BY_MODEL)
    series.count(requests(0.2, model=[name]), NOTHING)
    series.render(ONE)
    assert shown(series) == {f"{name} ttft_p95 requests": 1}


def test_promtool_finds_nothing_to_say(need_program: Callable[[str], str]) -> None:
    series = slo_series(CHAT, BY_MODEL)
    series.count(requests(0.2, 0.9), NOTHING)
    series.render(ONE)
    checked = subprocess.run(
        [need_program("promtool"), "check", "metrics"],
        input=series.render(ONE), text=True, capture_output=True,
    )  # fmt: skip
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
