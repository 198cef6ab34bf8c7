"""Where messages go: one delivery is a severity of one team, or of all teams without their own."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tailburn.alerts.alertmanager.errors import ConfigError
from tailburn.engine.slo.burn import Severity


class Kind(StrEnum):
    """What Alertmanager can deliver to; a receiver is one of the user's own, by its name."""

    PAGERDUTY = "pagerduty"
    OPSGENIE = "opsgenie"
    SLACK = "slack"
    EMAIL = "email"
    WEBHOOK = "webhook"
    RECEIVER = "receiver"


_ADDRESS: Final = {
    Kind.EMAIL: "email:ADDRESS",
    Kind.WEBHOOK: "webhook:URL",
    Kind.RECEIVER: "receiver:NAME",
}
"""The kinds that are nothing without an address. Slack takes a channel, but can do without."""

WAYS: Final = "pagerduty, opsgenie, slack[:CHANNEL], email:ADDRESS, webhook:URL or receiver:NAME"


@dataclass(frozen=True)
class Delivery:
    """Messages of a severity go there; team is empty for every team without a delivery."""

    severity: Severity
    team: str
    kind: Kind
    address: str = ""

    @property
    def receiver(self) -> str:
        """The name of the receiver: the user's own, or the one that is written for this."""
        if self.kind is Kind.RECEIVER:
            return self.address
        return "-".join(part for part in ("tailburn", self.team, self.severity) if part)


def delivery(severity: Severity, given: str) -> Delivery:
    """Read `[TEAM=]WAY[:ADDRESS]`; raises ConfigError with what was given and what is wanted."""
    team, equals, way = given.partition("=")
    if not equals or any(mark in team for mark in ":/@"):  # an address may hold a =
        team, way = "", given
    kind, _, address = way.partition(":")
    field = f"--{severity}"
    if kind not in {str(known) for known in Kind}:
        raise ConfigError(f"{field}: {given!r}: want [TEAM=]WAY, where WAY is {WAYS}")
    if Kind(kind) in _ADDRESS and not address:
        raise ConfigError(f"{field}: {given!r}: {kind} needs an address: {_ADDRESS[Kind(kind)]}")
    if Kind(kind) in (Kind.PAGERDUTY, Kind.OPSGENIE) and address:
        raise ConfigError(
            f"{field}: {given!r}: {kind} takes no address; its key is read from a file, "
            "see --secrets"
        )
    return Delivery(severity, team, Kind(kind), address)
