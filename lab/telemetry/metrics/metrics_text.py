"""`/metrics` of a fleet: what each scrape of each target finds, as text and as columns.

    metrics = MetricsText(fleet, wiring, epoch_unix_ns=epoch)
    scrapes = metrics.feed(slice.attempts, slice.samples)      # in order of time
    scrapes.text(target, row)                                  # b"# HELP vllm:...", or None
    scrapes.series(("vllm:num_requests_waiting",))             # a pyarrow table

A request is told of when it is over, and its first token long before: with `hold_ns` scrapes
come out that much behind their time, so that histograms hold what had been observed by then.
Without, what comes late is counted at the next scrape. Counters begin anew with a process.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.lab.fleet import Fleet, arrays_of
from tailburn.lab.records import Attempts
from tailburn.lab.telemetry.metrics.accelerators import Dcgm, Nccl
from tailburn.lab.telemetry.metrics.boards import Board, Signals, always
from tailburn.lab.telemetry.metrics.engines import Engines
from tailburn.lab.telemetry.metrics.fronts import Gateways, Routers
from tailburn.lab.telemetry.metrics.listing import Target, targets
from tailburn.lab.telemetry.metrics.machines import Node, Turned
from tailburn.lab.telemetry.metrics.page import Line, Page, template
from tailburn.lab.telemetry.metrics.rows import Rows
from tailburn.lab.telemetry.metrics.tally import Pending, Tally
from tailburn.lab.telemetry.spans.wiring import Wiring
from tailburn.lab.world.samples import Samples

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Bounds = tuple[float, ...]
Counted = dict[tuple[str, str, Bounds], tuple[F64, F64]]
"""By kind, stream and bounds: counts and sums, as `Tally.take` has them."""

TIMEOUT_S: Final = 10.0
"""An answer later than this is none: Prometheus's default `scrape_timeout`."""
_SCHEMA: Final = pa.schema(
    [
        ("at_ns", pa.int64()),
        ("target", pa.dictionary(pa.int32(), pa.string())),
        ("metric", pa.dictionary(pa.int32(), pa.string())),
        ("labels", pa.dictionary(pa.int32(), pa.string())),
        ("value", pa.float64()),
    ]
)


class Broken(Protocol):
    """Faults of scrapes, as `lab.faults.telemetry.ScrapeFaults` has them."""

    def answers(self, target: Target, at_ns: int) -> float | None: ...
    def text(self, target: Target, at_ns: int, text: bytes) -> bytes: ...
    def touches(self, target: Target, name: str, counter: bool) -> bool: ...
    def value(
        self, target: Target, at_ns: int, name: str, labels: str, value: float, counter: bool
    ) -> float: ...


@dataclass(frozen=True)
class Scrapes:
    """What scrapes of all targets find at some instants (ns of true time since the epoch)."""

    at_ns: I64
    targets: tuple[Target, ...]
    pages: dict[str, Page]
    values: dict[str, F64]
    """By target: [scrape, series]."""
    lateness_s: dict[str, F64]
    """By target: [scrape]; NaN: it takes no connection."""
    broken: Broken | None = None

    def __len__(self) -> int:
        return len(self.at_ns)

    def rows(self, which: slice) -> "Scrapes":
        """Some of them."""
        values = {name: values[which] for name, values in self.values.items()}
        late = {name: late[which] for name, late in self.lateness_s.items()}
        return replace(self, at_ns=self.at_ns[which], values=values, lateness_s=late)

    def late_s(self, target: Target, row: int) -> float | None:
        """By how many seconds the answer is late; None: there is none."""
        late = float(self.lateness_s[target.name][row])
        if self.broken is not None and late == late:
            more = self.broken.answers(target, int(self.at_ns[row]))
            late = late + more if more is not None else float("nan")
        return late if late < TIMEOUT_S else None

    def text(self, target: Target, row: int) -> bytes | None:
        """The page of a target at a scrape; None: no answer."""
        if self.late_s(target, row) is None:
            return None
        text = self.pages[target.name].text(self.values[target.name][row])
        if self.broken is not None:
            text = self.broken.text(target, int(self.at_ns[row]), text)
        return text

    def series(self, metrics: Collection[str] | None = None) -> pa.Table:
        """Columns at_ns, target, metric, labels, value: of some names of metrics, or of all.

        `up` and `scrape_duration_seconds` are among them, as a Prometheus adds them. A scrape
        without an answer has `up` 0 and nothing else.
        """
        parts = [self._of_target(target, metrics) for target in self.targets]
        return pa.concat_tables(parts).unify_dictionaries() if parts else _SCHEMA.empty_table()

    def shown(self, target: Target, columns: Sequence[int] | None = None) -> tuple[F64, F64]:
        """Values [scrape, series] of a target as its faults have them, and how late they came.

        NaN is a series that is not there, or a scrape without an answer. `columns`: of these
        series of the page alone.
        """
        page, values = self.pages[target.name], self.values[target.name]
        chosen = list(range(len(page.series)) if columns is None else columns)
        found = [self.late_s(target, row) for row in range(len(self))]
        late = np.array([np.nan if one is None else one for one in found], np.float64)
        shown = values[:, chosen]
        shown[np.isnan(late)] = np.nan
        if self.broken is None:
            return shown, late
        for column, number in enumerate(chosen):
            one = page.series[number]
            if not self.broken.touches(target, one.name, one.counts):
                continue
            for row in np.flatnonzero(~np.isnan(shown[:, column])).tolist():
                shown[row, column] = self.broken.value(
                    target,
                    int(self.at_ns[row]),
                    one.name,
                    one.labels,
                    shown[row, column],
                    one.counts,
                )
        return shown, late

    def _of_target(self, target: Target, metrics: Collection[str] | None) -> pa.Table:
        page = self.pages[target.name]
        chosen = [
            i for i, s in enumerate(page.series)
            if metrics is None or s.name in metrics or s.family in metrics
        ]  # fmt: skip
        names = [page.series[i].name for i in chosen]
        labels = [page.series[i].labels for i in chosen]
        shown, late = self.shown(target, chosen)
        for name, values in of_scrape(late).items():
            if metrics is None or name in metrics:
                names, labels = [*names, name], [*labels, ""]
                shown = np.column_stack([shown, values])
        row, column = np.nonzero(~np.isnan(shown))
        return pa.table(
            [
                pa.array(self.at_ns[row]),
                _dictionary([target.name], np.zeros(len(row), np.int32)),
                _dictionary(names, column),
                _dictionary(labels, column),
                pa.array(shown[row, column]),
            ],
            schema=_SCHEMA,
        )


