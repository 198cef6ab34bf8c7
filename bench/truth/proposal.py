"""The SLOs that `tailburn slo suggest` would propose from a healthy time, as it passes by."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.app.planning.proposing import RAISED_BY, proposed, told_by_minutes, told_by_replay
from tailburn.engine.backtest.fired import Fired
from tailburn.engine.backtest.lasting import Waiting, lasting
from tailburn.engine.backtest.minutes import added_up, columns_for, count, counts_of
from tailburn.engine.evaluation.quantiles import BOUNDS_S
from tailburn.engine.evaluation.shares import Share
from tailburn.engine.rollup import MINUTE_NS, fold
from tailburn.engine.schema import REQUESTS, ROLLUPS
from tailburn.engine.slo.model import Clock, Slo, Tier, objectives
from tailburn.engine.suggest.proposal import HEADROOM
from tailburn.engine.suggest.quiet import Alerts, Chosen, Wanted, quiet
from tailburn.engine.suggest.seen import Seen
from tailburn.rules.alerting import Kind
from tailburn.rules.alerts import tier
from tailburn.rules.recording.percentiles import WINDOW_S

WANTED: Final = Wanted(("model", "request_type"), "gateway", HEADROOM)
TRIED_NS: Final = 7 * 86_400 * 10**9
"""So much of what was seen last a proposal is tried on: peaks come on weekdays."""
REPLAYED: Final = (Kind.TIER,)
"""Alerts that give room and that minutes of counts do not tell: critical percentiles."""
_ROWS_AT_ONCE: Final = 300_000
_BUCKET_WIDTH: Final = float(BOUNDS_S[1] / BOUNDS_S[0])
_KEPT: Final = (
    "received_ns", "version", "tombstone", "outcome", "http_status", "streamed", "output_tokens",
    "weight", *WANTED.by, "ttft_gateway_s", "tpot_gateway_s", "e2e_gateway_s",
)  # fmt: skip


@dataclass(frozen=True)
class Lately:
    """Rows of REQUESTS in order of time, with the columns that SLOs need."""

    parts: tuple[pa.Table, ...] = ()
    left_out: tuple[tuple[int, int], ...] = ()

    def with_more(self, rows: pa.Table) -> "Lately":
        """With those, without what is older than a week before them."""
        oldest_ns = int(rows["received_ns"][-1].as_py()) - TRIED_NS
        return Lately((*self.after(oldest_ns).parts, rows.select(list(_KEPT))))

    def after(self, oldest_ns: int) -> "Lately":
        """Without parts that ended before."""
        return Lately(tuple(p for p in self.parts if p["received_ns"][-1].as_py() >= oldest_ns))

    @property
    def since_ns(self) -> int:
        return int(self.parts[0]["received_ns"][0].as_py()) // MINUTE_NS * MINUTE_NS

    @property
    def until_ns(self) -> int:
        return (int(self.parts[-1]["received_ns"][-1].as_py()) // MINUTE_NS + 1) * MINUTE_NS

    def rows(self, columns: Sequence[str], doing: str) -> Iterator[pa.Table]:
        """Many at once; what no row has is null."""
        for some in self._pieces():
            part = pa.concat_tables(some).unify_dictionaries().combine_chunks()
            nothing = {c: pa.nulls(len(part), REQUESTS.field(c).type) for c in columns}
            there = {c: part[c] for c in columns if c in part.column_names}
            yield pa.table(nothing | there)

    def _pieces(self) -> Iterator[list[pa.Table]]:
        piece: list[pa.Table] = []
        for part in self.parts:
            if sum(map(len, piece)) + len(part) > _ROWS_AT_ONCE and piece:
                yield piece
                piece = []
            piece.append(part)
        yield piece

    def rollups(self, since_ns: int, until_ns: int, clocks: Sequence[str]) -> pa.Table:
        """ROLLUPS of some clocks, folded when they are asked for."""
        within = Lately(tuple(p for p in self._within(since_ns, until_ns) if len(p)))
        found = [fold(rows) for rows in within.rows(REQUESTS.names, "")]
        every = pa.concat_tables([ROLLUPS.empty_table(), *found])
        return every.filter(pc.is_in(every["clock"], pa.array(clocks, pa.string())))

    def _within(self, since_ns: int, until_ns: int) -> Iterator[pa.Table]:
        for part in self.parts:
            first, last = np.searchsorted(part["received_ns"].to_numpy(), [since_ns, until_ns])
            yield part.slice(first, last - first)


class Healthy:
    """What was seen of healthy requests: all of it as histograms, the last week as rows."""

    def __init__(self) -> None:
        self._seen = Seen(WANTED.by, WANTED.vantage)
        self.last = Lately()

    def take(self, rows: pa.Table) -> None:
        """Rows of REQUESTS, in order of time."""
        if len(rows):
            self._seen.take(rows)
            self.last = self.last.with_more(rows)

    def slos(self) -> tuple[Slo, ...]:
        """One for each class that is not too thin, with room enough to fire nothing."""
        if not self.last.parts:
            return ()
        found = proposed(self._seen, self.last, WANTED, {}, self._replayed())
        return tuple(proposal.slo for proposal in found.quiet.proposals)

    def tried(self) -> None:
        """Try proposals on what was seen last, though it may be too thin: for what it costs."""
        chosen = [
            Chosen(one, f"slo-{i}", dict(zip(WANTED.by, one.values, strict=True)))
            for i, one in enumerate(self._seen.classes())
        ]
        quiet(self.last, WANTED, chosen, told_by_minutes, self._replayed(), RAISED_BY)

    def _replayed(self) -> Alerts:
        replayed = told_by_replay(self.last, "", REPLAYED)

        def fired(slos: Sequence[Slo], minutes: pa.Table) -> tuple[Fired, ...]:
            suspected = near_critical(self.last, slos)
            return replayed([slo for slo in slos if slo.name in suspected], minutes)

        return fired


def near_critical(time: Lately, slos: Sequence[Slo]) -> set[str]:
    """SLOs of which a median was within a bucket of critical for as long as its page waits.

    Others need no replay: a critical p95 is past acceptable, which minutes of counts have told.
    """
    drafts = [replace(slo, clocks=dict(_near_medians(slo)), goodput_ratio=None) for slo in slos]
    counted = added_up([count(rows, drafts) for rows in time.rows(columns_for(drafts), "")])
    waiting = Waiting(Share(WINDOW_S, 0.5, or_equal=True), tier.FOR_S)
    waits = {(d.name, objective.name): waiting for d in drafts for objective in objectives(d)}
    counts = counts_of(counted, drafts, time.since_ns, time.until_ns)
    return {name for name, _ in lasting(counts, waits)}


def _near_medians(slo: Slo) -> Iterator[tuple[Clock, dict[Tier, dict[str, float]]]]:
    """Each critical median, less the width of a bucket, as if nine in ten must meet it."""
    for clock, tiers in slo.clocks.items():
        median_s = tiers.get(Tier.CRITICAL, {}).get("p50")
        if median_s is not None:
            yield clock, {Tier.ACCEPTABLE: {"p90": median_s / _BUCKET_WIDTH}}
