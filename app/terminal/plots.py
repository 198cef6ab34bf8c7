"""Small plots of characters: a line over time, spans on it, curves between two logarithmic axes."""

import math
from collections.abc import Mapping, Sequence

WIDTH = 60
TICK = "┤"
_LEVELS = " ▁▂▃▄▅▆▇█"
_GAP = "·"


def sparkline(values: Sequence[float | None], top: float) -> str:
    """One character each: empty at 0, full from `top` on, the lowest level for any more than 0.

    None, where nothing was measured, is a dot.
    """
    return "".join(_level(value, top) for value in values)


def _level(value: float | None, top: float) -> str:
    if value is None:
        return _GAP
    share = min(max(value / top, 0.0), 1.0) if top > 0 else 0.0
    return _LEVELS[math.ceil(share * (len(_LEVELS) - 1) - 1e-9)]


def spans_line(spans: Sequence[tuple[float, float]], end: float, width: int = WIDTH) -> str:
    """Spans on a line from 0 to `end`; one too short for a cell still fills one."""
    cells = [" "] * width
    for begin, stop in spans:
        first = min(int(begin / end * width), width - 1)
        last = max(math.ceil(stop / end * width), first + 1)
        cells[first:last] = "█" * (min(last, width) - first)
    return "".join(cells)


def log_plot(
    curves: Mapping[str, Sequence[float | None]],
    ticks: Sequence[tuple[float, str]],
    rows: int = 9,
) -> list[str]:
    """Curves by their one-character mark, drawn upwards on a logarithmic axis with these ticks.

    All curves have as many points as the plot has columns; None leaves a column empty. Where
    curves meet, the first is seen. The lowest tick is the axis' begin, the highest its end.
    """
    low, high = math.log(ticks[0][0]), math.log(ticks[-1][0])

    def row_of(value: float) -> int:
        share = (math.log(max(value, ticks[0][0])) - low) / (high - low)
        return min(round(share * (rows - 1)), rows - 1)

    width = len(next(iter(curves.values())))
    grid = [[" "] * width for _ in range(rows)]
    for mark, curve in reversed(list(curves.items())):
        for column, value in enumerate(curve):
            if value is not None:
                grid[row_of(value)][column] = mark
    labels = {row_of(value): label for value, label in ticks}
    room = max(map(len, labels.values()))
    return [
        f"{labels.get(row, ''):>{room}} {TICK if row in labels else '│'}"
        + "".join(grid[row]).rstrip()
        for row in reversed(range(rows))
    ]


def axis(ticks: Sequence[tuple[int, str]], width: int, indent: int) -> list[str]:
    """A line below a plot with labels under its columns; `indent` is what is left of the plot."""
    line, names = ["─"] * width, [" "] * (width + 8)
    for column, label in ticks:
        line[min(column, width - 1)] = "┬"
        names[column : column + len(label)] = label
    return [" " * (indent - 1) + "└" + "".join(line), " " * indent + "".join(names).rstrip()]