def of_scrape(late_s: F64) -> dict[str, F64]:
    """What a Prometheus adds of each scrape; `late_s` NaN: there was no answer."""
    there = ~np.isnan(late_s)
    took = np.where(there, late_s, TIMEOUT_S)
    return {"up": there.astype(np.float64), "scrape_duration_seconds": took}


def _dictionary(values: list[str], indices: "NDArray[np.integer]") -> pa.DictionaryArray:
    """A column of texts, each kept once."""
    known = list(dict.fromkeys(values))
    at = {value: i for i, value in enumerate(known)}
    code = np.array([at[value] for value in values] or [0], np.int32)
    found = code[indices] if len(indices) else np.empty(0, np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(found, pa.int32()), pa.array(known, pa.string()))


class MetricsText:
    """All targets of a fleet. `feed` takes what happened, in order of time."""

    def __init__(
        self,
        fleet: Fleet,
        wiring: Wiring,
        *,
        epoch_unix_ns: int = 0,
        hold_ns: int = 0,
        broken: Broken | None = None,
        turns: Iterable[Turned] = (),
    ) -> None:
        """`turns`: the knobs that will be turned, of which `release` shows in a pod's image."""
        self.targets = targets(fleet, wiring)
        self.broken = broken
        self._epoch, self._hold = epoch_unix_ns, hold_ns
        arrays = arrays_of(fleet)
        self._engines = Engines(fleet, arrays)
        self._boards: dict[str, Board] = {
            "engine": self._engines,
            "gateway": Gateways(fleet, arrays),
            "router": Routers(fleet, arrays),
            "dcgm": Dcgm(fleet, arrays),
            "nccl": Nccl(fleet, arrays),
            "node": Node(fleet, arrays, turns),
        }
        self._pages = {t.name: Page(template(*t.pages), t.variables) for t in self.targets}
        self._sizes = {
            "engine": len(fleet.replicas),
            "gateway": len(fleet.gateways),
            "router": len(fleet.pools),
        }
        sizes = np.array([len(pool.replicas) for pool in fleet.pools])
        self._each = [
            slice(int(end - size), int(end))
            for end, size in zip(np.cumsum(sizes), sizes, strict=True)
        ]
        self._replicas = len(fleet.replicas)
        self._tallies = self._wanted()
        self._pending = {key: Pending() for key in self._tallies}
        self._waiting: list[Samples] = []
        self._before: Samples | None = None

    def _wanted(self) -> dict[tuple[str, str], dict[Bounds, Tally]]:
        """By kind and stream, a tally for each bounds that any page counts it into."""
        found: dict[tuple[str, str], dict[Bounds, Tally]] = {}
        for target in self.targets:
            size = self._sizes.get(target.kind, 0)
            for line in self._pages[target.name].template.lines:
                key = _stream(line)
                if key is not None:
                    stream, bounds = key
                    things = self._replicas if stream.startswith("each_") else size
                    found.setdefault((target.kind, stream), {})[bounds] = Tally(bounds, things)
        return found

    def feed(self, attempts: Attempts, samples: Samples, until_ns: int | None = None) -> Scrapes:
        """Attempts that are over and scrapes of the world since the last feed; what the scrapes
        find that are due: those up to `until_ns` (None: the last sample) less `hold_ns`."""
        for kind, board in self._boards.items():
            for name, seen in board.observe(attempts):
                if (kind, name) in self._pending:
                    self._pending[kind, name].add(seen)
        if len(samples):
            self._waiting.append(samples)
        if not self._waiting:
            return self._scraped(samples)
        waiting = Samples.join(self._waiting)
        until = int(waiting.at_ns[-1]) if until_ns is None else until_ns
        cut = int(np.searchsorted(waiting.at_ns, until - self._hold, "right"))
        return self._cut(waiting, cut)

    def finish(self) -> Scrapes:
        """The scrapes that are still held back, at the end of a run."""
        if not self._waiting:
            raise ValueError("nothing was fed")
        waiting = Samples.join(self._waiting)
        return self._cut(waiting, len(waiting))

    def _cut(self, waiting: Samples, cut: int) -> Scrapes:
        due = waiting.rows(slice(0, cut))
        scrapes = self._scraped(due)
        self._waiting = [waiting.rows(slice(cut, None))]
        if cut:
            self._before = due.rows(slice(cut - 1, cut))
        return scrapes

    def _scraped(self, samples: Samples) -> Scrapes:
        rows = Rows(samples, self._before, self._epoch)
        values: dict[str, F64] = {}
        late: dict[str, F64] = {}
        signals: dict[str, Signals] = {}
        lateness: dict[str, F64] = {}
        counted: Counted = {}
        if len(samples):
            for name, seen in self._engines.stepped(rows):
                if ("engine", name) in self._pending:
                    self._pending["engine", name].add(seen)
            signals = {kind: board.signals(rows) for kind, board in self._boards.items()}
            lateness = {kind: board.late_s(rows) for kind, board in self._boards.items()}
            counted = self._counted(rows)
        for target in self.targets:
            page = self._pages[target.name]
            if not len(samples):
                values[target.name] = np.empty((0, len(page.series)))
                late[target.name] = np.empty(0)
                continue
            find = self._finder(target, signals[target.kind], counted)
            values[target.name] = page.values(find, self._counter(target, counted), len(samples))
            late[target.name] = lateness[target.kind][:, target.index]
        return Scrapes(samples.at_ns, self.targets, self._pages, values, late, self.broken)

    def _counted(self, rows: Rows) -> Counted:
        found: Counted = {}
        at, last = rows.samples.at_ns, int(rows.samples.at_ns[-1])
        begun = {kind: self._begun(board, rows) for kind, board in self._boards.items()}
        each = always(rows, self._replicas)
        of_each = each, np.zeros(each.shape, np.bool_)
        for (kind, stream), pending in self._pending.items():
            seen = pending.until(last)
            began, anew = of_each if stream.startswith("each_") else begun[kind]
            for bounds, tally in self._tallies[kind, stream].items():
                found[kind, stream, bounds] = tally.take(seen, at, began, anew)
        return found

    def _begun(self, board: Board, rows: Rows) -> tuple[I64, NDArray[np.bool_]]:
        """[scrape, target] when its process began, and whether since the scrape before."""
        began = board.began_ns(rows)
        old = began[:1]
        if self._before is not None:
            old = board.began_ns(Rows(self._before, None, self._epoch))[-1:]
        return began, np.diff(began, axis=0, prepend=old) != 0

    def _counter(self, target: Target, counted: Counted) -> Callable[[Line], tuple[F64, F64]]:
        def find(line: Line) -> tuple[F64, F64]:
            key = _stream(line)
            assert key is not None
            counts, sums = counted[(target.kind, *key)]
            which = self._which(target, key[0])
            return counts[:, which], sums[:, which]

        return find

    def _which(self, target: Target, stream: str) -> int | slice:
        if stream.startswith("each_"):
            return self._each[target.index] if target.kind == "router" else slice(None)
        return target.index

    def _finder(self, target: Target, signals: Signals, counted: Counted) -> Callable[[str], F64]:
        def find(name: str) -> F64:
            of, dot, stream = name.partition(".")
            if dot:
                counts, sums = counted[target.kind, stream, ()]
                which = self._which(target, stream)
                return sums[:, which] if of == "sum" else counts[:, which].sum(axis=-1)
            return np.asarray(signals[name][target.index], np.float64)

        return find


def _stream(line: Line) -> tuple[str, Bounds] | None:
    """What a line counts: a stream and its bounds; of `sum.NAME` and `count.NAME` no bounds."""
    if line.stream is not None:
        return line.stream
    of, dot, name = line.signal.partition(".")
    return (name, ()) if dot and of in ("sum", "count") else None
