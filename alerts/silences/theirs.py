"""Silences of an Alertmanager, API v2: which incidents it keeps back, and acknowledgements in it.

Alertmanager knows no acknowledgement. People, and karma, make a silence whose comment begins with
`ACK`; so do we, where one of its incidents is acknowledged here.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from tailburn.alerts.pager.alertmanager import rfc3339
from tailburn.alerts.pager.http import Api
from tailburn.alerts.pager.page import DeliveryError
from tailburn.alerts.pager.text import clean
from tailburn.alerts.silences.matching import INCIDENT_LABEL
from tailburn.engine.names import SEVERITY_LABEL

ACK: Final = "ACK"
_NS: Final = 1_000_000_000
_OURS: Final = f"{ACK}! in tailburn"
_MOST_WHO: Final = 100
_MOST_WHY: Final = 500


@dataclass(frozen=True)
class Theirs:
    """A silence as Alertmanager has it. Times are of the wall clock, ns since the epoch."""

    id: str
    starts_unix_ns: int
    ends_unix_ns: int
    who: str
    why: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """What its matchers want to be equal."""

    @property
    def is_ack(self) -> bool:
        return self.why.upper().startswith(ACK)

    @property
    def of(self) -> tuple[str, str]:
        """The incident that it is of, by its number, and how grave it was then."""
        return self.labels.get(INCIDENT_LABEL, ""), self.labels.get(SEVERITY_LABEL, "")

    @property
    def is_ours(self) -> bool:
        """Whether it was made here, for an incident that is acknowledged."""
        return self.why.startswith(_OURS)


class TheirSilences:
    """Of one Alertmanager. Everything raises DeliveryError where it answers otherwise, or not."""

    def __init__(self, url: str, alertname: str, api: Api | None = None) -> None:
        """`alertname`: of incidents there. Raises ValueError for what is no http address."""
        self._api = api or Api(url)
        self._alertname = alertname
        self.name = self._api.host

    def muted(self) -> dict[int, list[str]]:
        """The ids of the silences that keep an incident back, by its number."""
        found: dict[int, list[str]] = {}
        alerts = self._api.get("/api/v2/alerts", filter=f'alertname="{self._alertname}"')
        with _as_expected(self.name):
            for alert in alerts:
                number = alert["labels"].get(INCIDENT_LABEL, "")
                if number.isdigit():
                    found.setdefault(int(number), []).extend(alert["status"]["silencedBy"])
        return found

    def active(self) -> dict[str, Theirs]:
        """Silences that hold now, by id."""
        silences = self._api.get("/api/v2/silences")
        with _as_expected(self.name):
            return {
                one["id"]: _theirs(one) for one in silences if one["status"]["state"] == "active"
            }

    def acknowledge(
        self, of: tuple[str, str], who: str, ends_unix_ns: int, now_unix_ns: int, known: str = ""
    ) -> None:
        """Have it repeat nothing of an incident as grave as it is: `Theirs.of`.

        `known`: the silence that does so already.
        """
        number, severity = of
        labels = {
            "alertname": self._alertname, INCIDENT_LABEL: number, SEVERITY_LABEL: severity,
        }  # fmt: skip
        body = {
            "matchers": [_equal(name, value) for name, value in labels.items()],
            "startsAt": rfc3339(now_unix_ns),
            "endsAt": rfc3339(ends_unix_ns),
            "createdBy": who or "tailburn",
            "comment": f"{_OURS}, incident {number}",
        }  # fmt: skip
        self._api.post("/api/v2/silences", {**body, "id": known} if known else body)

    def end(self, id: str) -> None:
        self._api.delete(f"/api/v2/silence/{id}")

    def close(self) -> None:
        self._api.close()


@contextmanager
def _as_expected(host: str) -> Iterator[None]:
    """What is not as its API says is told as an error of its own."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DeliveryError(f"{host}: its answer is not as its API v2 says") from None


def _theirs(said: Mapping[str, Any]) -> Theirs:
    return Theirs(
        id=str(said["id"]),
        starts_unix_ns=_unix_ns(said["startsAt"]),
        ends_unix_ns=_unix_ns(said["endsAt"]),
        who=clean(said["createdBy"], _MOST_WHO) or "somebody",
        why=clean(said["comment"], _MOST_WHY),
        labels={
            one["name"]: str(one["value"])
            for one in said["matchers"]
            if not one["isRegex"] and one.get("isEqual", True)
        },
    )


def _equal(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "value": value, "isRegex": False, "isEqual": True}


def _unix_ns(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp()) * _NS
