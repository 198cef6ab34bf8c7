"""Rows beside the truth, chain by chain: right within the clock error they state, or null.

What a stack's spans cannot tell must be null: `knows` holds what each can, and how exactly.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.captures.checks import Check, equal, every
from bench.lab.ear.chains import NONE
from bench.lab.ear.feeding import HOUR_NS, Fed
from bench.lab.ear.knows import EARLY_NS, Knows, Row, knows
from bench.lab.ear.truth import Truth, truths
from tailburn.engine.names import ttft_hop_column
from tailburn.lab.telemetry.spans import trace_ids, try_trace_ids

MOST: Final = 0.98
"""Of requests whose spans were lost in part, those that must be right or null. The rest are
what nothing betrays: a hop that is lost whole, with no child left behind."""


@dataclass(frozen=True)
class Verdict:
    """What the judge says of one chain."""

    name: str
    requests: int
    found: int
    extra: int
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


@dataclass(frozen=True)
class _Told:
    """A request, what was true of it, and the rows of its trace."""

    truth: Truth
    trace: str
    rows: Sequence[Row]

    @property
    def key(self) -> str:
        return f"request {self.truth.request}"


def judge(fed: Fed, rows: Iterable[Row], *, whole: bool = True, how: str = "") -> Verdict:
    """The rows of one chain; `whole`: no span was lost on the way, `how` it was broken."""
    mine = [r for r in rows if 0 <= _begun_ns(r) - fed.epoch_ns + EARLY_NS < HOUR_NS]
    told = _matched(fed, mine)
    found = [t for t in told if t.rows]
    known = knows(fed.chain)
    taken = {id(row) for t in told for row in t.rows}
    strays = [r for r in mine if id(r) not in taken]
    checks = [
        equal("bodies refused, spans rejected", (0, 0), _refused(fed)),
        *_found(told, known, strays, fed.arrived, whole),
        *_outcomes(found, known, whole),
        *(_attempts(found, known) if whole else ()),
        *_clocks(found, known, whole),
        *_shares(found, known, whole),
    ]
    name = f"{fed.chain.name}, {how}" if how else fed.chain.name
    return Verdict(name, len(told), len(found), len(mine) - len(found), tuple(checks))


def _begun_ns(row: Row) -> int:
    """A row of which no vantage is known has no start, but came at a time."""
    begun = row["start_ns"] or row["received_ns"]
    return int(begun)


def _refused(fed: Fed) -> tuple[int, int]:
    return fed.sent.refused_bodies, fed.sent.rejected_spans


def _matched(fed: Fed, rows: Iterable[Row]) -> list[_Told]:
    by_trace: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_trace[row["trace_id"]].append(row)
    attempts = fed.scene.attempts
    every_truth = list(truths(attempts))
    last = np.asarray([t.last for t in every_truth])
    if fed.chain.client == NONE:
        traces = try_trace_ids(attempts.take(last), fed.seed)
    else:
        traces = trace_ids(attempts.request[last], fed.seed)
    return [_Told(t, i, by_trace[i]) for t, i in zip(every_truth, traces, strict=True)]


def _found(
    told: Sequence[_Told],
    known: Knows,
    strays: Sequence[Row],
    arrived: frozenset[str],
    whole: bool,
) -> Iterator[Check]:
    seen = [t for t in told if (known.told(t.truth) if whole else t.trace in arrived)]
    yield every("a row for every request", len(seen), [t.key for t in seen if not t.rows])
    if not whole:
        return
    double = [t.key for t in seen if len(t.rows) > 1 and not known.rootless(t.truth)]
    yield every("one row a request", len(seen), double)
    if not known.cut:
        yield equal("no row beyond them", 0, 0 if known.client == NONE else len(strays))


def _outcomes(told: Sequence[_Told], known: Knows, whole: bool) -> Iterator[Check]:
    healthy, wrong = [], []
    for t in told:
        for row in t.rows:
            if row["outcome"] == "ok" and t.truth.outcome != "ok" and t.truth.once:
                healthy.append(f"{t.key}: {t.truth.outcome}")
        if len(t.rows) == 1 and t.rows[0]["outcome"] not in known.outcomes(t.truth):
            wrong.append(f"{t.key}: {t.truth.outcome}, got {t.rows[0]['outcome']}")
    yield every("none that failed or was left is called healthy", len(told), healthy,
                1.0 if whole else 0.99)  # fmt: skip
    if whole:
        yield every("outcomes", len(told), wrong)


def _attempts(told: Sequence[_Told], known: Knows) -> Iterator[Check]:
    if known.client == NONE:
        return
    one = [t for t in told if len(t.rows) == 1 and not known.rootless(t.truth)]
    wrong = [
        f"{t.key}: {len(t.truth.tries)}, got {t.rows[0]['attempts']}"
        for t in one
        if t.rows[0]["attempts"] != len(t.truth.tries)
    ]
    yield every("retries and hedges are attempts", len(one), wrong)
    if known.hedges:
        wrong = [t.key for t in one if t.rows[0]["hedged"] != t.truth.hedged]
        yield every("hedges", len(one), wrong)


def _clocks(told: Sequence[_Told], known: Knows, whole: bool) -> Iterator[Check]:
    """Of requests tried once that came to a good end: each clock right or null, as it is known."""
    well = [t for t in told if t.truth.once and t.truth.outcome == "ok"]
    for column in known.clocks:
        if not whole and known.halved(column):
            continue
        # Only a split request's engines are several hosts within one vantage.
        slack = _slack if known.chain.split and "engine" in column else _none
        wrong, total = [], 0
        for t in well:
            truth = known.truth(column, t.truth)
            for row in t.rows:
                total += 1
                may = known.exactness(column, t.truth, None if whole else row)
                got = row[column]
                if got is None:
                    if whole and may is not None and truth is not None and not may.or_null:
                        wrong.append(f"{t.key}: want {truth:.6f}, got null")
                    continue
                if may is None or truth is None:
                    wrong.append(f"{t.key}: want null, got {got:.6f}")
                elif not -may.early_s - slack(row) <= got - truth <= may.late_s + slack(row):
                    wrong.append(f"{t.key}: want {truth:.6f}, got {got:.6f}")
        yield every(f"{column}", total, wrong, 1.0 if whole else MOST)


def _slack(row: Row) -> float:
    """The clock error that the row states, twice: there and back. Null: it may be any."""
    half = row["clock_offset_half_width_s"]
    return math.inf if half is None else 2 * half


def _none(_: Row) -> float:
    return 0.0


def _shares(told: Sequence[_Told], known: Knows, whole: bool) -> Iterator[Check]:
    """Where the time to the first token went, by groups of hops that the stacks can tell apart."""
    well = [t for t in told if t.truth.ttft_hops]
    for name, group in known.groups:
        if not whole and known.halved(name):
            continue
        wrong, total = [], 0
        for t in well:
            truth = sum(t.truth.ttft_hops.get(hop, 0.0) for hop in group.truth)
            for row in t.rows:
                total += 1
                got = sum(row.get(ttft_hop_column(hop)) or 0.0 for hop in group.row)
                slack = group.within_s + _slack(row)
                if not whole and known.until_first_message(name, row):
                    continue
                early = truth - got > slack and whole and not group.at_most
                if early or got - truth > slack:
                    wrong.append(f"{t.key}: want {truth:.6f}, got {got:.6f}")
        yield every(f"TTFT in {name}", total, wrong, 1.0 if whole else MOST)
    if whole and not known.cut and known.client != NONE:
        unsure = [t.key for t in well if _slack(t.rows[0]) == math.inf]
        yield every("clock error stated", len(well), unsure, 0.0 if known.chain.split else 0.95)
