"""Spans wait in their process for its batch processor, and go out in bodies.

As the SDKs do it: every five seconds what is there, at once when 512 wait. A body is under
way for some milliseconds. A span that comes to be known too late for its batch rides on the
next one.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.telemetry.spans import ids
from tailburn.lab.telemetry.spans.flow import I64, Block
from tailburn.lab.telemetry.spans.ids import U64
from tailburn.lab.telemetry.spans.wiring import Export


@dataclass
class Columns:
    """Spans of many kinds; span i's slots begin at `slot_at[i]`."""

    kind: NDArray[np.int32]
    process: NDArray[np.int32]
    scope: NDArray[np.int32]
    trace: U64
    span: U64
    parent: U64
    start: I64
    end: I64
    flags: NDArray[np.int32]
    status: NDArray[np.int32]
    slot_at: I64
    width: I64
    slots: I64

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def of(cls, blocks: list[Block], number: dict[int, tuple[int, int]]) -> "Columns":
        """Blocks below each other; `number` gives kind and scope of `id(kind)`."""
        sizes = [len(b.span) for b in blocks]
        widths = [b.slots.shape[1] for b in blocks]
        width = np.repeat(np.asarray(widths, np.int64), sizes)
        return cls(
            kind=np.repeat(np.asarray([number[id(b.kind)][0] for b in blocks], np.int32), sizes),
            process=np.concatenate([b.process for b in blocks]),
            scope=np.repeat(np.asarray([number[id(b.kind)][1] for b in blocks], np.int32), sizes),
            trace=np.concatenate([b.trace for b in blocks]),
            span=np.concatenate([b.span for b in blocks]),
            parent=np.concatenate([b.parent for b in blocks]),
            start=np.concatenate([b.start for b in blocks]),
            end=np.concatenate([b.end for b in blocks]),
            flags=np.concatenate([b.flags for b in blocks]),
            status=np.concatenate([b.status for b in blocks]),
            slot_at=np.cumsum(width) - width,
            width=width,
            slots=np.concatenate([b.slots.ravel() for b in blocks]),
        )

    def take(self, rows: I64) -> "Columns":
        """Some spans, with their slots."""
        width = self.width[rows]
        begun = np.cumsum(width) - width
        where = np.repeat(self.slot_at[rows] - begun, width) + np.arange(int(width.sum()))
        picked = {
            f.name: getattr(self, f.name)[rows]
            for f in fields(self)
            if f.name not in ("slot_at", "slots")
        }
        return Columns(**picked, slot_at=begun, slots=self.slots[where])

    @classmethod
    def join(cls, one: "Columns", other: "Columns") -> "Columns":
        both = {
            f.name: np.concatenate([getattr(one, f.name), getattr(other, f.name)])
            for f in fields(cls)
        }
        both["slot_at"][len(one) :] += len(one.slots)
        return cls(**both)


@dataclass(frozen=True)
class Batches:
    """Bodies to be: body i holds spans `order[first[i]:first[i + 1]]`, of one process."""

    order: I64
    first: I64
    process: NDArray[np.int32]
    arrival: I64


class Batcher:
    """The batch processors of all processes."""

    def __init__(self, processes: int, export: Export, seed: int) -> None:
        self._export = export
        self._seed = ids.mix(np.uint64(seed))
        every = np.arange(processes).astype(np.uint64)
        phase = ids.chance(ids.mix(every ^ self._seed), "export phase")
        self._phase = (phase * export.period_ns).astype(np.int64)
        self._sent_ns = np.full(processes, -(1 << 62), np.int64)

    def take(self, spans: Columns, until_ns: int) -> tuple[Batches, I64]:
        """What leaves by `until_ns`, and the spans that stay."""
        export, process = self._export, spans.process
        ended = np.maximum(spans.end, self._sent_ns[process] + 1)
        order = np.lexsort((ended, process))
        process, ended = process[order], ended[order]
        phase = self._phase[process]
        due = phase + ((ended - phase) // export.period_ns + 1) * export.period_ns
        new = np.ones(len(order), np.bool_)
        new[1:] = (process[1:] != process[:-1]) | (due[1:] != due[:-1])
        group = np.cumsum(new) - 1
        begun = np.flatnonzero(new)
        place = np.arange(len(order)) - begun[group] if len(order) else group
        size = np.diff(np.append(begun, len(order)))
        whole = place // export.most_spans < (size // export.most_spans)[group]
        body = np.ones(len(order), np.bool_)
        body[1:] = new[1:] | (place[1:] % export.most_spans == 0)
        starts = np.flatnonzero(body)
        stops = np.append(starts[1:], len(order))
        leaves = np.where(whole[starts], ended[stops - 1], due[starts]) if len(order) else due
        out = leaves <= until_ns
        self._note_sent(process[starts[out]], leaves[out])
        kept = np.repeat(~out, stops - starts)
        picked = order[~kept]
        first = np.concatenate([[0], np.cumsum((stops - starts)[out])]).astype(np.int64)
        return self._batches(spans, picked, first, process[starts[out]], leaves[out]), order[kept]

    def _note_sent(self, process: NDArray[np.int32], at: I64) -> None:
        np.maximum.at(self._sent_ns, process, at)

    def _batches(
        self, spans: Columns, picked: I64, first: I64, process: NDArray[np.int32], leaves: I64
    ) -> Batches:
        # Within a body spans lie by scope, in the order they ended.
        body = np.repeat(np.arange(len(process)), np.diff(first))
        by_scope = np.lexsort((np.arange(len(picked)), spans.scope[picked], body))
        drawn = ids.mix(ids.mix(leaves.astype(np.uint64)) ^ process.astype(np.uint64) ^ self._seed)
        wait = -np.log1p(-ids.chance(drawn, "under way")) * self._export.jitter_ns
        arrival = leaves + self._export.delay_ns + wait.astype(np.int64)
        return Batches(picked[by_scope], first, process, arrival)
