"""Verdicts of stored requests, counted by receive minute, objective and values of `by`.

As the service counts them: a request's first version, in the minute in which it closed. The
rows are those of the table `verdicts`, whether they were read from it, counted here or come
from a Prometheus.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.grouping import I64, distinct, text
from tailburn.engine.names import UNKNOWN
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.schema import COUNTED, VERDICTS
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Clock, Objective, Slo, objectives
from tailburn.engine.slo.verdicts import (
    NEEDED_COLUMNS,
    Codes,
    Requests,
    Verdict,
    clock_column,
    judge,
)

_COUNTED: Final = ("requests", "bad", "unmeasured")
_KEYS: Final = COUNTED["verdicts"]


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

    def under(self, slo: Slo) -> "Counts | None":
        """The same counts as those of an SLO whose budgets are others; None where it has none."""
        own = next((o for o in objectives(slo) if o.name == self.objective.name), None)
        return None if own is None else replace(self, slo=slo, objective=own)


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
    parts = [_of_slo(requests, judge(requests, slo), slo) for slo in slos]
    return pa.concat_tables([VERDICTS.empty_table(), *parts])


def added_up(parts: Sequence[pa.Table]) -> pa.Table:
    """One row for each minute and budget: a minute may lie in two parts."""
    whole = pa.concat_tables([VERDICTS.empty_table(), *parts]).unify_dictionaries()
    sums = [name for name in VERDICTS.names if name not in _KEYS]
    summed = whole.group_by(list(_KEYS)).aggregate([(name, "sum") for name in sums])
    return summed.rename_columns([*_KEYS, *sums]).select(VERDICTS.names).cast(VERDICTS)


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
            key = {
                "slo": slo.name,
                "objective": objective.name,
                "definition": definition_of(slo, objective),
            }
            mask = pc.and_(
                pc.equal(chosen["slo"], key["slo"]), pc.equal(chosen["objective"], key["objective"])
            )
            mask = pc.and_(mask, pc.equal(chosen["definition"], key["definition"]))
            yield from _by_values(chosen.filter(mask), slo, objective, since_ns, length)


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
    judged = (codes != Verdict.NONE).any(axis=1)
    if not judged.any():
        return VERDICTS.empty_table()
    rows = requests.rows.filter(pa.array(judged))
    minute = rows["received_ns"].to_numpy() // MINUTE_NS * MINUTE_NS
    values = [text(rows.column(name), UNKNOWN) for name in slo.by]
    keys, group = distinct([pa.chunked_array([minute]), *values])
    weight = requests.weight[judged]
    by = [
        json.dumps(dict(zip(slo.by, one, strict=True)))
        for one in zip(*(k.to_pylist() for k in keys[1:]), strict=True)
    ] or ["{}"] * len(keys[0])
    parts = []
    for column, objective in enumerate(objectives(slo)):
        of_kind = codes[judged, column]
        sums = {
            kind: np.bincount(group, weight * (of_kind == kind), len(keys[0])).astype(np.int64)
            for kind in (Verdict.GOOD, Verdict.BAD, Verdict.UNMEASURED)
        }
        told = {
            "minute_ns": keys[0],
            "slo": pa.array([slo.name] * len(by)),
            "objective": pa.array([objective.name] * len(by)),
            "definition": pa.array([definition_of(slo, objective)] * len(by)),
            "by": pa.array(by),
            "requests": pa.array(sums[Verdict.GOOD] + sums[Verdict.BAD]),
            "bad": pa.array(sums[Verdict.BAD]),
            "unmeasured": pa.array(sums[Verdict.UNMEASURED]),
            "late": pa.array(np.zeros(len(by), np.int64)),
        }
        parts.append(pa.table(told).cast(VERDICTS))
    return pa.concat_tables(parts)
