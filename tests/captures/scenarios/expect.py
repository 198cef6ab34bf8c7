"""Rows as they are expected: the columns that matter to a scenario, and what they hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bench.captures.rows import Row, live
from tests.captures.scenarios.otlp import span_id, trace_id

MICROSECOND_S = 1e-6


@dataclass(frozen=True)
class Holding:
    """A comma-separated column that names this, maybe among others."""

    word: str


@dataclass(frozen=True)
class OneOf:
    """Any of these."""

    values: tuple[object, ...]


@dataclass(frozen=True)
class Known:
    """Anything but null."""


KNOWN = Known()


def standing(rows: Sequence[Mapping[str, object]]) -> list[Row]:
    """The rows that stand at the end, by start."""
    return sorted(live(rows), key=lambda row: row.count("start_ns") or 0)


Expected: TypeAlias = Mapping[str | tuple[str, ...], object]


def expect(rows: Sequence[Row], *expected: Expected) -> None:
    """The rows are as many as expected and hold what is expected, and each is sound in itself.

    A tuple of columns of seconds holds its sum.
    """
    summary = [{key: row.values.get(key) for key in _told(row)} for row in rows]
    assert len(rows) == len(expected), f"{len(rows)} rows, want {len(expected)}: {summary}"
    for row, held in zip(rows, expected, strict=True):
        wrong = {
            columns: (want, _got(row, columns))
            for columns, want in held.items()
            if not _holds(row, columns, want)
        }
        assert not wrong, f"column: (want, got) {wrong} in {summary}"
        sound(row)


def sound(row: Row) -> None:
    """Breakdowns sum to their clocks, nothing is negative, no first token after nothing."""
    assert row.ttft_ns is None or row.ttft_ns == row.ttft_parts_ns
    assert row.decode_ns is None or row.decode_ns == row.decode_parts_ns
    negative = [
        column
        for column in row.values
        if column.endswith("_s") and column != "clock_offset_s" and (row.seconds(column) or 0.0) < 0
    ]
    assert not negative, {column: row.values[column] for column in negative}
    zero = [c for c in row.values if c in _FIRST_TOKEN and row.seconds(c) == 0]
    assert not zero, zero


_FIRST_TOKEN = ("ttft_client_s", "ttft_gateway_s", "ttft_engine_s")


def _holds(row: Row, columns: str | tuple[str, ...], want: object) -> bool:
    got = _got(row, columns)
    if isinstance(want, Holding):
        return want.word in str(got or "").split(",")
    if isinstance(want, OneOf):
        return any(_holds(row, columns, value) for value in want.values)
    if isinstance(want, Known):
        return got is not None
    if isinstance(want, float):
        seconds = float(got) if isinstance(got, int | float) else 0.0
        return abs(seconds - want) <= MICROSECOND_S
    return got == want


def _got(row: Row, columns: str | tuple[str, ...]) -> object:
    if isinstance(columns, tuple):
        return sum(row.seconds(column) or 0.0 for column in columns)
    return row.values.get(columns)


def _told(row: Row) -> list[str]:
    """The columns that a row says something in, bulky ones left out."""
    return [c for c, value in row.values.items() if value not in (None, "", 0) and c != "digests"]


def anchored(span: str, trace: str = "trace") -> dict[str | tuple[str, ...], object]:
    """The identity columns of a request whose outermost call is this span."""
    return {"trace_id": trace_id(trace).hex(), "anchor_span_id": span_id(span).hex()}
