"""Learns what is usual from requests as they close, and says of each whether it was late.

What a request is held against ended before it: the load of the slots of 10 s before its own,
and cells of hours before its own. So equal requests in an equal order give equal deadlines and
cells, however they are split, and a run that goes on from `state` gives those of one that
never ended.

1. An hour begins: the cells of the last one are closed, and the lines are fitted anew.
2. The load that each request met is looked up, and the request counted to it.
3. Requests get their deadlines, and are then learnt from.

An hour in which a series was late as often as the alert has it teaches nothing of that series.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.baseline import cells as cell
from tailburn.engine.baseline.arrivals import SLOT_NS, Arrivals
from tailburn.engine.baseline.deadline import MINIMUM_COUNT, Learnt
from tailburn.engine.baseline.hits import Hits
from tailburn.engine.baseline.lateness import Lateness
from tailburn.engine.baseline.load import DAY_NS, HOUR_NS, Matched
from tailburn.engine.baseline.loads import PLACE, Loads
from tailburn.engine.baseline.pooling import series_of
from tailburn.engine.grouping import F64, I64
from tailburn.engine.names import VANTAGES
from tailburn.engine.schema import USUAL, USUAL_DIMENSIONS

KEPT_DAYS: Final = 7
CLOCKS: Final = tuple(f"{clock}_{at}_s" for clock in ("ttft", "tpot") for at in VANTAGES)
NEEDED: Final = (
    *dict.fromkeys((*USUAL_DIMENSIONS, *PLACE)),
    *CLOCKS,
    *("received_ns", "tombstone", "prompt_tokens", "cached_tokens", "output_tokens", "weight"),
)
_MERGE_ROWS: Final = 20_000

Past = Callable[[int], pa.Table]
"""Rows of USUAL of hours from one on, in ns, as they were published so far."""
DeadlineS = Mapping[str, F64]
"""For each clock of CLOCKS the deadline of each request in s; nan: none."""


@dataclass
class _Days:
    """Cells of the days kept, each day's hours added up."""

    of: dict[int, pa.Table]

    def add(self, cells: pa.Table) -> None:
        """Take in cells of closed hours."""
        day = cells.column("hour_ns").to_numpy() // DAY_NS * DAY_NS
        for one in np.unique(day).tolist():
            more = cells.filter(pa.array(day == one))
            at = cells.column_names.index("hour_ns")
            more = more.set_column(at, "hour_ns", pa.array(np.full(len(more), one)))
            parts = [self.of[one], more] if one in self.of else [more]
            self.of[one] = cell.merge(pa.concat_tables(parts), USUAL_DIMENSIONS)

    def forget(self, before_ns: int) -> None:
        self.of = {day: cells for day, cells in self.of.items() if day >= before_ns}

    def cells(self) -> pa.Table:
        tables = [self.of[day] for day in sorted(self.of)]
        return pa.concat_tables([USUAL.empty_table(), *tables])


