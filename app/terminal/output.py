"""Where answers go: rows as JSON lines or drawings to stdout, all else to stderr."""

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

_WIDE = 200
_WIDEST = 1_000


def stdout() -> Console:
    """The console for answers; a pipe gets plain lines that are not cut at 80 columns."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _WIDE
    return console


def draw(table: Table, console: Console | None = None) -> None:
    """Print a table of figures whole, however narrow the terminal.

    A wrapped line is read all the same and its ids can be copied; a name cut away can't.
    """
    console = console or stdout()
    options = console.options.update(max_width=_WIDEST)
    width = console.measure(table, options=options).maximum
    console.width = max(console.width, width)
    console.print(table)


def stderr() -> Console:
    """The console for everything that is no answer."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def json_lines(rows: Iterable[Mapping[str, Any]]) -> None:
    """One object a line, in ASCII, so that no text in it can act on a terminal; nan is null."""
    for row in rows:
        sys.stdout.write(json.dumps(_finite(row), separators=(",", ":")) + "\n")
    sys.stdout.flush()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
