"""One kind of span as a program: constant bytes, and slots that every span fills.

A `Kind` says what a span of it looks like; `compile_kinds` turns many into the arrays that
the encoder walks. A slot is a column of int64: counts as they are, seconds as the bits of a
double, instants in ns of true time, texts as an index or a hash. `ABSENT` in a slot leaves
the attribute, event or link out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.telemetry.spans import wire
from tailburn.lab.telemetry.spans.wire import Value

ABSENT: Final = -(1 << 63)
NO_SLOT: Final = -1


class Of(IntEnum):
    """What a slot holds, and how it is written."""

    INT = 0
    DOUBLE = 1  # bits of a double
    BOOL = 2
    TEXT = 3  # index into the texts
    HEX16 = 4  # 16 hex digits of it
    HEX8 = 5  # the first 8 of those
    UUID = 6  # 8-4-4-4-12 hex digits drawn from it
    HEX32 = 7  # 32 hex digits drawn from it
    DECIMAL = 8  # digits, unsigned
    CENTI = 9  # hundredths, as "63.23"
    TRACE = 10  # the span's own trace id, 32 hex digits; any value in the slot
    PARENT = 11  # its parent's id, 16 hex digits
    LIST = 12  # an array of one text, by index


class Op(IntEnum):
    """Steps of a program; see `encode.write_span`."""

    CONST = 0
    TRACE_ID = 1
    SPAN_ID = 2
    PARENT_ID = 3
    FLAGS = 4
    START = 5
    END = 6
    NAME = 7
    ATTRIBUTE = 8
    EVENT = 9
    EVENT_END = 10
    STATUS = 11
    LINK = 12


@dataclass(frozen=True)
class Slot:
    """A part that differs from span to span: column `name`, between two constant texts."""

    name: str
    of: Of
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Event:
    """A span event at the instant in slot `at` (ABSENT: no event)."""

    at: str
    name: str
    attributes: tuple[tuple[str, "Value | Slot"], ...] = ()


@dataclass(frozen=True)
class Kind:
    """What all spans of one kind share. `links`: slots with the id of a span of the trace."""

    scope: str
    name: "str | Slot"
    kind: int
    attributes: tuple[tuple[str, "Value | Slot"], ...] = ()
    events: tuple[Event, ...] = ()
    links: tuple[str, ...] = ()
    scope_version: str = ""
    schema_url: str = ""

    @cached_property
    def slots(self) -> tuple[str, ...]:
        """The names of its slots, in the order of their columns."""
        named = [self.name.name] if isinstance(self.name, Slot) else []
        named += [v.name for _, v in self.attributes if isinstance(v, Slot)]
        for event in self.events:
            named.append(event.at)
            named += [v.name for _, v in event.attributes if isinstance(v, Slot)]
        return tuple(dict.fromkeys([*named, *self.links]))


INTERNAL, SERVER, CLIENT = 1, 2, 3
OP_WIDTH: Final = 8


@dataclass
class Programs:
    """Compiled kinds: rows of `ops` from `first[kind]` to `first[kind + 1]`, over `blob`."""

    ops: NDArray[np.int32]
    first: NDArray[np.int32]
    blob: NDArray[np.uint8]
    size: NDArray[np.int32]
    """The most bytes a span of each kind takes, its texts aside."""
    texts_in: NDArray[np.int32]
    """How many texts by index a span of each kind may hold."""


@dataclass
class _Compiler:
    blob: bytearray = field(default_factory=bytearray)
    known: dict[bytes, int] = field(default_factory=dict)
    ops: list[list[int]] = field(default_factory=list)
    size: int = 0
    texts: int = 0

    def put(self, data: bytes) -> tuple[int, int]:
        """Where constant bytes lie; each kept once."""
        if data not in self.known:
            self.known[data] = len(self.blob)
            self.blob += data
        self.size += len(data)
        return self.known[data], len(data)

    def op(self, op: Op, *values: int) -> None:
        self.ops.append([op, *values, *([0] * (OP_WIDTH - 1 - len(values)))])

    def constant(self, data: bytes) -> None:
        self.op(Op.CONST, *self.put(data))

    def slot(self, op: Op, slot: Slot, column: int, head: bytes, tag: int) -> None:
        """`head` is what stands before the value; texts before and after follow it in the blob."""
        before, after = slot.before.encode(), slot.after.encode()
        at, _ = self.put(head + before + after)
        self.op(op, column, slot.of, at, len(head), len(before), len(after), tag)
        self.size += 64
        self.texts += slot.of in (Of.TEXT, Of.LIST)


def _kind(compiler: _Compiler, kind: Kind) -> None:
    column = {name: i for i, name in enumerate(kind.slots)}
    compiler.op(Op.TRACE_ID)
    compiler.op(Op.SPAN_ID)
    compiler.op(Op.PARENT_ID)
    if isinstance(kind.name, Slot):
        compiler.slot(Op.NAME, kind.name, column[kind.name.name], b"", 0x2A)
    else:
        compiler.constant(wire.text(5, kind.name))
    compiler.constant(b"\x30" + wire.varint(kind.kind))
    compiler.op(Op.START)
    compiler.op(Op.END)
    _attributes(compiler, 9, kind.attributes, column)
    for event in kind.events:
        begun = len(compiler.ops)
        compiler.op(Op.EVENT, column[event.at], *compiler.put(wire.text(2, event.name)), 0)
        _attributes(compiler, 3, event.attributes, column)
        compiler.op(Op.EVENT_END)
        compiler.ops[begun][4] = len(compiler.ops) - begun - 1
        compiler.size += 16
    for link in kind.links:
        compiler.op(Op.LINK, column[link])
        compiler.size += 40
    compiler.op(Op.STATUS)
    compiler.op(Op.FLAGS)
    compiler.size += 80


def _attributes(
    compiler: _Compiler,
    number: int,
    attributes: Sequence[tuple[str, "Value | Slot"]],
    column: dict[str, int],
) -> None:
    constant = b""
    for key, value in attributes:
        if not isinstance(value, Slot):
            constant += wire.key_value(number, key, value)
            continue
        if constant:
            compiler.constant(constant)
            constant = b""
        head = wire.text(1, key)
        compiler.slot(Op.ATTRIBUTE, value, column[value.name], head, number << 3 | 2)
    if constant:
        compiler.constant(constant)


def compile_kinds(kinds: Iterable[Kind]) -> Programs:
    """The programs of some kinds, in their order."""
    compiler = _Compiler()
    first, sizes, texts = [0], [], []
    for kind in kinds:
        compiler.size = compiler.texts = 0
        _kind(compiler, kind)
        first.append(len(compiler.ops))
        sizes.append(compiler.size)
        texts.append(compiler.texts)
    ops: Any = compiler.ops or np.zeros((0, OP_WIDTH))
    return Programs(
        np.asarray(ops, np.int32).reshape(-1, OP_WIDTH),
        np.asarray(first, np.int32),
        np.frombuffer(bytes(compiler.blob) or b"\0", np.uint8),
        np.asarray(sizes, np.int32),
        np.asarray(texts, np.int32),
    )
