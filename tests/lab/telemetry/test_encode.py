"""The encoder against protobuf: any kind of span, with any slots, absent ones too."""

import struct
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans

from tailburn.lab.telemetry.spans import wire
from tailburn.lab.telemetry.spans.encode import write_spans
from tailburn.lab.telemetry.spans.template import ABSENT, Event, Kind, Of, Slot, compile_kinds

TEXTS = ["", "x", "π" * 20, "y" * 127, "z" * 128, "w" * 20_000]
STATUSES = [wire.status(0), wire.status(2, "broken"), wire.status(1)]
NUMBERS = st.integers(-(1 << 62), (1 << 62))


def _packed(parts: list[bytes]) -> tuple[Any, Any]:
    at = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), at


def _written(kind: Kind, values: list[int], status: int, flags: int, parent: int) -> bytes:
    programs = compile_kinds([kind])
    texts, text_at = _packed([t.encode() for t in TEXTS])
    statuses, status_at = _packed(STATUSES)
    out, ends = np.empty(200_000, np.uint8), np.empty(1, np.int64)
    size = write_spans(
        out, ends, np.zeros(1, np.int64), np.zeros(1, np.int32),
        np.asarray([[1 << 60, 7]], np.uint64), np.asarray([9], np.uint64),
        np.asarray([parent], np.uint64), np.asarray([1_000], np.int64),
        np.asarray([2_000], np.int64), np.asarray([50], np.int64), np.asarray([flags], np.int32),
        np.asarray([status], np.int32), np.zeros(1, np.int64), np.asarray(values, np.int64),
        programs.ops, programs.first, programs.blob, texts, text_at, statuses, status_at,
    )  # fmt: skip
    assert ends[0] == size
    return out[:size].tobytes()


def _expected(of: Of, number: int, slot: Slot) -> tuple[str, Any]:
    bits = f"{number & (1 << 64) - 1:016x}"
    match of:
        case Of.INT:
            return "int_value", number
        case Of.DOUBLE:
            return "double_value", struct.unpack("<d", struct.pack("<q", number))[0]
        case Of.BOOL:
            return "bool_value", bool(number)
        case Of.TEXT:
            return "string_value", slot.before + TEXTS[number] + slot.after
        case Of.HEX16:
            return "string_value", slot.before + bits + slot.after
        case Of.HEX8:
            return "string_value", slot.before + bits[:8] + slot.after
        case Of.DECIMAL:
            return "string_value", f"{slot.before}{number}{slot.after}"
        case _:
            return "string_value", f"{slot.before}{number // 100}.{number % 100:02}{slot.after}"


_VALUES = {
    Of.INT: NUMBERS,
    Of.DOUBLE: st.floats(allow_nan=False).map(
        lambda f: struct.unpack("<q", struct.pack("<d", f))[0]
    ),
    Of.BOOL: st.integers(0, 1),
    Of.TEXT: st.integers(0, len(TEXTS) - 1),
    Of.HEX16: NUMBERS,
    Of.HEX8: NUMBERS,
    Of.DECIMAL: st.integers(0, 1 << 62),
    Of.CENTI: st.integers(0, 1 << 40),
}


@settings(max_examples=200)
@given(st.data())
def test_a_span_is_what_its_kind_and_slots_say(data: st.DataObject) -> None:
    constants = data.draw(
        st.lists(st.one_of(st.booleans(), st.integers(-(1 << 63), (1 << 63) - 1),
                           st.floats(allow_nan=False), st.text(max_size=300)), max_size=4)
    )  # fmt: skip
    kinds_of = data.draw(st.lists(st.sampled_from(sorted(_VALUES)), max_size=6))
    around = data.draw(st.sampled_from([("", ""), ("chat ", ""), ("a" * 130, "b" * 130)]))
    slots = [Slot(f"s{i}", of, *around) for i, of in enumerate(kinds_of)]
    attributes: list[tuple[str, Any]] = [(f"c{i}", v) for i, v in enumerate(constants)]
    attributes += [(f"k{i}", slot) for i, slot in enumerate(slots)]
    order = data.draw(st.permutations(attributes))
    event = Event("at", "first token", tuple(order[:2]))
    name = Slot("name", Of.TEXT, "chat ")
    kind = Kind("scope", name, 3, tuple(order), events=(event,), links=("link",))
    given_values: dict[str, int] = {"name": data.draw(st.integers(1, len(TEXTS) - 1))}
    given_values["at"] = data.draw(st.sampled_from([ABSENT, 5_000]))
    given_values["link"] = data.draw(st.sampled_from([ABSENT, 77]))
    for slot in slots:
        given_values[slot.name] = data.draw(st.one_of(st.just(ABSENT), _VALUES[slot.of]))
    status, flags = data.draw(st.integers(0, 2)), data.draw(st.sampled_from([0, 1, 256, 769]))
    parent = data.draw(st.sampled_from([0, 12]))

    body = _written(kind, [given_values[n] for n in kind.slots], status, flags, parent)
    read = ScopeSpans.FromString(body)
    assert read.SerializeToString() == body
    (span,) = read.spans
    assert span.name == "chat " + TEXTS[given_values["name"]]
    assert (span.trace_id, span.span_id) == (
        (1 << 60).to_bytes(8, "big") + (7).to_bytes(8, "big"),
        (9).to_bytes(8, "big"),
    )
    assert span.parent_span_id == ((12).to_bytes(8, "big") if parent else b"")
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (1_050, 2_050)
    assert (span.kind, span.flags, span.status.code) == (3, flags, (0, 2, 1)[status])
    told = _told(order, given_values)
    assert [(a.key, a.value.WhichOneof("value")) for a in span.attributes] == [
        (key, which) for key, which, _ in told
    ]
    assert [getattr(a.value, w) for a, (_, w, _) in zip(span.attributes, told, strict=True)] == [
        value for _, _, value in told
    ]
    assert [e.time_unix_nano for e in span.events] == (
        [] if given_values["at"] == ABSENT else [5_050]
    )
    for one in span.events:
        assert [a.key for a in one.attributes] == [k for k, _, _ in _told(order[:2], given_values)]
    assert len(span.links) == (given_values["link"] != ABSENT)


def _told(order: list[tuple[str, Any]], values: dict[str, int]) -> list[tuple[str, str, Any]]:
    names = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}
    told = []
    for key, value in order:
        if not isinstance(value, Slot):
            told.append((key, names[type(value)], value))
        elif values[value.name] != ABSENT:
            told.append((key, *_expected(value.of, values[value.name], value)))
    return told
