"""What SLOs would have said of a time that is past: from a store or a Prometheus to one answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.app.errors import UserError
from tailburn.app.planning.holes import Presence
from tailburn.app.planning.replaying import Past, replay
from tailburn.app.planning.stored import Span, Stretch
from tailburn.engine.backtest.budget import budgets
from tailburn.engine.backtest.fired import Fired
from tailburn.engine.backtest.incidents import Marked
from tailburn.engine.backtest.minutes import added_up, columns_for, count, counts_of
from tailburn.engine.backtest.score import Score, score
from tailburn.engine.schema import VERDICTS
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.lateness import DEADLINE
from tailburn.engine.slo.model import Slo
from tailburn.engine.store.api import Window

WARM_NS: Final = 3 * 86_400 * 1_000_000_000
"""So far back alerts look: what is kept of it before the time is read too."""
_ACTED_ON: Final = tuple(str(severity) for severity in Severity)


@dataclass(frozen=True)
class Backtest:
    """All that is to be told of a time from `since_ns` until `until_ns`."""

    slos: tuple[Slo, ...]
    since_ns: int
    until_ns: int
    requests: int  # with any verdict; of the busiest budget
    fired: tuple[Fired, ...]
    budgets: pd.DataFrame
    holes: tuple[Span, ...]
    marked: tuple[Marked, ...]
    score: Score
    not_judged: tuple[str, ...]  # what could not be, and why


@dataclass(frozen=True)
class Counted:
    """What is known of a time, whichever way."""

    past: Past
    not_judged: tuple[str, ...] = ()
    apart: Mapping[str, Past] = field(default_factory=dict)  # by SLO, where each is known apart


def backtest(
    slos: Sequence[Slo], counted: Counted, marked: Sequence[Marked], grace_ns: int
) -> Backtest:
    """Every alert of the SLOs, minute by minute, and what it comes to. Raises UserError."""
    past = counted.past
    since_ns = past.since_ns + past.warm_ns
    if not len(past.verdicts):
        raise UserError("no data: none of these SLOs is about any request of that time")
    fired = _fired(slos, counted)
    within = tuple(m for m in marked if m.start_ns < past.until_ns and m.end_ns > since_ns)
    spans = {
        name: [one.span(past.until_ns) for one in fired if one.key.severity == name]
        for name in _ACTED_ON
    }
    found = list(counts_of(past.verdicts, slos, since_ns, past.until_ns))
    return Backtest(
        slos=tuple(slos),
        since_ns=since_ns,
        until_ns=past.until_ns,
        requests=max((int(c.requests.sum()) for c in found), default=0),
        fired=fired,
        budgets=budgets(counts_of(past.verdicts, slos, past.since_ns, past.until_ns)),
        holes=past.holes,
        marked=within,
        score=score(
            spans[Severity.PAGE], spans[Severity.TICKET], within, (since_ns, past.until_ns),
            past.holes, grace_ns,
        ),
        not_judged=counted.not_judged,
    )  # fmt: skip


def _fired(slos: Sequence[Slo], counted: Counted) -> tuple[Fired, ...]:
    if not counted.apart:
        return replay(slos, counted.past, "evaluating alerts")
    found = [
        one
        for slo in slos
        if (past := counted.apart.get(slo.name)) is not None
        for one in replay([slo], past, f"evaluating alerts of {slo.name}")
    ]
    return tuple(sorted(found, key=lambda one: (one.start_ns, one.key)))


def of_store(slos: Sequence[Slo], stretch: Stretch, since_ns: int, to_last: bool) -> Counted:
    """The requests of a stretch judged; `since_ns`: before it is only what is looked back to.

    `to_last`: it ends with the last request, not with a hole. Raises UserError for an SLO on
    a source that is not this service.
    """
    require_own(slos, "that the store does not hold")
    presence, parts = Presence(stretch.since_ns, stretch.until_ns), []
    for rows in stretch.rows(columns_for(slos), "judging requests"):
        presence.take(rows["received_ns"].to_numpy())
        parts.append(count(rows, slos))
    deadlines = _deadlines(stretch, slos)
    verdicts = added_up([*parts, deadlines])
    until_ns = presence.end_ns if to_last else stretch.until_ns
    past = Past(
        verdicts,
        stretch.rollups,
        stretch.since_ns,
        until_ns,
        presence.holes(until_ns),
        max(since_ns - stretch.since_ns, 0),
    )
    missing = ["stalled queues: gauges of requests in flight are not kept"]
    if not len(deadlines):
        missing.append("deadlines: the service counted none for these SLOs")
    return Counted(past, tuple(missing))


def require_own(slos: Sequence[Slo], which: str) -> None:
    """Raises UserError where an SLO rests on a source; `which` one, as a part of the sentence."""
    for slo in slos:
        if slo.source is not None:
            raise UserError(
                f"{slo.name}: rests on a source {which}; a backtest is of what the service counts "
                "itself"
            )


def _deadlines(stretch: Stretch, slos: Sequence[Slo]) -> pa.Table:
    """Deadlines as the service set and counted them then: they can't be had from requests."""
    found = [VERDICTS.empty_table()]
    for begin, end in stretch.spans:
        rows = stretch.store.verdicts(Window(begin, end), {"objective": DEADLINE})
        named = pc.is_in(rows["slo"].cast(pa.string()), pa.array([slo.name for slo in slos]))
        found.append(rows.filter(named))
    return pa.concat_tables(found)
