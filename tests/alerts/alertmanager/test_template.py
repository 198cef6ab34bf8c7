"""How messages read, as Alertmanager's own templates make them of our alerts."""

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tailburn.alerts.alertmanager.template import template
from tailburn.engine.slo.burn import Severity
from tailburn.rules.alerting import Alert, Kind
from tests.alerts.alertmanager.examples import CHAT, all_alerts, labels_of

LOCK_SCREEN = 110  # letters of a title that a phone shows before it is opened
SINCE = "2026-12-02T03:02:11Z"
_VALUE = re.compile(r"\{\{ range .*?\{\{ end \}\}")

Read = Callable[..., str]


def fired(alert: Alert, ended: str = "", **values: str) -> dict[str, Any]:
    """An alert as Alertmanager hands it to a template, with what Prometheus puts in."""
    labels = labels_of(alert, **({"model": "llama-70b"} if alert.by else {}))
    told = {
        name: _VALUE.sub("61%", text.replace("{{ $labels.model }}", "llama-70b"))
        for name, text in alert.annotations.items()
    }
    return {
        "status": "resolved" if ended else "firing",
        "labels": labels,
        "annotations": {**told, **values},
        "startsAt": SINCE,
        "endsAt": ended or "0001-01-01T00:00:00Z",
    }


@pytest.fixture
def read(need_program: Callable[[str], str], tmp_path: Path) -> Read:
    """Render one of our templates for a group of alerts."""
    amtool = need_program("amtool")
    (tmp_path / "tailburn.tmpl").write_text(template())

    def render(name: str, alerts: Sequence[dict[str, Any]], kind: str = "text") -> str:
        is_over = all(alert["status"] == "resolved" for alert in alerts)
        group = {
            "receiver": "tailburn-page",
            "status": "resolved" if is_over else "firing",
            "alerts": alerts,
            "externalURL": "http://alertmanager:9093",
        }
        (tmp_path / "group.json").write_text(json.dumps(group))
        command = [
            amtool,
            "template",
            "render",
            f"--template.glob={tmp_path}/tailburn.tmpl",
            f"--template.data={tmp_path}/group.json",
            f"--template.type={kind}",
            f'--template.text={{{{ template "tailburn.{name}" . }}}}',
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return render


def page() -> Alert:
    return next(a for a in all_alerts() if a.objective == "ttft_p99" and a.slo is CHAT)


def test_a_page_says_what_burns_how_fast_and_what_to_do(read: Read) -> None:
    assert read("text", [fired(page())]).splitlines() == [
        "chat (model llama-70b): ttft_p99 burns its budget 14.4 times too fast",
        "Since 03:02 UTC, 2 Dec, model llama-70b",
        "More than 14.4 % of the requests miss the promise of TTFT within 1 s over the last 1h, "
        "and over the last 5m still. Allowed are 1 % over 30d.",
        "budget left: 61%",
        "burn rate: 14.4",
        "definition: TTFT within 1 s: from the gateway's start of the request to its first output "
        "token there",
        "window: 30d",
        "Do: https://runbooks.example/chat",
        "See: https://grafana.example/d/chat",
    ]


def test_a_title_tells_how_many_more_there_are(read: Read) -> None:
    others = [fired(a) for a in all_alerts() if a.kind is Kind.TIER]
    title = "chat (model llama-70b): ttft_p99 burns its budget 14.4 times too fast"
    assert read("title", [fired(page())]) == title
    assert read("title", [fired(page()), *others]) == f"{title} (+{len(others)} more)"


@pytest.mark.parametrize("severity", Severity)
def test_every_title_fits_a_lock_screen(severity: Severity, read: Read) -> None:
    kinds = {a.kind: a for a in all_alerts() if a.severity is severity}
    titles = [read("title", [fired(alert)]) for alert in kinds.values()]
    assert [title for title in titles if not 10 < len(title) <= LOCK_SCREEN] == []


def test_what_is_over_is_told_as_over(read: Read) -> None:
    over = fired(page(), ended="2026-12-02T03:40:00Z")
    assert read("title", [over]).startswith("Over: chat (model llama-70b): ttft_p99")
    text = read("text", [over])
    assert text.splitlines() == [
        "Over since 03:40 UTC: chat (model llama-70b): ttft_p99 burns its budget 14.4 times too "
        "fast"
    ]


def test_what_is_over_stands_below_what_still_fires(read: Read) -> None:
    tier = next(a for a in all_alerts() if a.kind is Kind.TIER)
    over = fired(tier, ended="2026-12-02T03:40:00Z")
    lines = read("text", [fired(page()), over]).splitlines()
    assert lines[0].startswith("chat (model llama-70b): ttft_p99 burns")
    assert lines[-1].startswith("Over since 03:40 UTC: chat")


def test_a_link_leads_to_the_dashboard_or_else_to_alertmanager(read: Read) -> None:
    assert read("dashboard", [fired(page())]) == "https://grafana.example/d/chat"
    without = next(a for a in all_alerts() if a.slo is not CHAT)
    assert read("dashboard", [fired(without)]) == "http://alertmanager:9093/#/alerts"


def test_text_from_outside_is_no_markup_in_a_mail(read: Read) -> None:
    hostile = fired(page(), summary="<script>alert(1)</script>")
    html = read("html", [hostile], kind="html")
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
