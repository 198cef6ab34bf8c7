"""Slack's incoming webhooks, and those of others that take the same."""

from typing import Any, Final

from tailburn.alerts.pager.http import Poster
from tailburn.alerts.pager.page import Page
from tailburn.engine.incidents import What
from tailburn.engine.slo.burn import Severity

_COLOURS: Final = {Severity.PAGE: "danger", Severity.TICKET: "warning"}


class Slack:
    """Posts to the one channel that its address belongs to."""

    def __init__(self, name: str, poster: Poster) -> None:
        self.name = name
        self._poster = poster

    def send(self, page: Page) -> None:
        """Raises DeliveryError."""
        self._poster.post(message(page), {"idempotency-key": page.id})

    def close(self) -> None:
        self._poster.close()


def message(page: Page) -> dict[str, Any]:
    """Nothing of telemetry becomes a link or calls people: no mark of Slack's is left in it."""
    colour = "good" if page.what is What.RESOLVE else _COLOURS[page.severity]
    attachment: dict[str, Any] = {
        "color": colour, "title": escaped(page.title), "text": escaped(page.text),
        "fallback": escaped(page.title), "mrkdwn_in": [],
    }  # fmt: skip
    if "incident" in page.links:
        attachment["title_link"] = page.links["incident"]
    return {"attachments": [attachment]}


def escaped(text: str) -> str:
    """https://api.slack.com/reference/surfaces/formatting#escaping"""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
