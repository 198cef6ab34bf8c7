"""From a healthy stretch of a store to documents of SLOs that fire nothing in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tailburn.app.errors import UserError
from tailburn.app.planning.stored import Stretch
from tailburn.engine.backtest.firing import Fired, episodes, fired
from tailburn.engine.backtest.minutes import Counts, added_up, columns_for, count, counts_of
from tailburn.engine.intervals import Bounds, rate
from tailburn.engine.names import DIMENSIONS, UNKNOWN
from tailburn.engine.problems import nearest
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Kind
from tailburn.engine.slo.verdicts import NEEDED_COLUMNS, clock_column
from tailburn.engine.suggest.proposal import (
    Proposal,
    Thin,
    Vantage,
    lever_of,
    names_of,
    propose,
    thin,
    with_goodput,
)
from tailburn.engine.suggest.seen import CLOCKS, Class, Seen
from tailburn.engine.suggest.writing import MONTH_DAYS, Forecast, Rested, document

MOST_STEPS: Final = 10
APART_NS: Final = 5 * 60 * 1_000_000_000
_DAY_NS: Final = 86_400_000_000_000


@dataclass(frozen=True)
class Wanted:
    """What is asked for."""

    by: tuple[str, ...]
    vantage: Vantage
    headroom: float


@dataclass(frozen=True)
class Suggested:
    """Documents by name, and the classes that are too thin for one."""

    documents: tuple[tuple[str, str], ...]
    proposals: tuple[Proposal, ...]
    forecasts: tuple[Forecast, ...]
    thin: tuple[tuple[Mapping[str, str], Thin], ...]


def suggest(stretch: Stretch, wanted: Wanted) -> Suggested:
    """An SLO for every class that is not too thin, that fires nothing in the stretch if it can."""
    seen = _seen(stretch, wanted)
    classes = list(seen.classes())
    told = _told(wanted.by, classes)
    names = names_of([tuple(_select(wanted.by, told, c).values()) for c in classes], UNKNOWN)
    enough, too_thin = [], []
    for one, name in zip(classes, names, strict=True):
        select = {**_dimensions(stretch.where), **_select(wanted.by, told, one)}
        found = thin(one)
        if found is None:
            enough.append((one, name, select))
        else:
            too_thin.append((select, found))
    proposals, alerts = _quiet(stretch, wanted, enough) if enough else ([], {})
    days = sum(end - begin for begin, end in stretch.spans) / _DAY_NS
    forecasts = tuple(_forecast(alerts.get(p.slo.name, ()), days, stretch) for p in proposals)
    rested = Rested(stretch.since_ns, stretch.until_ns, stretch.hours, stretch.left_out)
    documents = tuple(
        (p.slo.name, document(p, f, rested, wanted.headroom))
        for p, f in zip(proposals, forecasts, strict=True)
    )
    return Suggested(documents, tuple(proposals), forecasts, tuple(too_thin))


def checked_by(text: str) -> tuple[str, ...]:
    """Dimensions as typed. Raises UserError for one that is none."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in DIMENSIONS:
            raise UserError(
                f"--by {name!r}: is no dimension{nearest(name, DIMENSIONS)}; want some of "
                + ", ".join(DIMENSIONS)
            )
    return names


def _seen(stretch: Stretch, wanted: Wanted) -> Seen:
    clocks = [clock_column(clock, wanted.vantage) for clock in CLOCKS]
    seen = Seen(wanted.by, wanted.vantage)
    for rows in stretch.rows([*NEEDED_COLUMNS, *clocks, *wanted.by], "reading what was healthy"):
        seen.take(rows)
    if next(seen.classes(), None) is None:
        raise UserError("no data: nothing in that time fits")
    return seen


def _told(by: Sequence[str], classes: Sequence[Class]) -> set[str]:
    """Dimensions of which any class has a value that is known."""
    return {name for i, name in enumerate(by) if any(c.values[i] != UNKNOWN for c in classes)}


def _select(by: Sequence[str], told: set[str], one: Class) -> dict[str, str]:
    return {name: value for name, value in zip(by, one.values, strict=True) if name in told}


def _dimensions(where: Mapping[str, str]) -> dict[str, str]:
    if unknown := [name for name in where if name not in DIMENSIONS]:
        raise UserError(
            f"--where {unknown[0]}={where[unknown[0]]}: an SLO selects by dimensions; want one of "
            + ", ".join(DIMENSIONS)
        )
    return dict(where)


Chosen = tuple[Class, str, dict[str, str]]


def _quiet(
    stretch: Stretch, wanted: Wanted, classes: Sequence[Chosen]
) -> tuple[list[Proposal], dict[str, list[Fired]]]:
    """Proposals with as much room as it takes for none to fire, and what fires all the same."""
    raised: dict[str, dict[str, int]] = {name: {} for _, name, _ in classes}
    while True:
        proposals = [
            propose(one, name, select, wanted.vantage, wanted.headroom, raised[name])
            for one, name, select in classes
        ]
        proposals, alerts = _judged(stretch, proposals)
        firing = {
            (name, lever)
            for name, found in alerts.items()
            for lever in map(lever_of, {each.objective for each in found})
            if raised[name].get(lever, 0) < MOST_STEPS
        }
        if not firing:
            return proposals, alerts
        for name, lever in firing:
            raised[name][lever] = raised[name].get(lever, 0) + 1


def _judged(
    stretch: Stretch, proposals: Sequence[Proposal]
) -> tuple[list[Proposal], dict[str, list[Fired]]]:
    """The proposals with their goodput, and what they would have fired."""
    slos = [proposal.slo for proposal in proposals]
    parts = [count(rows, slos) for rows in stretch.rows(columns_for(slos), "trying the proposal")]
    minutes = added_up(parts)
    budgets = list(counts_of(minutes, slos, stretch.since_ns, stretch.until_ns))
    whole = [_with_goodput(proposal, budgets) for proposal in proposals]
    ours = {proposal.slo.name: proposal.slo for proposal in whole}
    again = [found for each in budgets if (found := each.under(ours[each.slo.name]))]
    alerts: dict[str, list[Fired]] = {}
    for each in fired(again, stretch.left_out):
        alerts.setdefault(each.slo.name, []).append(each)
    return whole, alerts


def _with_goodput(proposal: Proposal, budgets: Sequence[Counts]) -> Proposal:
    joined = [c for c in budgets if c.slo is proposal.slo and c.objective.kind is Kind.GOODPUT]
    bad, requests = (sum(int(c.sum()) for c in each) for each in (
        [c.bad for c in joined], [c.requests for c in joined]
    ))  # fmt: skip
    return with_goodput(proposal, bad, requests)


def _forecast(alerts: Sequence[Fired], days: float, stretch: Stretch) -> Forecast:
    events = {}
    for severity in Severity:
        spans = [
            (one.start_ns, one.end_ns or stretch.until_ns)
            for one in alerts
            if one.severity is severity
        ]
        events[severity] = len(episodes(spans, APART_NS))
    a_month = {severity: _a_month(number, days) for severity, number in events.items()}
    return Forecast(days, events, a_month)


def _a_month(events: int, days: float) -> Bounds:
    found = rate(events, days / MONTH_DAYS)
    assert found is not None, "a stretch has a minute at least"
    return found
