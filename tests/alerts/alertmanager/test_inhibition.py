"""Muting: whatever fires, somebody is told; and the pairs that must be muted are."""

from dataclasses import replace
from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.alerts.alertmanager.inhibition import inhibitions
from tailburn.alerts.alertmanager.matchers import Labels
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Slo
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.ruleset import alerts_of
from tests.alerts.alertmanager.examples import CHAT, GATEWAY, SLOS, all_alerts, labels_of

RULES = inhibitions(SLOS, all_alerts())


def alert(kind: Kind, severity: str, slo: str = "chat", **labels: str) -> Labels:
    told = {"alertname": kind, "severity": severity, "slo": slo, "team": "assistants", **labels}
    return {name: value for name, value in told.items() if value}


def burn(long: str, severity: str = "page", slo: str = "chat", **labels: str) -> Labels:
    return alert(Kind.BURN, severity, slo, **{"objective": "availability", "long": long, **labels})


def is_muted(target: Labels, *firing: Labels) -> bool:
    return any(rule.mutes(source, target) for rule in RULES for source in firing)


def test_the_faster_burn_mutes_the_slower_of_its_budget() -> None:
    fast, slow = burn("1h", model="a"), burn("6h", model="a")
    assert is_muted(slow, fast)
    assert not is_muted(fast, slow)


def test_a_burn_mutes_none_of_another_model_objective_or_slo() -> None:
    fast = burn("1h", model="a")
    assert not is_muted(burn("6h", model="b"), fast)
    assert not is_muted(burn("6h", model="a", objective="ttft_p95"), fast)
    assert not is_muted(burn("6h", slo="documents"), burn("1h"))


def test_a_page_mutes_the_tickets_of_its_slo() -> None:
    ticket = alert(Kind.REGRESSION, "ticket", objective="ttft_p99", model="a")
    assert is_muted(ticket, burn("1h", model="a"))
    assert not is_muted(ticket, burn("1h", model="b"))
    assert not is_muted(burn("1h", model="a"), ticket)


def test_a_page_leaves_the_word_that_data_are_missing() -> None:
    assert not is_muted(alert(Kind.UNMEASURED, "ticket", model="a"), burn("1h", model="a"))


def test_missing_data_mute_what_rests_on_them_and_no_page() -> None:
    missing = alert(Kind.UNMEASURED, "ticket", objective="ttft_p95", model="a")
    assert is_muted(alert(Kind.TIER, "ticket", objective="ttft_p95", model="a"), missing)
    assert is_muted(alert(Kind.REGRESSION, "ticket", objective="ttft_p99", model="a"), missing)
    assert not is_muted(alert(Kind.TIER, "page", objective="ttft_p50_critical", model="a"), missing)
    assert not is_muted(burn("3d", "ticket", model="a", objective="ttft_p95"), missing)


def test_a_clock_that_is_missing_mutes_nothing_of_another() -> None:
    missing = alert(Kind.UNMEASURED, "ticket", objective="availability", model="a")
    assert not is_muted(alert(Kind.TIER, "ticket", objective="ttft_p95", model="a"), missing)


def test_completion_that_is_missing_mutes_its_consistency() -> None:
    missing = alert(Kind.UNMEASURED, "ticket", "documents", objective="completion")
    consistency = alert(Kind.CONSISTENCY, "ticket", "documents", objective="consistency")
    assert is_muted(consistency, missing)
    assert not is_muted(missing, consistency)


def test_no_rule_is_written_that_no_alert_can_match() -> None:
    assert inhibitions([GATEWAY], []) == ()
    of_gateway = inhibitions([GATEWAY], [a for a in all_alerts() if a.slo is GATEWAY])
    assert not any("measured" in rule.why and "TTFT" in rule.why for rule in of_gateway)


def test_a_stalled_queue_says_why_nothing_is_measured() -> None:
    stalled = alert(Kind.STALLED, "page", model="a")
    assert is_muted(alert(Kind.UNMEASURED, "ticket", model="a"), stalled)


def test_the_gateway_mutes_its_models_at_the_same_speed_only() -> None:
    assert is_muted(burn("1h", model="a"), burn("1h", slo="gateway"))
    assert not is_muted(burn("1h", model="a"), burn("6h", slo="gateway"))
    assert not is_muted(burn("1h", slo="gateway"), burn("1h", model="a"))


def test_a_team_is_not_muted_by_another_teams_page() -> None:
    assert not is_muted(burn("1h", team="batch"), burn("1h", slo="gateway"))


def test_a_users_own_alerts_mute_none_of_ours_and_are_muted_by_none() -> None:
    theirs = {"alertname": "DiskFull", "severity": "page", "slo": "chat", "model": "a"}
    ticket = alert(Kind.REGRESSION, "ticket", model="a")
    assert not is_muted(ticket, theirs)
    assert not is_muted({**theirs, "severity": "ticket"}, burn("1h", model="a"))


def is_wider(wide: Slo, narrow: Slo) -> bool:
    """Whether a burn of the one mutes that of the other."""
    wide, narrow = replace(wide, name="wide"), replace(narrow, name="narrow")
    alerts = tuple(chain.from_iterable(map(alerts_of, (wide, narrow))))
    by = {dimension: "a" for dimension in wide.by}
    source, target = burn("1h", slo="wide", **by), burn("1h", slo="narrow", **by)
    return any(rule.mutes(source, target) for rule in inhibitions((wide, narrow), alerts))


def test_wider_is_what_holds_all_requests_and_tells_fewer_apart() -> None:
    assert is_wider(GATEWAY, CHAT)
    assert not is_wider(CHAT, GATEWAY)
    assert not is_wider(CHAT, CHAT)
    assert is_wider(replace(CHAT, by=()), CHAT)
    assert is_wider(replace(CHAT, select={"pool": "interactive"}), CHAT)
    assert not is_wider(replace(CHAT, select={"pool": "batch"}), CHAT)
    assert is_wider(CHAT, replace(CHAT, vantage="engine"))
    assert not is_wider(replace(CHAT, vantage="engine"), CHAT)
    assert not is_wider(replace(CHAT, vantage="engine"), replace(CHAT, by=("model", "tenant")))


def firing(alerts: tuple[Alert, ...]) -> st.SearchStrategy[list[Labels]]:
    """Some alerts at once, each for some models where its SLO tells them apart."""
    each = st.builds(
        lambda a, model: labels_of(a, **({"model": model} if a.by else {})),
        st.sampled_from(alerts),
        st.sampled_from(["a", "b"]),
    )
    return st.lists(each, min_size=1, max_size=12)


KINDS = tuple(
    replace(template, kind=kind, severity=severity)
    for template in all_alerts()
    for kind in Kind
    for severity in Severity
)


@settings(max_examples=400)
@given(firing(KINDS))
def test_whatever_fires_somebody_is_told(alerts: list[Labels]) -> None:
    assert not all(is_muted(a, *alerts) for a in alerts)


@settings(max_examples=400)
@given(firing(KINDS))
def test_whatever_pages_fire_one_is_told_of(alerts: list[Labels]) -> None:
    pages = [a for a in alerts if a["severity"] == "page"]
    assert not pages or not all(is_muted(page, *alerts) for page in pages)
