"""Alertmanager, API v2: one alert for each incident, told again and again while it is open.

Unlike other channels it keeps no state of ours: an alert that is not told of for long enough is
over for it, as if Prometheus had ended. So all that is open is posted each half minute to each of
its instances, and what is over for a while after.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from tailburn.alerts.pager.http import Poster
from tailburn.engine.evaluation.windows import MINUTE_NS

ALERTNAME: Final = "TailburnIncident"
RESEND_NS: Final = 30_000_000_000
LASTS_NS: Final = 4 * RESEND_NS
"""So long an alert lasts that is not told of again, as Prometheus has it."""
ENDED_NS: Final = 15 * MINUTE_NS
"""So long after its end an alert is told of: Prometheus' figure as well."""
MOST_AT_ONCE: Final = 500
_PATH: Final = "/api/v2/alerts"


@dataclass(frozen=True)
class Sent:
    """An alert as Alertmanager has it. Times are of the wall clock, ns since the epoch."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_unix_ns: int
    ends_unix_ns: int | None = None
    """None: it goes on."""
    generator_url: str = field(default="")


class Alertmanager:
    """One instance; of several each is told on its own."""

    def __init__(self, url: str, poster: Poster | None = None) -> None:
        """Raises ValueError for what is no http address."""
        self._poster = poster or Poster(url.rstrip("/") + _PATH)
        self.name = self._poster.host

    def post(self, alerts: Sequence[Sent], now_unix_ns: int) -> None:
        """Tell it of all of them. Raises DeliveryError."""
        for begin in range(0, len(alerts), MOST_AT_ONCE):
            self._poster.post(body(alerts[begin : begin + MOST_AT_ONCE], now_unix_ns))

    def close(self) -> None:
        self._poster.close()


def body(alerts: Iterable[Sent], now_unix_ns: int) -> list[dict[str, Any]]:
    """As `postableAlerts` of its OpenAPI file has it; labels without a value are left out."""
    return [
        {
            "labels": {name: value for name, value in alert.labels.items() if value},
            "annotations": {name: value for name, value in alert.annotations.items() if value},
            "startsAt": rfc3339(alert.starts_unix_ns),
            "endsAt": rfc3339(alert.ends_unix_ns or now_unix_ns + LASTS_NS),
            "generatorURL": alert.generator_url,
        }
        for alert in alerts
    ]


def rfc3339(ns: int) -> str:
    """A time of the wall clock as its API has it, to the millisecond."""
    seconds, rest = divmod(ns, 1_000_000_000)
    at = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{at}.{rest // 1_000_000:03d}Z"
