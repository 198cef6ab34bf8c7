"""Stretches in which something alerted: what was seen then is no baseline."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.engine.grouping import text
from tailburn.engine.names import UNKNOWN

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Incident:
    """One alert that fired, from `start_ns` to `end_ns` (None: it still does).

    `where` names the rows it spoke of; a dimension not in it means all of its values.
    """

    start_ns: int
    end_ns: int | None
    reason: str
    where: Mapping[str, str] = field(default_factory=dict)

    def overlaps(self, since_ns: int, until_ns: int) -> bool:
        """Whether it fired at some instant of [since, until)."""
        goes_on = self.end_ns is None or self.end_ns >= since_ns
        return self.start_ns < until_ns and goes_on


def within(incidents: Iterable[Incident], since_ns: int, until_ns: int) -> list[Incident]:
    """Those that fired in [since, until)."""
    return [incident for incident in incidents if incident.overlaps(since_ns, until_ns)]


def rows_of(incident: Incident, table: pa.Table) -> Bools:
    """Which rows of a table with dimensions an incident spoke of, whenever they were.

    A dimension that the table doesn't have can't tell its rows apart: it is as if not named.
    """
    hit = np.ones(len(table), np.bool_)
    for name, value in incident.where.items():
        if name in table.column_names:
            same = pc.equal(text(table.column(name), UNKNOWN).cast(pa.string()), value)
            hit &= same.to_numpy()
    return hit
