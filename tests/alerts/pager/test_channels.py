"""Webhook, Slack and PagerDuty: what each receives."""

import json

import pytest

from tailburn.alerts.pager.page import Channel
from tailburn.alerts.pager.pagerduty import PagerDuty
from tailburn.alerts.pager.slack import Slack
from tailburn.alerts.pager.webhook import Webhook
from tailburn.engine.incidents import What
from tailburn.engine.slo.burn import Severity
from tests.alerts.pager.pages import Receiver, page


def test_a_webhook_has_the_whole_page_and_its_idempotency_key() -> None:
    receiver = Receiver()
    Webhook("hook", receiver.poster()).send(page())
    (request,), (body,) = receiver.posted, receiver.bodies
    assert request.headers["idempotency-key"] == "message-id"
    assert (body["key"], body["what"], body["labels"]["slo"]) == ("incident-key", "trigger", "chat")


@pytest.mark.parametrize(
    ("what", "action"), [(What.TRIGGER, "trigger"), (What.UPDATE, "trigger"),
                         (What.RESOLVE, "resolve")],
)  # fmt: skip
def test_pagerduty_has_one_incident_for_one_of_ours(what: What, action: str) -> None:
    receiver = Receiver()
    PagerDuty("pagerduty", "routing", receiver.poster()).send(page(what, title="t" * 2_000))
    (event,) = receiver.bodies
    assert (event["dedup_key"], event["event_action"]) == ("incident-key", action)
    payload = event["payload"]
    assert (len(payload["summary"]), payload["severity"]) == (1_024, "critical")
    assert payload["timestamp"] == "1970-01-01T00:02:00+00:00"
    assert event["links"] == [{"href": "http://t/incidents/1", "text": "incident"}]


def test_slack_makes_no_link_and_calls_nobody_for_what_telemetry_says() -> None:
    receiver = Receiver()
    Slack("chat", receiver.poster()).send(page(title="<!channel> & <http://evil|me>"))
    (attachment,) = receiver.bodies[0]["attachments"]
    assert attachment["title"] == "&lt;!channel&gt; &amp; &lt;http://evil|me&gt;"
    assert "<" not in json.dumps({k: v for k, v in attachment.items() if k != "title_link"})
    assert attachment["color"] == "danger"


@pytest.mark.parametrize(
    ("what", "severity", "colour"),
    [(What.RESOLVE, Severity.PAGE, "good"), (What.TRIGGER, Severity.TICKET, "warning")],
)
def test_slack_shows_how_grave_it_is(what: What, severity: Severity, colour: str) -> None:
    receiver = Receiver()
    Slack("chat", receiver.poster()).send(page(what, severity=severity))
    assert receiver.bodies[0]["attachments"][0]["color"] == colour


def test_each_is_a_channel() -> None:
    poster = Receiver().poster()
    channels: list[Channel] = [
        Webhook("a", poster), Slack("b", poster), PagerDuty("c", "key", poster),
    ]  # fmt: skip
    assert [channel.name for channel in channels] == ["a", "b", "c"]
    for channel in channels:
        channel.close()
