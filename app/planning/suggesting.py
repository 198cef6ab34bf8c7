"""From a healthy stretch of a store to documents of SLOs that fire nothing in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tailburn.app.errors import UserError
from tailburn.app.planning.proposing import proposed, told_by_replay
from tailburn.app.planning.stored import Stretch
from tailburn.engine.backtest.fired import Fired
from tailburn.engine.backtest.score import calls
from tailburn.engine.intervals import Bounds, rate
from tailburn.engine.names import DIMENSIONS
from tailburn.engine.problems import nearest
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.verdicts import NEEDED_COLUMNS, clock_column
from tailburn.engine.suggest.mixed import NEEDED as MIX_COLUMNS
from tailburn.engine.suggest.proposal import MONTH_DAYS, Proposal, Thin
from tailburn.engine.suggest.quiet import Wanted
from tailburn.engine.suggest.seen import CLOCKS, Seen
from tailburn.engine.suggest.writing import Forecast, Rested, document

_DAY_NS: Final = 86_400_000_000_000


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
    alerts = told_by_replay(stretch, "running all alerts")
    made = proposed(seen, stretch, wanted, _dimensions(stretch.where), alerts)
    found = made.quiet
    days = sum(end - begin for begin, end in stretch.spans) / _DAY_NS
    forecasts = tuple(
        _forecast([f for f in found.fired if f.key.slo == p.slo.name], days, stretch.until_ns)
        for p in found.proposals
    )
    rested = Rested(stretch.since_ns, stretch.until_ns, stretch.hours, stretch.left_out)
    documents = tuple(
        (p.slo.name, document(p, f, rested, wanted.headroom))
        for p, f in zip(found.proposals, forecasts, strict=True)
    )
    return Suggested(documents, found.proposals, forecasts, made.thin)


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
    for rows in stretch.rows(
        [*NEEDED_COLUMNS, *MIX_COLUMNS, *clocks, *wanted.by], "reading what was healthy"
    ):
        seen.take(rows)
    if next(seen.classes(), None) is None:
        raise UserError("no data: nothing in that time fits")
    return seen


def _dimensions(where: Mapping[str, str]) -> dict[str, str]:
    if unknown := [name for name in where if name not in DIMENSIONS]:
        raise UserError(
            f"--where {unknown[0]}={where[unknown[0]]}: an SLO selects by dimensions; want one of "
            + ", ".join(DIMENSIONS)
        )
    return dict(where)


def _forecast(alerts: Sequence[Fired], days: float, until_ns: int) -> Forecast:
    events = {
        severity: len(calls(f.span(until_ns) for f in alerts if f.key.severity == severity))
        for severity in Severity
    }
    return Forecast(days, events, {s: _a_month(number, days) for s, number in events.items()})


def _a_month(events: int, days: float) -> Bounds:
    found = rate(events, days / MONTH_DAYS)
    assert found is not None, "a stretch has a minute at least"
    return found
