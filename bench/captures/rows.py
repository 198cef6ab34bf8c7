"""Typed access to the rows of the `requests` table, whatever brought them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tailburn.engine.names import (
    DECODE_HOP_COLUMNS,
    TTFT_HOP_COLUMNS,
    VANTAGES,
    ttft_hop_column,
)


@dataclass(frozen=True)
class Row:
    """One request row; a missing or null column is None."""

    values: Mapping[str, object]

    def seconds(self, column: str) -> float | None:
        value = self.values.get(column)
        return float(value) if isinstance(value, int | float) else None

    def count(self, column: str) -> int | None:
        value = self.values.get(column)
        return int(value) if isinstance(value, int | float) else None

    def text(self, column: str) -> str:
        value = self.values.get(column)
        return "" if value is None else str(value)

    def ttft_in(self, hops: Iterable[str]) -> float:
        """Seconds of the breakdown to the first token that `hops` hold together."""
        return sum(self.seconds(ttft_hop_column(hop)) or 0.0 for hop in hops)

    @property
    def ttft_ns(self) -> int | None:
        """The clock of the outermost vantage that measured a first token."""
        for vantage in VANTAGES:
            ttft = self.seconds(f"ttft_{vantage}_s")
            if ttft is not None:
                return round(ttft * 1e9)
        return None

    @property
    def decode_ns(self) -> int | None:
        """First to last token at the outermost vantage that measured both."""
        tokens = self.count("output_tokens")
        for vantage in VANTAGES:
            tpot = self.seconds(f"tpot_{vantage}_s")
            if tpot is not None and tokens is not None:
                return round(tpot * (tokens - 1) * 1e9)
        return None

    @property
    def ttft_parts_ns(self) -> int | None:
        return self._sum_ns(TTFT_HOP_COLUMNS)

    @property
    def decode_parts_ns(self) -> int | None:
        return self._sum_ns(DECODE_HOP_COLUMNS)

    def _sum_ns(self, columns: Iterable[str]) -> int | None:
        parts = [part for part in map(self.seconds, columns) if part is not None]
        return round(sum(parts) * 1e9) if parts else None


def live(rows: Iterable[Mapping[str, object]]) -> list[Row]:
    """The rows that stand: the last version of each request, tombstones left out."""
    last: dict[object, Mapping[str, object]] = {}
    for row in rows:
        held = last.get(row["request_id"])
        if held is None or _version(row) > _version(held):
            last[row["request_id"]] = row
    return [Row(row) for row in last.values() if not row.get("tombstone")]


def _version(row: Mapping[str, object]) -> int:
    return Row(row).count("version") or 0
