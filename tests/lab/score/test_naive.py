"""The naive detectors and the cause finder on minutes made by hand."""

import math

import numpy as np

from tailburn.lab.score.grounds import SIGNALS
from tailburn.lab.score.heard import Heard, Series
from tailburn.lab.score.minutes import BUCKETS, U32, by_minute
from tailburn.lab.score.naive import (
    DAY,
    WORKBOOK,
    FixedSlo,
    Guarded,
    RawRule,
    ThreeSigma,
    beyond_chance,
    pages_of,
)
from tailburn.lab.score.naive_cause import FIRST_THOUGHT, LargestZ

MINUTE = 60 * 10**9


def steady(minutes: int, slow_from: int = 10**9, factor: float = 2.0) -> U32:
    """100 requests a minute, 10 to 1,000 ms evenly; from a minute on, `factor` as long."""
    values = np.tile(np.linspace(0.01, 1.0, 100), minutes)
    minute = np.repeat(np.arange(minutes), 100)
    return by_minute(minute, np.where(minute >= slow_from, values * factor, values), minutes)


def first(fires: np.ndarray) -> int:
    assert fires.any()
    return int(np.argmax(fires))


def test_the_raw_rule_fires_when_today_is_half_again_as_slow_as_yesterday() -> None:
    counts = steady(2 * DAY, slow_from=DAY + 300)
    fires = RawRule()(counts)
    assert first(fires) == DAY + 300
    assert fires[DAY + 300 :].all()
    assert not RawRule()(steady(2 * DAY, DAY + 300, factor=1.4)).any()


def test_yesterday_s_slowdown_hides_today_s() -> None:
    counts = steady(3 * DAY, slow_from=DAY + 300)
    assert not RawRule()(counts)[2 * DAY + 331 :].any()


def test_without_yesterday_the_raw_rule_is_silent() -> None:
    assert not RawRule()(steady(DAY, slow_from=600)).any()


def test_the_hour_is_the_one_around_the_same_time_of_yesterday() -> None:
    """Slow from 700 to 760 of the first day alone: the baseline is slow around 730 a day later."""
    minute = np.repeat(np.arange(2 * DAY), 100)
    values = np.tile(np.linspace(0.01, 1.0, 100), 2 * DAY)
    slow = (minute >= 700) & (minute < 760)
    base = RawRule().baseline(by_minute(minute, np.where(slow, 3 * values, values), 2 * DAY))
    assert base[DAY + 730] > 2.9
    assert base[DAY + 660] < 1.1 and base[DAY + 800] < 1.1


def test_the_guard_waits_for_more_late_ones_than_chance_gives() -> None:
    """At two requests a minute one late one moves the p99; ten in five minutes are too few."""
    minute = np.repeat(np.arange(2 * DAY), 2)
    values = np.full(len(minute), 0.1)
    values[minute == DAY + 500] = 5.0
    counts = by_minute(minute, values, 2 * DAY)
    assert RawRule()(counts)[DAY + 500]
    assert not Guarded()(counts).any()
    assert Guarded()(steady(2 * DAY, slow_from=DAY + 300))[DAY + 360]


def test_thresholds_of_the_count_test_are_those_of_the_literature() -> None:
    """1 % expected, p < 1e-4, at least 5: 6/12/25/53/367 at 60/300/1k/3k/30k requests."""
    found = beyond_chance(np.array([60, 300, 1_000, 3_000, 30_000]), 1e-4)
    assert np.maximum(found, 5).tolist() == [6, 12, 25, 53, 367]


def test_a_tail_of_the_binomial_is_summed_right() -> None:
    for n in (30, 500):
        k = int(beyond_chance(np.array([n]), 1e-4)[0])
        tail = [sum(math.comb(n, j) * 0.01**j * 0.99 ** (n - j) for j in range(m, n + 1))
                for m in (k - 1, k)]  # fmt: skip
        assert tail[1] < 1e-4 <= tail[0]


