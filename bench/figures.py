"""Figures, each beside its baseline of the same run, and the table that shows them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

_COLUMNS: Final = ("figure", "measured", "min..max", "baseline", "ratio", "what the baseline is")


_PAGE_COLUMNS: Final = 190  # where the output is no terminal


@dataclass(frozen=True)
class Figure:
    """A median of repeats and what it is compared with. Ratios above 1 are better than it."""

    what: str
    repeats: Sequence[float]
    unit: str = ""
    baseline: float | None = None
    baseline_is: str = ""
    smaller_is_better: bool = False

    @property
    def median(self) -> float:
        return sorted(self.repeats)[len(self.repeats) // 2]

    @property
    def ratio(self) -> float | None:
        if not self.baseline or not self.median:
            return None
        ratio = self.median / self.baseline
        return 1 / ratio if self.smaller_is_better else ratio


def show(figures: Sequence[Figure], notes: Sequence[str] = ()) -> None:
    """Print the table, and below it what is to be known of it."""
    table = Table(box=box.SIMPLE)
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in _COLUMNS[::5] else "right")
    for figure in figures:
        table.add_row(*_row(figure))
    console = Console(width=None if sys.stdout.isatty() else _PAGE_COLUMNS)
    console.print(table)
    for note in notes:
        console.print(note, highlight=False)


def _row(figure: Figure) -> list[str]:
    low, high = min(figure.repeats), max(figure.repeats)
    return [
        figure.what,
        f"{_short(figure.median)} {figure.unit}".strip(),
        f"{_short(low)}..{_short(high)}" if len(figure.repeats) > 1 else "",
        "" if figure.baseline is None else _short(figure.baseline),
        "" if figure.ratio is None else f"{figure.ratio:.2f} x",
        figure.baseline_is,
    ]


def _short(value: float) -> str:
    """Three digits that matter, thousands apart."""
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"
