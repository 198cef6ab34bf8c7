"""Alerts that rest on a share of bad requests without being a budget's burn: tiers, deadlines.

A percentile is past a threshold as long as more than its share of the requests is: p50 in a
window once half of them are.
"""

from dataclasses import dataclass

from tailburn.engine.slo.model import QUANTILES, Clock
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.alerts import deadline


@dataclass(frozen=True)
class Shares:
    """What must be bad: these shares of these windows (seconds) at once, for so long."""

    over: tuple[tuple[float, int], ...]
    for_s: int

    def detection_s(self, bad_ratio: float) -> float | None:
        """From the first bad request until it fires, while this share is bad; None: never."""
        if any(bad_ratio <= share for share, _ in self.over):
            return None
        return max(share / bad_ratio * window_s for share, window_s in self.over) + self.for_s

    def reset_s(self, bad_ratio: float) -> float | None:
        """From the last bad request until it ends, after bad ones for a long window and more."""
        if self.detection_s(bad_ratio) is None:
            return None
        return min((1 - share / bad_ratio) * window_s for share, window_s in self.over)


def shares_of(alert: Alert) -> Shares | None:
    """The shares that an alert rests on; None where it is about something else."""
    if alert.kind is Kind.DEADLINE:
        over = ((deadline.SHORT_RATIO, deadline.SHORT_S), (deadline.LONG_RATIO, deadline.LONG_S))
        return Shares(over, alert.for_s)
    if alert.kind is Kind.TIER:
        return Shares(((_beyond(alert), alert.long_s),), alert.for_s)
    return None


def _beyond(alert: Alert) -> float:
    """The share of the requests that lies beyond the percentile of a tier alert."""
    shares = {
        f"{clock}_{percentile.replace('.', '_')}": round(1 - quantile, 12)
        for clock in Clock
        for percentile, quantile in QUANTILES.items()
    }
    return shares[alert.objective.removesuffix("_critical")]
