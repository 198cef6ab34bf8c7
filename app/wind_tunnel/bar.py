"""How far a fleet is, as a bar on a terminal; to anything else nothing."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


def far_bar(console: Console, hidden: bool = False) -> Progress:
    """A bar whose tasks have a description and a field `far`; gone when it is closed."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[far]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=hidden or not console.is_terminal,
    )