class Usual:
    """Fed with requests in the order they close. Not safe in several threads."""

    def __init__(self, past: Past, minimum: int = MINIMUM_COUNT) -> None:
        """`past` is asked once, before the first request is judged."""
        self._past, self._minimum = past, minimum
        self._days: _Days | None = None
        self._learnt: Learnt | None = None
        self._loads = Loads()
        self._hour_ns: int | None = None
        self._open: list[pa.Table] = []
        self._open_rows = 0
        self._lateness = Lateness()
        self._closed: list[pa.Table] = []

    def take(self, requests: pa.Table) -> DeadlineS:
        """The deadline of each request, which is learnt from for later ones.

        `requests` are first versions, with the columns NEEDED. Above what was seen there is no
        deadline, since neither load nor length can be told from a fault there, nor for a model
        that only others are known of.
        """
        rows = requests.select(list(NEEDED))
        whole = {clock: np.full(len(rows), np.nan) for clock in CLOCKS}
        slot = self._loads.slots(rows.column("received_ns").to_numpy())
        hour_ns = slot * SLOT_NS // HOUR_NS * HOUR_NS
        ends = [0, *(np.flatnonzero(np.diff(hour_ns)) + 1).tolist(), len(rows)]
        for begin, end in zip(ends, ends[1:], strict=False):
            if end > begin:
                learnt = self._begin_hour(int(hour_ns[begin]))
                found = self._take_hour(rows.slice(begin, end - begin), slot[begin:end], learnt)
                for clock, deadline_s in found.items():
                    whole[clock][begin:end] = deadline_s
        return whole

    def hear(self, signals: pa.Table) -> None:
        """Rows of SIGNALS, in the order in which they and the requests came."""
        self._loads.hits.hear(signals)

    def take_rows(self) -> pa.Table:
        """Cells of the hours that closed since the last call: rows of USUAL."""
        closed, self._closed = self._closed, []
        return pa.concat_tables([USUAL.empty_table(), *closed])

    def state(self) -> dict[str, Any]:
        """All that isn't among the rows taken, as JSON can hold it."""
        return {
            "arrivals": self._loads.arrivals.state(),
            "hits": self._loads.hits.state(),
            "hour_ns": self._hour_ns,
            "lateness": self._lateness.state(),
            "open": _packed(self._merged()),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave; `past` then has the rows taken before it."""
        hits = Hits.restore(state["hits"]) if "hits" in state else Hits()
        self._loads = Loads(Arrivals.restore(state["arrivals"]), hits)
        self._hour_ns = state["hour_ns"]
        self._lateness = Lateness.restore(state["lateness"])
        self._open = [_unpacked(state["open"])]
        self._open_rows = len(self._open[0])
        self._days, self._learnt, self._closed = None, None, []

    def open_cells(self) -> pa.Table:
        """Cells of the hour that runs, so far."""
        return self._merged()

    def _take_hour(self, rows: pa.Table, slot: I64, learnt: Learnt) -> DeadlineS:
        seen = self._loads.met(rows, slot)
        series = series_of(rows, USUAL_DIMENSIONS)
        # One that ended before its first token may be late as well: no clock is left out.
        known = [clock for clock in CLOCKS if learnt.knows(clock)]
        found = {c: learnt.deadlines(rows, seen, c, series) for c in known}
        held_s = {c: deadlines.held_s for c, deadlines in found.items()}
        settled = {c: (held_s[c], deadlines.settled) for c, deadlines in found.items()}
        self._lateness.add(series, rows, settled)
        self._learn(rows, seen)
        return held_s

    def _begin_hour(self, hour_ns: int) -> Learnt:
        first_day_ns = hour_ns // DAY_NS * DAY_NS - KEPT_DAYS * DAY_NS
        if self._days is None:
            self._days = _Days({})
            self._days.add(_learnable(self._past(first_day_ns)))
        if hour_ns != self._hour_ns:
            if self._hour_ns is not None:
                self._end_hour(self._days)
            self._days.forget(first_day_ns)
            self._hour_ns, self._learnt = hour_ns, None
        if self._learnt is None:
            self._learnt = Learnt(self._days.cells(), USUAL_DIMENSIONS, self._minimum)
        return self._learnt

    def _end_hour(self, days: _Days) -> None:
        cells = self._merged()
        out = self._lateness.end_hour(cells)
        at = cells.column_names.index("left_out")
        cells = cells.set_column(at, "left_out", pa.array(out))
        self._closed.append(cells)
        days.add(_learnable(cells))
        self._open, self._open_rows = [], 0

    def _learn(self, rows: pa.Table, seen: Matched) -> None:
        more = cell.fold(rows, seen, USUAL_DIMENSIONS, CLOCKS, self._hour_ns)
        self._open.append(more)
        self._open_rows += len(more)
        if self._open_rows >= _MERGE_ROWS:
            self._open_rows = 0
            self._merged()

    def _merged(self) -> pa.Table:
        """The cells of the hour that runs."""
        if len(self._open) != 1:
            whole = pa.concat_tables([USUAL.empty_table(), *self._open])
            self._open = [cell.merge(whole, USUAL_DIMENSIONS)]
        return self._open[0]


def _learnable(cells: pa.Table) -> pa.Table:
    return cells.filter(pc.invert(cells.column("left_out")))


def _packed(cells: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, cells.schema, options=options) as writer:
        writer.write_table(cells)
    return base64.b64encode(sink.getvalue()).decode()


def _unpacked(text: str) -> pa.Table:
    table: pa.Table = pa.ipc.open_stream(base64.b64decode(text)).read_all()
    return table.unify_dictionaries()
