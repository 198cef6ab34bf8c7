"""What is muted while something worse says the same.

Alertmanager mutes by what fires, also by what is itself muted. So the rules go one way only, or
two alerts could mute each other and nobody would be told: faster over slower, page over ticket,
wider over narrower, and what makes a measurement meaningless over what rests on it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tailburn.alerts.alertmanager.matchers import Labels, Matcher, begins, is_any, is_not
from tailburn.engine.names import (
    LONG_LABEL,
    OBJECTIVE_LABEL,
    SEVERITY_LABEL,
    SLO_LABEL,
    TEAM_LABEL,
)
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.promql import duration

ALERTNAME: Final = "alertname"
OURS: Final = begins(ALERTNAME, "Tailburn")

_OF_WHAT_IS_SEEN: Final = (Kind.TIER, Kind.REGRESSION, Kind.SCALE_OUT)
"""Percentiles of the requests that were seen: of no meaning where too many were not."""
_OUTSIDE_IN: Final = ("client", "gateway", "engine")


@dataclass(frozen=True)
class Inhibition:
    """While the source fires, the target tells nobody, where the labels of `equal` agree."""

    why: str
    source: tuple[Matcher, ...]
    target: tuple[Matcher, ...]
    equal: tuple[str, ...]

    def mutes(self, source: Labels, target: Labels) -> bool:
        """As Alertmanager decides: a missing label is empty; who is both mutes not its like."""
        return (
            _all_match(self.source, source)
            and _all_match(self.target, target)
            and all(source.get(label, "") == target.get(label, "") for label in self.equal)
            and not (_all_match(self.target, source) and _all_match(self.source, target))
        )

    def as_entry(self) -> dict[str, Any]:
        """The entry of `inhibit_rules`."""
        return {
            "source_matchers": [str(m) for m in self.source],
            "target_matchers": [str(m) for m in self.target],
            "equal": list(self.equal),
        }


def inhibitions(slos: Sequence[Slo], alerts: Sequence[Alert]) -> tuple[Inhibition, ...]:
    """What the alerts of these SLOs mute among each other; no rule that none of them matches."""
    scope = (SLO_LABEL, *sorted({dimension for slo in slos for dimension in slo.by}))
    rules = (
        *_faster_over_slower(alerts, scope),
        _page_over_ticket(scope),
        *_unmeasured(scope),
        *_wider_over_narrower(slos),
    )
    fire = [{ALERTNAME: str(alert.kind), **alert.labels} for alert in alerts]
    return tuple(
        rule
        for rule in rules
        if all(any(_all_match(m, labels) for labels in fire) for m in (rule.source, rule.target))
    )


def _faster_over_slower(alerts: Iterable[Alert], scope: tuple[str, ...]) -> list[Inhibition]:
    """A budget that burns within 1 h burns within 6 h too: told once, by the faster."""
    windows_s = sorted({alert.long_s for alert in alerts if alert.kind is Kind.BURN})
    burn = is_any(ALERTNAME, [Kind.BURN])
    return [
        Inhibition(
            f"a burn over {duration(fast_s)} is one over more, too",
            (burn, is_any(LONG_LABEL, [duration(fast_s)])),
            (burn, is_any(LONG_LABEL, map(duration, windows_s[i + 1 :]))),
            (*scope, OBJECTIVE_LABEL, SEVERITY_LABEL),
        )
        for i, fast_s in enumerate(windows_s[:-1])
    ]


def _page_over_ticket(scope: tuple[str, ...]) -> Inhibition:
    """Who was woken for an SLO needs no ticket for it, but must know that data are missing."""
    return Inhibition(
        "a page is out for it",
        (OURS, is_any(SEVERITY_LABEL, [Severity.PAGE])),
        (
            OURS,
            is_not(ALERTNAME, Kind.UNMEASURED),
            is_any(SEVERITY_LABEL, [Severity.TICKET]),
        ),
        scope,
    )


def _unmeasured(scope: tuple[str, ...]) -> Iterator[Inhibition]:
    """Tickets that rest on what was not measured; never a page, which had its data."""
    unmeasured = is_any(ALERTNAME, [Kind.UNMEASURED])
    yield Inhibition(
        "requests that do not finish are not measured either",
        (is_any(ALERTNAME, [Kind.STALLED]),),
        (unmeasured,),
        scope,
    )
    of_clock = (is_any(ALERTNAME, _OF_WHAT_IS_SEEN), is_any(SEVERITY_LABEL, [Severity.TICKET]))
    for clock in Clock:
        named = begins(OBJECTIVE_LABEL, f"{clock}_")
        why = f"{clock.upper()} was not measured"
        yield Inhibition(why, (unmeasured, named), (*of_clock, named), scope)
    for named in (is_any(OBJECTIVE_LABEL, ["completion"]), begins(OBJECTIVE_LABEL, "e2e_")):
        consistency = (is_any(ALERTNAME, [Kind.CONSISTENCY]),)
        yield Inhibition("E2E was not measured", (unmeasured, named), consistency, scope)


def _wider_over_narrower(slos: Sequence[Slo]) -> list[Inhibition]:
    """What the whole gateway has, each model of it has; told once, for the gateway.

    Only the same alert of the same objective and window, to the same team, is muted: a model
    that breaks down while the gateway burns slowly is told, and so is each team.
    """
    found = []
    for wide in slos:
        narrow = [slo.name for slo in slos if is_wider(wide, slo)]
        if narrow:
            same = (ALERTNAME, SEVERITY_LABEL, OBJECTIVE_LABEL, LONG_LABEL, TEAM_LABEL, *wide.by)
            found.append(
                Inhibition(
                    f"{wide.name} is the wider",
                    (OURS, is_any(SLO_LABEL, [wide.name])),
                    (OURS, is_any(SLO_LABEL, narrow)),
                    same,
                )
            )
    return found


def is_wider(wide: Slo, narrow: Slo) -> bool:
    """Whether every request of `narrow` is one of `wide`, which tells no less of them apart."""
    holds = (
        wide.select.items() <= narrow.select.items()
        and set(wide.by) <= set(narrow.by)
        and _depth(wide) <= _depth(narrow)
    )
    is_same = (wide.select, set(wide.by), wide.vantage) == (
        narrow.select,
        set(narrow.by),
        narrow.vantage,
    )
    return holds and not is_same


def _depth(slo: Slo) -> int:
    return _OUTSIDE_IN.index(slo.vantage)


def _all_match(matchers: Iterable[Matcher], labels: Labels) -> bool:
    return all(matcher.matches(labels) for matcher in matchers)
