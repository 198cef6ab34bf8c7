"""Budget burn: fires, resets at the short window, freezes without data, and no longer than 6 h."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Objective, Rolling, Slo, objectives
from tailburn.rules.alerting import Kind
from tailburn.rules.ruleset import alerts_of, build
from tests.rules.promtool import DAY_S, HOUR_S, MINUTE_S, Asked, counter, fires, judge, quiet, slo

pytestmark = pytest.mark.program("promtool")

AVAILABLE = slo(availability_ratio=0.999)
FIRST = (AVAILABLE, objectives(AVAILABLE)[0])
PAGE = {"severity": "page", "long": "1h", "short": "5m"}


def counters(promise: Slo, total: str, bad: str, extra: str = "") -> dict[str, str]:
    """Both counters of the first budget, minute by minute."""
    (budget, *_) = objectives(promise)
    labels = (
        f'slo="{promise.name}",objective="{budget.name}",'
        f'definition="{definition_of(promise, budget)}"{extra}'
    )
    return {
        f"tailburn_slo_requests_total{{{labels}}}": counter(total),
        f"tailburn_slo_bad_total{{{labels}}}": counter(bad),
    }


def test_an_outage_pages_within_minutes_and_ends_with_the_short_window(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    series = counters(AVAILABLE, "60x120", "0x60 60x20 0x40")
    judge(
        need_program("promtool"),
        tmp_path,
        build([AVAILABLE]),
        series,
        [
            quiet(59 * MINUTE_S, Kind.BURN),
            fires(62 * MINUTE_S, Kind.BURN, **PAGE),
            fires(83 * MINUTE_S, Kind.BURN, **PAGE),
            quiet(86 * MINUTE_S, Kind.BURN, **PAGE),
            fires(90 * MINUTE_S, Kind.BURN, severity="page", long="6h"),
        ],
    )


def test_an_alert_outlives_its_data_for_six_hours(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    hours = 60
    series = counters(AVAILABLE, f"60x80 _x{8 * hours} 60x60", f"0x60 60x20 _x{8 * hours} 0x60")
    gone_s, back_s = 80 * MINUTE_S, 80 * MINUTE_S + 8 * HOUR_S
    judge(
        need_program("promtool"),
        tmp_path,
        build([AVAILABLE]),
        series,
        [
            fires(gone_s, Kind.BURN, **PAGE),
            fires(gone_s + HOUR_S, Kind.BURN, **PAGE),
            fires(gone_s + 5 * HOUR_S + 50 * MINUTE_S, Kind.BURN, **PAGE),
            fires(gone_s + 20 * MINUTE_S, Kind.UNMEASURED),
            quiet(gone_s + 6 * HOUR_S + 10 * MINUTE_S, Kind.BURN, **PAGE),
            fires(gone_s + 6 * HOUR_S + 10 * MINUTE_S, Kind.UNMEASURED),
            quiet(back_s + 10 * MINUTE_S, Kind.UNMEASURED),
        ],
    )


def test_an_alert_ends_when_good_data_come_back(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    series = counters(AVAILABLE, "60x80 _x60 60x60", "0x60 60x20 _x60 0x60")
    judge(
        need_program("promtool"),
        tmp_path,
        build([AVAILABLE]),
        series,
        [fires(139 * MINUTE_S, Kind.BURN, **PAGE), quiet(145 * MINUTE_S, Kind.BURN, **PAGE)],
    )


def test_one_model_in_trouble_fires_alone(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    promise = slo(availability_ratio=0.999, by=("model",))
    series = counters(promise, "60x90", "0x60 60x30", ',model="a"')
    series |= counters(promise, "6000x90", "0x90", ',model="b"')
    judge(
        need_program("promtool"),
        tmp_path,
        build([promise]),
        series,
        [
            fires(80 * MINUTE_S, Kind.BURN, model="a", **PAGE),
            quiet(80 * MINUTE_S, Kind.BURN, model="b"),
        ],
    )


def test_an_idle_day_takes_nothing_from_what_is_left(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    day = 24 * 60
    series = counters(AVAILABLE, f"100x{day} 0x{day} 2400x60", f"0x{day} 0x{day} 48x60")
    labels = f'slo="chat",objective="availability",definition="{definition_of(*FIRST)}"'
    left = f"tailburn_slo:budget_left:ratio{{{labels}}}"
    after_s = 2 * DAY_S + 55 * MINUTE_S
    # An hour at 2 % after a quiet day: half of all requests, so 1 % were bad, ten budgets.
    asked = Asked(after_s, f"abs(1 - {left} - 10) < bool 1.5", {f"{{{labels}}}": 1})
    judge(
        need_program("promtool"),
        tmp_path,
        build([AVAILABLE]),
        series,
        [quiet(2 * DAY_S - MINUTE_S, Kind.BURN), fires(after_s, Kind.BURN, **PAGE), asked],
        5 * MINUTE_S,
    )


def test_every_alert_has_labels_of_its_own() -> None:
    promise = slo(availability_ratio=0.999, goodput_ratio=0.95, labels={"team": "a"})
    identities = [(alert.kind, *alert.labels.items()) for alert in alerts_of(promise)]
    assert len(set(identities)) == len(identities)


def test_a_wide_budget_has_pages_that_can_fire() -> None:
    promise = slo(goodput_ratio=0.9, window=Rolling(7 * DAY_S))
    pages = [a for a in alerts_of(promise) if a.pair and a.severity is Severity.PAGE]
    assert pages
    assert all(a.pair is not None and a.pair.threshold_ratio <= 0.5 for a in pages)


def test_a_budget_that_was_redefined_is_read_alone() -> None:
    before, after = slo(availability_ratio=0.999), slo(availability_ratio=0.99)
    budget: Objective = objectives(after)[0]
    old = definition_of(before, objectives(before)[0])
    text = "\n".join(rule.expr for rule in build([after]).rules)
    assert definition_of(after, budget) in text
    assert old not in text
