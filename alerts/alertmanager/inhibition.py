"""What is muted while something worse says the same.

Alertmanager mutes by what fires, also by what is itself muted. So the rules go one way only, or
two alerts could mute each other and nobody would be told: faster over slower, page over ticket,
wider over narrower, and what makes a measurement meaningless over what rests on it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import Any, Final, TypeVar

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

_PAGE: Final = is_any(SEVERITY_LABEL, [Severity.PAGE])
_TICKET: Final = is_any(SEVERITY_LABEL, [Severity.TICKET])
_OF_WHAT_IS_SEEN: Final = (Kind.TIER, Kind.REGRESSION, Kind.SCALE_OUT)
"""Percentiles of the requests that were seen: of no meaning where too many were not."""
_Item = TypeVar("_Item")
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
        (OURS, _PAGE),
        (OURS, is_not(ALERTNAME, Kind.UNMEASURED), _TICKET),
        scope,
    )


def _unmeasured(scope: tuple[str, ...]) -> Iterator[Inhibition]:
    """Tickets that rest on what was not measured; never a page, which had its data."""
    unmeasured = is_any(ALERTNAME, [Kind.UNMEASURED])
    yield Inhibition(
        "requests that do not finish are not measured either",
        (is_any(ALERTNAME, [Kind.STALLED]), _PAGE),
        (unmeasured, _TICKET),
        scope,
    )
    of_clock = (is_any(ALERTNAME, _OF_WHAT_IS_SEEN), _TICKET)
    for clock in Clock:
        named = begins(OBJECTIVE_LABEL, f"{clock}_")
        why = f"{clock.upper()} was not measured"
        yield Inhibition(why, (unmeasured, named), (*of_clock, named), scope)
    for named in (is_any(OBJECTIVE_LABEL, ["completion"]), begins(OBJECTIVE_LABEL, "e2e_")):
        consistency = (is_any(ALERTNAME, [Kind.CONSISTENCY]), _TICKET)
        yield Inhibition("E2E was not measured", (unmeasured, named), consistency, scope)


def _wider_over_narrower(slos: Sequence[Slo]) -> Iterator[Inhibition]:
    """What the whole gateway has, each model of it has; told once, for the gateway.

    Only the same alert of the same objective and window, to the same team, is muted: a model
    that breaks down while the gateway burns slowly is told, and so is each team.
    """
    same = (ALERTNAME, SEVERITY_LABEL, OBJECTIVE_LABEL, LONG_LABEL, TEAM_LABEL)
    alike: dict[_Scope, list[Slo]] = {}
    for slo in slos:
        alike.setdefault(_scope(slo), []).append(slo)
    below: dict[_Scope, list[str]] = {}
    for narrow, its in alike.items():
        for scope in _wider_scopes(narrow):
            if scope in alike:
                below.setdefault(scope, []).extend(slo.name for slo in its)
    for wide in slos:
        if names := below.get(_scope(wide)):
            yield Inhibition(
                f"{wide.name} is the wider",
                (OURS, is_any(SLO_LABEL, [wide.name])),
                (OURS, is_any(SLO_LABEL, names)),
                (*same, *wide.by),
            )


@dataclass(frozen=True)
class _Scope:
    """Which requests an SLO is about, which of them it tells apart, and where from."""

    select: frozenset[tuple[str, str]]
    by: frozenset[str]
    vantage: str


def _scope(slo: Slo) -> _Scope:
    return _Scope(frozenset(slo.select.items()), frozenset(slo.by), slo.vantage)


def _wider_scopes(narrow: _Scope) -> Iterator[_Scope]:
    """Those that hold every request of it, tell no more of them apart and stand no deeper.

    There are few, and thousands of SLOs: so they are listed, not each SLO held to each.
    """
    outside = _OUTSIDE_IN[: _OUTSIDE_IN.index(narrow.vantage) + 1]
    for select, by, vantage in product(_subsets(narrow.select), _subsets(narrow.by), outside):
        wide = _Scope(frozenset(select), frozenset(by), vantage)
        if wide != narrow:
            yield wide


def _subsets(items: frozenset[_Item]) -> Iterator[tuple[_Item, ...]]:
    return chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))


def _all_match(matchers: Iterable[Matcher], labels: Labels) -> bool:
    return all(matcher.matches(labels) for matcher in matchers)
