"""PagerDuty, Events API v2: one of its incidents for one of ours, by the deduplication key.

https://developer.pagerduty.com/docs/send-alert-event
"""

from datetime import UTC, datetime
from typing import Any, Final

from tailburn.alerts.pager.http import Poster
from tailburn.alerts.pager.page import Page
from tailburn.engine.incidents import What
from tailburn.engine.slo.burn import Severity

EVENTS_URL: Final = "https://events.pagerduty.com/v2/enqueue"
MOST_SUMMARY: Final = 1_024
_SEVERITIES: Final = {Severity.PAGE: "critical", Severity.TICKET: "warning"}
_ACTIONS: Final = {What.TRIGGER: "trigger", What.UPDATE: "trigger", What.RESOLVE: "resolve"}


class PagerDuty:
    """Events of one service of PagerDuty's, which its routing key names."""

    def __init__(self, name: str, routing_key: str, poster: Poster) -> None:
        self.name = name
        self._routing_key = routing_key
        self._poster = poster

    def send(self, page: Page) -> None:
        """Raises DeliveryError."""
        self._poster.post(self._event(page))

    def close(self) -> None:
        self._poster.close()

    def _event(self, page: Page) -> dict[str, Any]:
        return {
            "routing_key": self._routing_key,
            "dedup_key": page.key,
            "event_action": _ACTIONS[page.what],
            "payload": {
                "summary": page.title[:MOST_SUMMARY],
                "source": page.labels.get("slo", "tailburn"),
                "severity": _SEVERITIES[page.severity],
                "timestamp": datetime.fromtimestamp(page.at_ns / 1e9, UTC).isoformat(),
                "component": page.labels.get("model", ""),
                "custom_details": {"text": page.text, **page.labels},
            },
            "links": [{"href": url, "text": name} for name, url in page.links.items()],
        }