def test_a_fixed_slo_burns_in_both_windows_or_not_at_all() -> None:
    """All late from minute 300 on: of an hour 14.4 % are after 9 minutes, of 5 minutes at once."""
    fires = FixedSlo(deadline_s=1.05)(steady(600, slow_from=300, factor=200))
    assert first(fires) == 300 + 9 - 1
    minute = np.repeat(np.arange(600), 100)
    short = by_minute(minute, np.where((minute >= 300) & (minute < 303), 9.0, 0.1), 600)
    assert not FixedSlo(1.05)(short).any()


def test_it_resets_by_its_short_window() -> None:
    minute = np.repeat(np.arange(600), 100)
    counts = by_minute(minute, np.where((minute >= 300) & (minute < 345), 9.0, 0.1), 600)
    fires = FixedSlo(1.05)(counts)
    # One minute of five is 20 %, more than 14.4 %: it fires to the last window with one.
    assert int(np.flatnonzero(fires)[-1]) == 345 + 3


def test_the_workbook_s_windows_are_as_published() -> None:
    assert [(w.long, w.short, w.factor) for w in WORKBOOK] == [
        (60, 5, 14.4), (360, 30, 6.0), (4_320, 360, 1.0),
    ]  # fmt: skip


def test_three_sigma_fires_on_what_leaves_its_last_day() -> None:
    draw = np.random.default_rng(2)
    values = 10 + draw.standard_normal((2 * DAY, 3))
    values[DAY + 600 : DAY + 630, 1] += 5
    fires = ThreeSigma()(values)
    assert fires[DAY + 605 : DAY + 630, 1].all()
    assert not fires[:300].any(), "no history yet"
    # Three standard deviations: once in 370, for a metric that is normal.
    assert fires[DAY:, [0, 2]].mean() < 0.01


def test_three_sigma_passes_over_what_isn_t_there() -> None:
    values = np.full((2 * DAY, 2), np.nan)
    values[:, 0] = 1.0
    assert not ThreeSigma()(values).any()


def test_a_page_is_a_stretch_of_minutes_and_rings_at_the_end_of_the_first() -> None:
    fires = np.array([False, True, True, False, True])
    pages = pages_of(fires, 0, "page", "x", {})
    assert [(p.start_ns // MINUTE, p.end_ns and p.end_ns // MINUTE) for p in pages] == [
        (2, 4),
        (5, None),
    ]


def _heard(values: np.ndarray, *signals: str) -> Heard:
    series = tuple(Series(s, s, {"replica": f"vllm-{i}"}) for i, s in enumerate(signals))
    counts = {("ttft", "m"): np.zeros((len(values), BUCKETS), np.uint32)}
    return Heard(0, counts, series, values.astype(np.float32))


def test_the_cause_is_what_stands_out_most() -> None:
    draw = np.random.default_rng(4)
    values = 10 + draw.standard_normal((DAY + 60, 3))
    values[DAY + 30 :, 1] += 40
    values[DAY + 30 :, 2] -= 20
    heard = _heard(values, "hop:queue", "sm_clock", "prefix_cache_hit_ratio")
    found = LargestZ().diagnose(heard, (DAY + 30) * MINUTE, (DAY + 45) * MINUTE)
    assert [c.cause for c in found.causes] == ["S7", "S15", "S1"]
    (evidence,) = found.causes[0].evidence
    assert (evidence.signal, dict(evidence.dims)) == ("sm_clock", {"replica": "vllm-1"})


def test_it_always_names_something() -> None:
    values = 10 + np.random.default_rng(4).standard_normal((DAY + 60, 2))
    heard = _heard(values, "hop:queue", "tpot")
    assert not LargestZ().diagnose(heard, DAY * MINUTE, (DAY + 15) * MINUTE).abstained


def test_first_thoughts_are_of_known_signals_and_causes() -> None:
    from tailburn.lab.score.grounds import GROUNDS

    assert set(FIRST_THOUGHT) <= set(SIGNALS)
    assert {cause for causes in FIRST_THOUGHT.values() for cause in causes} <= set(GROUNDS)
