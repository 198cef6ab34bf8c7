"""Who is told: a tree of routes for our alerts alone, by team and severity.

One group is one message: all that fires for an SLO goes out as one page, whichever of its
objectives, windows and models it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tailburn.alerts.alertmanager.delivery import Delivery
from tailburn.alerts.alertmanager.errors import ConfigError
from tailburn.alerts.alertmanager.inhibition import OURS
from tailburn.alerts.alertmanager.matchers import is_any
from tailburn.engine.names import SEVERITY_LABEL, SLO_LABEL, TEAM_LABEL
from tailburn.engine.slo.burn import Severity

# Half a minute, so that what fires with it is in the first message and inhibition has settled.
_PAGE_TIMES: Final = {"group_wait": "30s", "group_interval": "5m", "repeat_interval": "1h"}
_TICKET_TIMES: Final = {"group_wait": "5m", "group_interval": "30m", "repeat_interval": "1d"}
_TIMES: Final[Mapping[Severity, Mapping[str, str]]] = {
    Severity.PAGE: _PAGE_TIMES,
    Severity.TICKET: _TICKET_TIMES,
}


def routes(deliveries: Sequence[Delivery]) -> dict[str, Any]:
    """Our one entry of the root's `routes`: a team's own deliveries first, then those for all.

    Raises ConfigError where a severity has no delivery for all teams: some alert would go
    nowhere.
    """
    for_all = {d.severity: d for d in deliveries if not d.team}
    if missing := [severity for severity in Severity if severity not in for_all]:
        raise ConfigError(*(_undelivered(severity) for severity in missing))
    return {
        "matchers": [str(OURS)],
        "receiver": for_all[Severity.TICKET].receiver,
        "group_by": [TEAM_LABEL, SLO_LABEL],
        "routes": [_route(d) for d in sorted(deliveries, key=_own_first)],
    }


def without_repeats(deliveries: Iterable[Delivery]) -> tuple[Delivery, ...]:
    """The deliveries, refused where a team has two ways for a severity."""
    found: dict[tuple[str, Severity], Delivery] = {}
    for delivery in deliveries:
        key = (delivery.team, delivery.severity)
        if key in found:
            whose = f"team {delivery.team}" if delivery.team else "all teams"
            raise ConfigError(
                f"--{delivery.severity}: is given twice for {whose}; want one way each, "
                "or a receiver of your own that has both"
            )
        found[key] = delivery
    return tuple(found.values())


def _route(delivery: Delivery) -> dict[str, Any]:
    matchers = [str(is_any(SEVERITY_LABEL, [delivery.severity]))]
    if delivery.team:
        matchers.insert(0, str(is_any(TEAM_LABEL, [delivery.team])))
    return {
        "matchers": matchers,
        "receiver": delivery.receiver,
        **_TIMES[delivery.severity],
    }


def _own_first(delivery: Delivery) -> tuple[bool, str, str]:
    return (not delivery.team, delivery.team, delivery.severity)


def _undelivered(severity: Severity) -> str:
    return f"--{severity}: is not given for all teams; want a way for teams without their own"
