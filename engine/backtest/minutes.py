"""Verdicts of stored requests, counted by receive minute, objective and values of `by`.

As the service counts them: a request's first version, in the minute in which it closed. The
rows are those of the table `verdicts`, whether they were read from it, counted here or come
from a Prometheus.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.counted import add_up
from tailburn.engine.grouping import I64
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.schema import VERDICTS
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Clock, Objective, Slo, objectives
from tailburn.engine.slo.verdicts import (
    NEEDED_COLUMNS,
    Codes,
    Requests,
    Verdict,
    clock_column,
    counted,
    judge,
    tally,
)

_COUNTED: Final = ("requests", "bad", "unmeasured")


@dataclass(frozen=True)
class Counts:
    """One budget of one combination of `by`, minute by minute from `since_ns` on."""

    slo: Slo
    objective: Objective
    by: tuple[tuple[str, str], ...]
    since_ns: int
    requests: I64
    bad: I64
    unmeasured: I64

    def __len__(self) -> int:
        return len(self.requests)


def columns_for(slos: Sequence[Slo]) -> list[str]:
    """The columns of REQUESTS that it takes to judge by these SLOs."""
    needed = {"version", "tombstone", "received_ns", *NEEDED_COLUMNS}
    for slo in slos:
        needed |= {*slo.select, *slo.by, *(name for where in slo.exclude.where for name in where)}
        needed |= {clock_column(clock, slo.vantage) for clock in (*slo.clocks, Clock.E2E)}
    return sorted(needed)


def first_versions(rows: pa.Table) -> pa.Table:
    """What the service judged as it closed, of all versions that are kept."""
    return rows.filter(pc.equal(rows["version"], 1))


def count(rows: pa.Table, slos: Sequence[Slo]) -> pa.Table:
    """VERDICTS of rows of REQUESTS, each a first version with `columns_for(slos)`."""
    requests = Requests(rows)
    own = [Requests(rows.filter(pa.array(counted(requests, slo)))) for slo in slos]
    parts = [_of_slo(some, judge(some, slo), slo) for some, slo in zip(own, slos, strict=True)]
    return pa.concat_tables([VERDICTS.empty_table(), *parts])


def added_up(parts: Sequence[pa.Table]) -> pa.Table:
    """One row for each minute and budget: a minute may lie in two parts."""
    return add_up("verdicts", pa.concat_tables([VERDICTS.empty_table(), *parts]))


def renamed(minutes: pa.Table, drafts: Sequence[Slo], slos: Sequence[Slo]) -> pa.Table:
    """The counts of drafts as those of SLOs that differ from them in the width of budgets alone.

    What a draft promises and its SLO doesn't is left out.
    """
    parts = [VERDICTS.empty_table()]
    for draft, slo in zip(drafts, slos, strict=True):
        kept = {objective.name: objective for objective in objectives(slo)}
        for old in objectives(draft):
            if (new := kept.get(old.name)) is None:
                continue
            rows = minutes.filter(_is(minutes, draft, old))
            index = rows.schema.get_field_index("definition")
            told = pa.array([definition_of(slo, new)] * len(rows), pa.string())
            field = VERDICTS.field("definition")
            parts.append(rows.set_column(index, field, told.cast(field.type)))
    return pa.concat_tables(parts)


def _is(minutes: pa.Table, slo: Slo, objective: Objective) -> pa.ChunkedArray:
    """Which rows count an objective as it is defined now."""
    told = (slo.name, objective.name, definition_of(slo, objective))
    masks = [
        pc.equal(minutes[name].cast(pa.string()), value)
        for name, value in zip(("slo", "objective", "definition"), told, strict=True)
    ]
    return pc.and_(pc.and_(masks[0], masks[1]), masks[2])


def counts_of(
    minutes: pa.Table, slos: Sequence[Slo], since_ns: int, until_ns: int
) -> Iterator[Counts]:
    """Every budget that has any row from one whole minute until another; its minutes all there.

    Rows under another definition than the SLO's are left out: they count something else.
    """
    time = minutes["minute_ns"].to_numpy()
    chosen = minutes.filter(pa.array((time >= since_ns) & (time < until_ns)))
    length = (until_ns - since_ns) // MINUTE_NS
    for slo in slos:
        for objective in objectives(slo):
            rows = chosen.filter(_is(chosen, slo, objective))
            yield from _by_values(rows, slo, objective, since_ns, length)


def _by_values(
    rows: pa.Table, slo: Slo, objective: Objective, since_ns: int, length: int
) -> Iterator[Counts]:
    for by in sorted(set(rows["by"].to_pylist())):
        own = rows.filter(pc.equal(rows["by"], by))
        at = (own["minute_ns"].to_numpy() - since_ns) // MINUTE_NS
        dense = {}
        for name in _COUNTED:
            dense[name] = np.zeros(length, np.int64)
            np.add.at(dense[name], at, own[name].to_numpy())
        yield Counts(slo, objective, tuple(json.loads(by).items()), since_ns, **dense)


def _of_slo(requests: Requests, codes: Codes, slo: Slo) -> pa.Table:
    found = tally(requests, codes, slo, requests.minute_ns)
    counts = np.array([one.counts for one in found], np.int64)
    if not len(counts):
        return VERDICTS.empty_table()
    by = [json.dumps(dict(zip(slo.by, one.values, strict=True))) for one in found]
    parts = []
    for column, objective in enumerate(objectives(slo)):
        good, bad, unmeasured = counts[:, column, Verdict.GOOD :].T
        told = {
            "minute_ns": pa.array([one.minute_ns for one in found]),
            "slo": pa.array([slo.name] * len(by)),
            "objective": pa.array([objective.name] * len(by)),
            "definition": pa.array([definition_of(slo, objective)] * len(by)),
            "by": pa.array(by),
            "requests": pa.array(good + bad),
            "bad": pa.array(bad),
            "unmeasured": pa.array(unmeasured),
            "late": pa.array(np.zeros(len(by), np.int64)),
        }
        parts.append(pa.table(told).cast(VERDICTS))
    return pa.concat_tables(parts)
