"""The generated rules in a real Prometheus, over a recording replayed while it is scraped."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.live.monitoring import (
    Pager,
    Program,
    Prometheus,
    alertmanager,
    paging,
    prometheus,
    sped_up,
)
from tests.live.service import QUICK, Service, living, run, until
from tests.live.test_replay import CAPTURE, REQUESTS

pytestmark = pytest.mark.timeout(900)

SLO = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat, labels: {team: assistants}}
spec:
  select: {request_type: chat}
  by: [model]
  vantage: client
  clocks:
    ttft: {acceptable: {p50: 50ms, p95: 250ms, p99: 9s}, critical: {p50: 100ms}}
    tpot: {acceptable: {p95: 60ms}}
    e2e: {acceptable: {p95: 30s}}
  availability: 99.9%
  goodput: 95%
  consistency: {p99_over_p50: 3}
  regression: {ratio: 1.5}
  scale_out: {at: 0.8, for: 5m}
"""


@dataclass
class Stack:
    """What a user has: the service, its rules in Prometheus, pages through Alertmanager."""

    service: Service
    prometheus: Prometheus
    alertmanager: Program
    pager: Pager


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory, need_program: Callable[[str], str]
) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("stack")
    slo, rules, config = folder / "chat.yaml", folder / "rules", folder / "am" / "config.yml"
    slo.write_text(SLO)
    _done("rules", "generate", "-i", slo, "-o", rules)
    (folder / "am").mkdir()
    with (
        paging() as (webhook, pager),
        living(folder / "store", *QUICK, "--slo", slo) as service,
    ):
        ways = ("--page", f"webhook:{webhook}", "--ticket", f"webhook:{webhook}ticket")
        secrets = folder / "secrets"
        secrets.mkdir()
        _done("alerts", "routes", "-i", slo, "-o", config, "--secrets", secrets, *ways)
        with (
            alertmanager(need_program("prometheus-alertmanager"), folder / "am", config) as am,
            prometheus(
                need_program("prometheus"),
                _made(folder / "prom"),
                sped_up(rules, folder / "fast"),
                service.web.removeprefix("http://"),
                am.url,
            ) as prom,
        ):
            until(lambda: prom.number("up") == 1)
            _done("replay", CAPTURE, "--to", service.http, "--speed", "4")
            until(lambda: len(service.rows("/api/requests")) == REQUESTS)
            yield Stack(service, prom, am, pager)


def _done(*command: object) -> None:
    ended = run(*command)
    assert ended.returncode == 0, ended.stderr


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_every_rule_evaluates(stack: Stack) -> None:
    def evaluated() -> bool:
        return all(not rule["lastEvaluation"].startswith("0001") for rule in _rules(stack))

    until(evaluated)
    rules = _rules(stack)
    assert len(rules) > 20
    assert {rule["health"] for rule in rules} == {"ok"}
    assert [rule["lastError"] for rule in rules if rule.get("lastError")] == []


def _rules(stack: Stack) -> list[dict[str, Any]]:
    return stack.prometheus.rules()


@pytest.mark.parametrize("counter", ["requests", "bad", "unmeasured"])
def test_prometheus_sees_every_verdict_from_the_first_on(stack: Stack, counter: str) -> None:
    """No series was born above 0: what is counted is what `increase` gives."""
    born_at = stack.prometheus.query(f"min_over_time(tailburn_slo_{counter}_total[1h])")
    objectives = {sample["metric"]["objective"] for sample in born_at}
    assert objectives == {"availability", "goodput", "ttft_p95", "ttft_p99", "tpot_p95", "e2e_p95"}
    assert {sample["value"][1] for sample in born_at} == {"0"}


def test_the_verdicts_are_those_of_the_requests(stack: Stack) -> None:
    rows = [r for r in stack.service.rows("/api/requests") if r["request_type"] == "chat"]
    ttft_s = [r["ttft_client_s"] for r in rows if r["ttft_client_s"] is not None]
    picked = '{objective="ttft_p95"}'

    bad = sum(value > 0.25 for value in ttft_s)
    cut_short = [r for r in rows if r["ttft_client_s"] is None and r["outcome"] == "cancelled"]
    given_up = sum((r["e2e_client_s"] or 0) > 0.25 for r in cut_short)

    def counted(counter: str) -> float:
        return stack.prometheus.number(f"sum(tailburn_slo_{counter}_total{picked})") or 0

    until(lambda: counted("requests") >= len(ttft_s) + given_up)
    assert counted("requests") == len(ttft_s) + given_up
    assert counted("bad") == bad + given_up
    assert bad > 20


def test_one_incident_is_one_page_and_what_it_explains_is_held_back(stack: Stack) -> None:
    until(lambda: bool(stack.pager.told))  # half a minute later, when inhibition has settled
    fired = {_fired(sample["metric"]) for sample in stack.prometheus.query(FIRING)}
    pages = {alert for alert in fired if alert.severity == "page"}
    assert {alert.objective for alert in pages} == {"ttft_p95", "goodput"}
    assert {alert.severity for alert in fired - pages} == {"ticket"}

    (page,) = stack.pager.told
    told = {_fired(alert["labels"]) for alert in page["alerts"] if _is_of_model(alert["labels"])}
    assert page["groupLabels"] == {"slo": "chat", "team": "assistants"}
    assert told == {min(_of(pages, name), key=lambda a: a.short_s) for name in _names(pages)}

    held_back = {
        _fired(alert["labels"])
        for alert in stack.alertmanager.get("/api/v2/alerts")
        if alert["status"]["inhibitedBy"] and _is_of_model(alert["labels"])
    }
    assert held_back == fired - told


FIRING = 'ALERTS{alertstate="firing",model="tiny-llama"}'


def _is_of_model(labels: dict[str, str]) -> bool:
    """What only engines tell of is of no known model: six whose queue alone was too long."""
    assert labels["model"] in ("tiny-llama", "unknown")
    return labels["model"] == "tiny-llama"


@dataclass(frozen=True)
class Fired:
    severity: str
    objective: str
    short: str

    @property
    def short_s(self) -> int:
        return int(self.short[:-1]) * {"m": 60, "h": 3600}[self.short[-1]]


def _fired(labels: dict[str, str]) -> Fired:
    assert (labels["alertname"], labels["model"]) == ("TailburnBudgetBurn", "tiny-llama")
    return Fired(labels["severity"], labels["objective"], labels["short"])


def _names(alerts: set[Fired]) -> set[str]:
    return {alert.objective for alert in alerts}


def _of(alerts: set[Fired], objective: str) -> set[Fired]:
    return {alert for alert in alerts if alert.objective == objective}
