"""A real Alertmanager with our configuration: who is told of an incident, and who is muted."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tailburn.alerts.alertmanager.config import configuration
from tailburn.alerts.alertmanager.delivery import Delivery, Kind
from tailburn.alerts.alertmanager.inhibition import inhibitions
from tailburn.alerts.alertmanager.matchers import Labels
from tailburn.alerts.alertmanager.template import TEMPLATE_FILE, template
from tailburn.engine.slo.burn import Severity
from tailburn.rules.alerting import Alert
from tailburn.rules.alerting import Kind as AlertKind
from tests.alerts.alertmanager.examples import SLOS, all_alerts, labels_of
from tests.live.monitoring import Pager, Program, alertmanager, paging
from tests.live.service import until

pytestmark = [pytest.mark.timeout(300), pytest.mark.program("prometheus-alertmanager")]

Running = tuple[Program, Pager]


@pytest.fixture
def running(tmp_path: Path, need_program: Callable[[str], str]) -> Iterator[Running]:
    """An Alertmanager that tells our webhook of pages and of tickets, and waits a second only."""
    with paging() as (url, pager):
        ways = [Delivery(severity, "", Kind.WEBHOOK, url) for severity in Severity]
        text = configuration(SLOS, ways)
        for wait in ("group_wait: 30s", "group_wait: 5m"):
            assert wait in text
            text = text.replace(wait, "group_wait: 1s")
        config = tmp_path / "alertmanager.yml"
        config.write_text(text)
        config.with_name(TEMPLATE_FILE).write_text(template())
        program = need_program("prometheus-alertmanager")
        with alertmanager(program, tmp_path / "alertmanager", config) as started:
            yield started, pager


def fire(program: Program, alerts: Sequence[Alert], model: str = "a") -> list[Labels]:
    """Send alerts as Prometheus does; the labels that they were sent with."""
    now = datetime.now(UTC)
    sent: list[Labels] = [labels_of(a, **({"model": model} if a.by else {})) for a in alerts]
    body = [
        {
            "labels": labels,
            "annotations": {"summary": f"{labels['slo']} is in trouble"},
            "startsAt": now.isoformat(),
            "endsAt": (now + timedelta(minutes=30)).isoformat(),
        }
        for labels in sent
    ]
    answer = httpx.post(f"{program.url}/api/v2/alerts", json=body, trust_env=False)
    assert answer.status_code == 200, answer.text
    return sent


def key(labels: Labels) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def test_alertmanager_mutes_what_we_say_it_mutes(running: Running) -> None:
    program, _ = running
    sent = fire(program, all_alerts())
    rules = inhibitions(SLOS, all_alerts())
    expected = {
        key(target): any(rule.mutes(source, target) for rule in rules for source in sent)
        for target in sent
    }

    def muted() -> dict[tuple[tuple[str, str], ...], bool]:
        answer = program.get("/api/v2/alerts")
        return {key(alert["labels"]): bool(alert["status"]["inhibitedBy"]) for alert in answer}

    until(lambda: muted() == expected, 30)
    assert {True, False} == set(expected.values())


def test_one_incident_of_an_slo_is_one_page(running: Running) -> None:
    program, pager = running
    of_chat = [a for a in all_alerts() if a.slo.name == "chat" and a.kind is not AlertKind.STALLED]
    fire(program, of_chat)
    until(lambda: len(pager.told) > 1, 30)
    by_receiver = {told["receiver"]: told for told in pager.told}
    assert len(by_receiver) == len(pager.told) == 2
    pages = [alert["labels"] for alert in by_receiver["tailburn-page"]["alerts"]]
    assert {labels["severity"] for labels in pages} == {"page"}
    burns = [labels for labels in pages if labels["alertname"] == AlertKind.BURN]
    budgets = [labels["objective"] for labels in burns]
    assert len(budgets) == len(set(budgets)) > 1, "a slower burn was told beside the faster"
    tickets = [alert["labels"] for alert in by_receiver["tailburn-ticket"]["alerts"]]
    assert {labels["alertname"] for labels in tickets} == {AlertKind.UNMEASURED}


def test_what_the_gateway_has_is_not_told_of_its_models_too(running: Running) -> None:
    program, pager = running
    burns = [
        a
        for a in all_alerts()
        if a.kind is AlertKind.BURN
        and a.objective == "availability"
        and a.severity is Severity.PAGE
    ]
    fire(program, burns)
    until(lambda: bool(pager.told), 30)
    told = [alert["labels"]["slo"] for group in pager.told for alert in group["alerts"]]
    assert told == ["gateway"]
