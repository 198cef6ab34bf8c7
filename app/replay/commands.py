"""`tailburn replay`: the two ways, with progress, and what became of it."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tailburn.app.errors import UserError
from tailburn.app.replay.recording import Recording
from tailburn.app.settings import Settings
from tailburn.app.terminal.output import stderr
from tailburn.app.terminal.text import harmless


def replay_into(paths: Sequence[Path], settings: Settings, speed: float | None) -> None:
    """Take recordings into a store. Exits with 1 where a body was refused."""
    from tailburn.app.replay.taking import take  # loads compiled code, which sending does not need

    _check_speed(speed)
    with _progress("taking in") as on_body:
        taken = take(paths, settings, speed, on_body)
    rejected = f", {taken.rejected_spans:,} spans rejected" if taken.rejected_spans else ""
    _report(f"{taken.bodies:,} bodies, {taken.bytes / 1e6:.1f} MB{rejected}", taken.refused)


def replay_to(paths: Sequence[Path], url: str, speed: float | None, token: str | None) -> None:
    """Send recordings to a service. Exits with 1 where a body was refused."""
    from tailburn.app.replay.sending import send

    _check_speed(speed)
    with _progress("sending") as on_body:
        sent = send(paths, url, speed, token, on_body=on_body)
    _report(f"{sent.bodies:,} bodies, {sent.bytes / 1e6:.1f} MB sent to {url}", sent.refused)


@contextmanager
def _progress(word: str) -> Iterator[Callable[[Recording], None]]:
    columns = TextColumn(word), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    console = stderr()
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task(word, total=None)
        yield lambda recording: progress.advance(task)


def _report(summary: str, refused: Sequence[str]) -> None:
    console = stderr()
    console.print(summary)
    for line in refused:
        console.print(harmless(line))
    if refused:
        sys.exit(1)


def _check_speed(speed: float | None) -> None:
    if speed is not None and not 0 < speed < float("inf"):
        raise UserError(f"--speed {speed}: want a number above 0")
