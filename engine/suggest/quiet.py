"""Proposals with as much room as it takes for nothing to fire in the time they were made of.

What minutes of counts tell is asked round after round, since that is quick; when nothing of it is
left, all alerts are judged, a few times at most.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa

from tailburn.engine.backtest.burning import Spans
from tailburn.engine.backtest.fired import Fired
from tailburn.engine.backtest.minutes import (
    Counts,
    added_up,
    columns_for,
    count,
    counts_of,
    renamed,
)
from tailburn.engine.schema import VERDICTS
from tailburn.engine.slo.model import Kind, Slo
from tailburn.engine.suggest.proposal import Proposal, Vantage, lever_of, propose, with_goodput
from tailburn.engine.suggest.seen import Class

MOST_STEPS: Final = 10
MOST_ROUNDS: Final = 3
"""Times that all alerts are judged."""

Quick = Callable[[Sequence[Counts], Spans], set[tuple[str, str]]]
"""SLO and objective of what would fire that minutes of counts tell, but for spans left out."""
Alerts = Callable[[Sequence[Slo], pa.Table], tuple[Fired, ...]]
"""What fires of these SLOs under these VERDICTS; of use are those that room would silence."""
Raised = Mapping[str, Mapping[str, int]]
Levers = set[tuple[str, str]]


class Time(Protocol):
    """A stretch of whole minutes whose requests can be read more than once."""

    @property
    def since_ns(self) -> int: ...

    @property
    def until_ns(self) -> int: ...

    @property
    def left_out(self) -> tuple[tuple[int, int], ...]: ...

    def rows(self, columns: Sequence[str], doing: str) -> Iterator[pa.Table]:
        """First versions of its requests, part by part; `doing` is for whoever waits."""


@dataclass(frozen=True)
class Wanted:
    """What is asked for. `by`: dimensions that tell classes apart."""

    by: tuple[str, ...]
    vantage: Vantage
    headroom: float


@dataclass(frozen=True)
class Chosen:
    """A class that is not thin, what its SLO is called and what that selects."""

    seen: Class
    name: str
    select: Mapping[str, str]


@dataclass(frozen=True)
class Quiet:
    """The proposals, and all that fires in the time in spite of the room they were given."""

    proposals: tuple[Proposal, ...]
    fired: tuple[Fired, ...]


@dataclass(frozen=True)
class _Judged:
    """A draft, its proposal with a goodput, and what the time is under it."""

    draft: Slo
    proposal: Proposal
    minutes: pa.Table  # VERDICTS
    told: set[tuple[str, str]]  # SLO and objective of what minutes of counts tell


def quiet(
    time: Time,
    wanted: Wanted,
    classes: Sequence[Chosen],
    quick: Quick,
    alerts: Alerts,
    raised_by: Sequence[str],
) -> Quiet:
    """An SLO for each class; `raised_by`: names of the alerts among `alerts` to give room to."""
    raised: dict[str, dict[str, int]] = {one.name: {} for one in classes}
    judged: dict[str, _Judged] = {}
    rounds = 0
    while True:
        drafts = [_proposed(one, wanted, raised) for one in classes]
        judged |= _judged(time, [d for d in drafts if not _is_known(d, judged)], quick)
        proposals = [judged[draft.slo.name].proposal for draft in drafts]
        levers = _with_room((told for one in judged.values() for told in one.told), raised)
        fired: tuple[Fired, ...] = ()
        if not levers:
            parts = [VERDICTS.empty_table(), *(one.minutes for one in judged.values())]
            minutes = pa.concat_tables(parts)
            fired, rounds = alerts([p.slo for p in proposals], minutes), rounds + 1
            told = {(f.key.slo, f.key.objective) for f in fired if f.key.alertname in raised_by}
            levers = _with_room(told, raised) if rounds < MOST_ROUNDS else set()
        if not levers:
            return Quiet(tuple(proposals), fired)
        for name, lever in levers:
            raised[name][lever] = raised[name].get(lever, 0) + 1


def _proposed(one: Chosen, wanted: Wanted, raised: Raised) -> Proposal:
    return propose(
        one.seen, one.name, one.select, wanted.vantage, wanted.headroom, raised[one.name]
    )


def _with_room(objectives: Iterable[tuple[str, str]], raised: Raised) -> Levers:
    """SLO and lever of those objectives that may be given another step."""
    levers = {(name, lever_of(objective)) for name, objective in objectives}
    return {(name, lever) for name, lever in levers if raised[name].get(lever, 0) < MOST_STEPS}


def _is_known(draft: Proposal, judged: Mapping[str, _Judged]) -> bool:
    return draft.slo.name in judged and judged[draft.slo.name].draft == draft.slo


def _judged(time: Time, proposals: Sequence[Proposal], quick: Quick) -> dict[str, _Judged]:
    """By name the proposals with their goodput, and the minutes of verdicts under it."""
    if not proposals:
        return {}
    drafts = [proposal.slo for proposal in proposals]
    columns = columns_for(drafts)
    minutes = added_up([count(rows, drafts) for rows in time.rows(columns, "trying the proposal")])
    budgets = list(counts_of(minutes, drafts, time.since_ns, time.until_ns))
    whole = [_with_goodput(proposal, budgets) for proposal in proposals]
    found = {}
    for draft, proposal in zip(drafts, whole, strict=True):
        own = renamed(minutes, [draft], [proposal.slo])
        counts = list(counts_of(own, [proposal.slo], time.since_ns, time.until_ns))
        found[draft.name] = _Judged(draft, proposal, own, quick(counts, time.left_out))
    return found


def _with_goodput(proposal: Proposal, budgets: Sequence[Counts]) -> Proposal:
    joined = [c for c in budgets if c.slo is proposal.slo and c.objective.kind is Kind.GOODPUT]
    bad, requests = (sum(int(part.sum()) for part in parts) for parts in (
        [c.bad for c in joined], [c.requests for c in joined]
    ))  # fmt: skip
    return with_goodput(proposal, bad, requests)
