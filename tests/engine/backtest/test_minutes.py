"""Minutes of verdicts: the service's counters, one minute at a time."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine.backtest.budget import budgets
from tailburn.engine.backtest.burning import burning
from tailburn.engine.backtest.minutes import (
    Counts,
    added_up,
    columns_for,
    count,
    counts_of,
    first_versions,
    renamed,
)
from tailburn.engine.grouping import I64
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.schema import VERDICTS
from tailburn.engine.slo.model import Calendar, Rolling, Slo, objectives
from tailburn.engine.slo.verdicts import Requests, Verdict, judge, tally
from tests.app.slos import CHAT
from tests.engine.store.samples import HOUR_NS, T0, request, requests

SLO = replace(CHAT, by=("model",))
LENGTH = 20


def row(number: int, ttft_s: float | None, model: str, **more: Any) -> dict[str, Any]:
    told = {"ttft_client_s": ttft_s, "e2e_client_s": 2.0, "streamed": True, "model": model}
    return request(number, **told, **more)


some_rows = st.lists(
    st.builds(
        row,
        st.integers(0, LENGTH * 60 - 1),
        st.sampled_from([0.1, 0.9, None]),
        st.sampled_from(["a", 'b"\\'], ),
        outcome=st.sampled_from(["ok", "error", "cancelled"]),
        weight=st.sampled_from([1.0, 4.0]),
    ),
    max_size=40,
)  # fmt: skip


@given(some_rows, st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_minutes_add_up_to_the_counters_however_they_are_cut(
    rows: list[dict[str, Any]], cut: int
) -> None:
    table = requests(*rows)
    parts = [count(t, [SLO]) for t in (table.slice(0, cut), table.slice(cut)) if len(t)]
    minutes = added_up(parts)
    assert minutes.schema == VERDICTS
    assert minutes.sort_by("bad").equals(added_up([minutes]).sort_by("bad")) or len(minutes) > 1
    whole: dict[tuple[str, ...], I64] = {}
    judged = Requests(table)
    for part in tally(judged, judge(judged, SLO), SLO, judged.minute_ns):
        whole[part.values] = whole.get(part.values, 0) + part.counts
    found = list(counts_of(minutes, [SLO], T0, T0 + LENGTH * MINUTE_NS))
    names = [objective.name for objective in objectives(SLO)]
    assert {tuple(v for _, v in c.by) for c in found} == set(whole)
    for one in found:
        counts = whole[tuple(value for _, value in one.by)][names.index(one.objective.name)]
        assert len(one) == LENGTH
        assert int(one.requests.sum()) == counts[Verdict.GOOD] + counts[Verdict.BAD]
        assert int(one.bad.sum()) == counts[Verdict.BAD]
        assert int(one.unmeasured.sum()) == counts[Verdict.UNMEASURED]


def test_a_request_counts_in_its_own_minute() -> None:
    table = requests(row(59, 0.1, "a"), row(60, 0.9, "a"), row(61, 0.9, "a"))
    minutes = count(table.select(columns_for([SLO])), [SLO])
    [p95] = [c for c in counts_of(minutes, [SLO], T0, T0 + 3 * MINUTE_NS)
             if c.objective.name == "ttft_p95"]  # fmt: skip
    assert (p95.requests.tolist(), p95.bad.tolist()) == ([1, 2, 0], [0, 2, 0])


def test_what_the_service_counted_are_first_versions() -> None:
    table = requests(row(1, 0.1, "a"), row(1, 0.9, "a", version=2))
    assert first_versions(table)["ttft_client_s"].to_pylist() == [0.1]


def test_a_draft_s_counts_are_those_of_a_wider_budget() -> None:
    draft = replace(SLO, goodput_ratio=0.5)
    slo, none = replace(draft, goodput_ratio=0.9), replace(draft, goodput_ratio=None)
    minutes = count(requests(row(1, 0.9, "a")), [draft])
    end = T0 + MINUTE_NS

    def names(table: pa.Table, of: Slo) -> set[str]:
        return {c.objective.name for c in counts_of(table, [of], T0, end)}

    assert "goodput" not in names(minutes, slo)
    assert "goodput" in names(renamed(minutes, [draft], [slo]), slo)
    assert names(renamed(minutes, [draft], [none]), none) == {"availability", "ttft_p95"}


def _counts(bad: list[int], slo: Slo = SLO) -> Counts:
    objective = next(o for o in objectives(slo) if o.name == "ttft_p95")
    n = len(bad)
    return Counts(slo, objective, (), T0, np.full(n, 100), np.array(bad), np.zeros(n, np.int64))


def test_an_outage_burns_and_health_does_not() -> None:
    assert burning([_counts([1] * 600)]) == set()
    assert burning([_counts([1] * 300 + [100] * 30 + [1] * 270)]) == {("chat", "ttft_p95")}
    hole = (T0 + 300 * MINUTE_NS, T0 + 330 * MINUTE_NS)
    assert burning([_counts([1] * 300 + [100] * 30 + [1] * 270)], [hole]) == set()


def test_a_budget_is_followed_by_the_hour_over_its_window() -> None:
    found = budgets([_counts([5] * 60 + [10] * 60 + [0] * 30)])
    assert found["requests"].tolist() == [6_000, 6_000, 6_000]
    assert found["bad"].tolist() == [300, 600, 300]
    assert np.allclose(found["burn"], [1, 2, 1])
    assert np.allclose(found["left"], [0, -0.5, -0.2])
    short = replace(SLO, window=Rolling(3_600.0))
    assert np.allclose(budgets([_counts([5] * 60 + [10] * 60, short)])["left"], [0, -1], atol=0.02)


def test_a_calendar_s_budget_begins_anew() -> None:
    midnight = (24 - T0 // HOUR_NS % 24) * 60
    counts = replace(_counts([10] * (midnight + 120), replace(SLO, window=Calendar("day"))))
    counts.bad[midnight:] = 0
    left = budgets([counts])["left"]
    assert left.iloc[midnight // 60 - 1] == -1 and left.iloc[-1] == 1
