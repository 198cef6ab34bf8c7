"""Times of tiers and deadlines, against the course of traffic they are about."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.app.calculators.shares import Shares, shares_of
from tailburn.engine.slo.course import Course, Stretch, both
from tailburn.engine.slo.parse import parse
from tailburn.rules.alerting import Kind
from tailburn.rules.ruleset import alerts_of

CHAT = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec:
  clocks:
    ttft: {acceptable: {p95: 500ms}, critical: {p50: 1s, p99.9: 9s}}
"""

shares = st.builds(
    Shares,
    st.lists(st.tuples(st.floats(0.01, 0.9), st.integers(60, 7200)), min_size=1, max_size=2).map(
        tuple
    ),
    st.just(0),
)


@given(shares, st.floats(0.02, 1.0))
def test_they_are_those_of_a_course_that_turns_bad_and_good_again(
    watched: Shares, bad_ratio: float
) -> None:
    course = Course([Stretch(9000.0, bad_ratio), Stretch(9000.0, 0.0)])
    over = reduce(both, [course.over(window_s, share) for share, window_s in watched.over])
    detection = watched.detection_s(bad_ratio)
    if detection is None:
        assert over == ()
    else:
        ((begin_s, end_s),) = over
        assert begin_s == pytest.approx(detection, abs=1e-3)
        assert end_s - 9000 == pytest.approx(watched.reset_s(bad_ratio), abs=1e-3)


def test_what_must_last_fires_so_much_later() -> None:
    assert Shares(((0.5, 300),), 300).detection_s(1.0) == 450
    assert Shares(((0.5, 300),), 300).reset_s(1.0) == 150


def test_every_tier_and_deadline_rests_on_shares_and_nothing_else_does() -> None:
    (slo,) = parse([("chat.yaml", CHAT)]).slos
    found = {
        alert.objective: shares.over
        for alert in alerts_of(slo)
        if alert.kind is Kind.TIER and (shares := shares_of(alert)) is not None
    }
    assert found == {
        "ttft_p95": ((0.05, 300),),
        "ttft_p50_critical": ((0.5, 300),),
        "ttft_p99_9_critical": ((0.001, 300),),
    }
    others = {alert.kind for alert in alerts_of(slo) if shares_of(alert) is not None}
    assert others == {Kind.TIER, Kind.DEADLINE}
