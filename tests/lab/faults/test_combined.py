"""Pairs, ramps and blips: what lies when in them, and that each part still shows."""

from functools import cache

import numpy as np
import pytest

from tailburn.lab.faults.combined import (
    BLIP_NS,
    COMBINATIONS,
    Combination,
    blip,
    combination,
)
from tailburn.lab.faults.scenario import FaultError, Severity, Turn
from tailburn.lab.run import Motion, MotionSnapshot, Plan, Traffic
from tailburn.lab.workload import Change
from tests.lab.faults.trials import MINUTE, Seen, rising, seen_of, warm

HOUR = 60 * MINUTE
MEDIUM = Severity.MEDIUM


@pytest.mark.parametrize("one", COMBINATIONS.values(), ids=COMBINATIONS)
def test_the_parts_of_a_combination_lie_in_its_time_on_one_fleet(one: Combination) -> None:
    fleet = one.fleet(10.0)
    start, end = HOUR, HOUR + max(one.least_ns, 2 * HOUR)
    faults = one.faults(fleet, MEDIUM, start, end, seed=1)
    for fault in faults:
        assert start <= fault.truth.start_ns < fault.truth.end_ns <= end
        whole: tuple[Turn | Change, ...] = (*fault.settings, *fault.changes)
        for each in whole:
            assert fault.truth.start_ns <= each.start_ns < each.end_ns <= fault.truth.end_ns
    assert {f.truth.scenario for f in faults} == {p.scenario for p in one.parts}


def test_a_ramp_grows_evenly_over_six_hours() -> None:
    one = combination("ramp-memory")
    (fault,) = one.faults(one.fleet(10.0), MEDIUM, 0, 6 * HOUR, seed=1)
    turns = sorted(fault.settings, key=lambda t: t.start_ns)
    assert len(turns) == 360
    lost = np.array([1.0 - t.value for t in turns])
    assert np.all(np.diff(lost) > 0)
    assert np.diff(lost).max() < 1.01 * np.diff(lost).min()
    (whole,) = one.faults(one.fleet(10.0), MEDIUM, 0, 12 * HOUR, seed=1)
    assert len(whole.settings) == 720


def test_blips_last_two_minutes_each() -> None:
    one = combination("blip-gateway")
    fleet = one.fleet(10.0)
    faults = one.faults(fleet, MEDIUM, 0, HOUR, seed=1)
    assert [(f.truth.start_ns, f.truth.end_ns) for f in faults] == [
        (i * 20 * MINUTE, i * 20 * MINUTE + BLIP_NS) for i in range(3)
    ]
    assert blip("S24", fleet, MEDIUM, HOUR, 1).truth.end_ns == HOUR + 2 * MINUTE


def test_a_time_too_short_and_a_name_that_is_none_are_refused() -> None:
    one = combination("ramp-memory")
    with pytest.raises(FaultError, match="want 360 minutes at least"):
        one.faults(one.fleet(10.0), MEDIUM, 0, HOUR, seed=1)
    with pytest.raises(FaultError, match="no combination 'ramp-memry'; did you mean ramp-memory"):
        combination("ramp-memry")


@cache
def _warm(one: Combination, per_s: float) -> MotionSnapshot:
    return warm(Plan(one.fleet(per_s), (Traffic(one.profile(), per_s),), 5))


def _seen(one: Combination, broken: bool, minutes: int, per_s: float = 10.0) -> Seen:
    """Minutes from 00:10 of a Monday on."""
    before = _warm(one, per_s)
    start = 10 * MINUTE
    faults = one.faults(before.plan.fleet, MEDIUM, start, start + minutes * MINUTE, 1)
    return seen_of(Motion.of(before, faults if broken else ()), minutes)


def _from(seen: Seen, start_minute: float, end_minute: float) -> Seen:
    at = (seen.attempts.arrival_ns - 10 * MINUTE) / MINUTE
    return seen.of((at >= start_minute) & (at < end_minute))


def test_a_blip_is_over_in_two_minutes() -> None:
    one = combination("blip-host")
    seen = _seen(one, True, 24)
    for inside in ((0, 1.9), (20, 21.9)):
        assert _from(seen, *inside).tpot(50) > 1.5 * _from(seen, 4, 18).tpot(50)
    quiet = _from(_seen(one, False, 24), 4, 18)
    assert _from(seen, 4, 18).tpot(50) == pytest.approx(quiet.tpot(50), rel=0.05)


def test_a_release_slows_steps_within_a_monday_s_rise() -> None:
    one = combination("release-on-monday")
    quiet, both = _seen(one, False, 40), _seen(one, True, 40)
    before = [_from(s, 0, 6) for s in (quiet, both)]
    after = [_from(s, 24, 40) for s in (quiet, both)]
    assert before[1].tpot(50) < 1.1 * before[0].tpot(50)
    assert after[1].tpot(50) > 1.3 * after[0].tpot(50)
    assert len(after[1].attempts) > 1.2 * len(after[0].attempts)


def test_a_surge_and_lost_prefixes_both_show() -> None:
    one = combination("surge-and-eviction")
    quiet, both = _seen(one, False, 20), _seen(one, True, 20)
    hits = [
        float(a.cached_tokens.sum() / a.prompt_tokens.sum())
        for a in (_from(quiet, 8, 20).attempts, _from(both, 8, 20).attempts)
    ]
    assert hits[1] < 0.7 * hits[0]
    assert both.offered > 1.2 * quiet.offered
    assert rising(quiet.ttft(90), both.ttft(90))
