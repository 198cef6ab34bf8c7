"""Beside rules of Sloth's shape on the same series: the same ratios, the same pages and tickets."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.engine.slo.burn import DAY_S
from tailburn.engine.slo.model import Calendar, QuerySource, Rolling, Slo
from tailburn.rules.formats import FORMATS
from tailburn.rules.model import Group, Rule, RuleSet
from tailburn.rules.ruleset import build
from tailburn.rules.sloth import window_name
from tests.rules.promtool import HOUR_S, MINUTE_S, Asked, counter, judge, slo

pytestmark = pytest.mark.program("promtool")

QUERIES = QuerySource(
    'sum(rate(http_requests_total{code=~"5.."}[{{.window}}]))',
    "sum(rate(http_requests_total[{{.window}}]))",
)
OURS = slo(
    availability_ratio=0.999,
    source=QUERIES,
    labels={"sloth_service": "web", "sloth_slo": "requests", "owner": "web-team"},
)
NAMES = '{sloth_id="web-requests",sloth_service="web",sloth_slo="requests"}'
STRAIGHT = ("5m", "30m", "1h", "2h", "6h")


def peer() -> Group:
    """The recordings and the two alerts, each of two pairs joined by `or`."""
    rules = [Rule(_ratio(w), record=f"peer:ratio{w}") for w in (*STRAIGHT, "1d", "3d")]
    rules.append(Rule(_either(("5m", "1h", 14.4), ("30m", "6h", 6)), alert="PeerPage"))
    rules.append(Rule(_either(("2h", "1d", 3), ("6h", "3d", 1)), alert="PeerTicket"))
    return Group("peer", 60, tuple(rules))


def _ratio(window: str) -> str:
    bad, total = (q.replace("{{.window}}", window) for q in (QUERIES.bad, QUERIES.total))
    return f"({bad})\n/\n({total})"


def _either(*pairs: tuple[str, str, float]) -> str:
    return "\nor\n".join(
        f"(peer:ratio{short} > ({factor} * 0.001) and peer:ratio{long} > ({factor} * 0.001))"
        for short, long, factor in pairs
    )


def both() -> RuleSet:
    return RuleSet((*build([OURS], compat="sloth").groups, peer()))


def served(total: str, bad: str) -> dict[str, str]:
    return {
        'http_requests_total{code="200"}': counter(total),
        'http_requests_total{code="503"}': counter(bad),
    }


SCENARIOS = {
    "outage and recovery": ("100x300 0x15 100x465", "0x300 100x15 0x465"),
    "slow burn": ("1000x780", "0x240 5x360 0x180"),
    "blip": ("1000x780", "0x300 500x3 0x477"),
    "idle hours": ("10000x200 0x240 10000x340", "0x200 0x240 200x60 0x280"),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_pages_and_ratios_are_the_same_at_every_time(
    scenario: str, need_program: Callable[[str], str], tmp_path: Path
) -> None:
    asked = []
    for minute in range(230, 780, 7):
        at_s = minute * MINUTE_S
        ours = 'max(ALERTS{alertname="TailburnBudgetBurn",alertstate="firing",severity="page"})'
        theirs = 'max(ALERTS{alertname="PeerPage",alertstate="firing"})'
        difference = f"({ours} or vector(0)) - ({theirs} or vector(0))"
        asked.append(Asked(at_s, difference, {"{}": 0}))
        for window in STRAIGHT:
            known = f"(peer:ratio{window} >= 0)"
            apart = f"abs(slo:sli_error:ratio_rate{window}{NAMES} - on() {known}) > 1e-9"
            asked.append(Asked(at_s, apart, {}))
    judge(need_program("promtool"), tmp_path, both(), served(*SCENARIOS[scenario]), asked)


def test_a_slow_burn_is_the_same_ticket(need_program: Callable[[str], str], tmp_path: Path) -> None:
    """Days go by: means of sampled rates are some minutes late, so asked away from the edges."""
    series = served("1000x4320", "0x1440 4x2000 0x880")
    ours = 'max(ALERTS{alertname="TailburnBudgetBurn",alertstate="firing",severity="ticket"})'
    theirs = 'max(ALERTS{alertname="PeerTicket",alertstate="firing"})'
    asked = [
        Asked(hour * HOUR_S, f"({ours} or vector(0)) - ({theirs} or vector(0))", {"{}": 0})
        for hour in range(20, 72, 2)
    ]
    asked.append(Asked(40 * HOUR_S, theirs, {"{}": 1}))
    judge(need_program("promtool"), tmp_path, both(), series, asked, 5 * MINUTE_S)


def test_the_period_weighs_requests_where_a_mean_of_ratios_would_not(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    """A busy hour at 10 % and a quiet one at none: 9.9 % of the requests were bad, not 5 %."""
    series = served("9000x60 100x60", "1000x60 0x60")
    period = f"slo:sli_error:ratio_rate30d{NAMES}"
    near = f"abs({period} - 0.099) < bool 0.002"
    labels = '{owner="web-team",sloth_id="web-requests",sloth_service="web",'
    labels += 'sloth_slo="requests",sloth_window="30d"}'
    asked = [Asked(2 * HOUR_S - MINUTE_S, near, {labels: 1})]
    judge(need_program("promtool"), tmp_path, both(), series, asked)


def test_constants_and_names_are_sloths() -> None:
    rules = {rule.record: rule for rule in build([OURS], compat="sloth").records}
    assert rules["slo:objective:ratio"].expr == "vector(0.999)"
    assert rules["slo:error_budget:ratio"].expr == "vector(1-0.999)"
    assert rules["slo:time_period:days"].expr == "vector(30)"
    assert rules["sloth_slo_info"].labels["sloth_objective"] == "99.9"
    assert rules["slo:current_burn_rate:ratio"].labels == {
        "sloth_id": "web-requests",
        "sloth_service": "web",
        "sloth_slo": "requests",
        "owner": "web-team",
    }


def test_alerts_carry_the_labels_that_sloths_are_routed_by() -> None:
    burns = [r for r in build([OURS], compat="sloth").alerts if r.name == "TailburnBudgetBurn"]
    assert all(r.labels["sloth_severity"] == r.labels["severity"] for r in burns)
    assert {rule.labels["sloth_severity"] for rule in burns} == {"page", "ticket"}
    assert {rule.labels["sloth_id"] for rule in burns} == {"web-requests"}


@pytest.mark.parametrize(
    ("promise", "name"),
    [
        (slo(availability_ratio=0.99, window=Rolling(28 * DAY_S)), "4w"),
        (slo(availability_ratio=0.99, window=Rolling(30 * DAY_S)), "30d"),
        (slo(availability_ratio=0.99, window=Calendar("week")), "1w"),
    ],
)
def test_periods_are_named_as_sloth_names_them(
    promise: Slo, name: str, need_program: Callable[[str], str], tmp_path: Path
) -> None:
    rules = build([promise], compat="sloth")
    assert f"slo:sli_error:ratio_rate{name}" in {rule.record for rule in rules.records}
    file = tmp_path / "rules.yaml"
    file.write_text(FORMATS["prometheus"]("", rules.groups))
    subprocess.run([need_program("promtool"), "check", "rules", str(file)], check=True)


def test_a_window_that_is_no_whole_weeks_keeps_its_days() -> None:
    assert window_name(10 * DAY_S) == "10d"
    assert window_name(HOUR_S) == "1h"
