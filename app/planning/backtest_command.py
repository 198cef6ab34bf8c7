"""`tailburn backtest`: what is asked, read from the command line, and what is answered."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from tailburn.app.answers.question import duration_ns, question
from tailburn.app.errors import UserError
from tailburn.app.opening import asked_store, store_of
from tailburn.app.planning.backtest_plot import check_format, write_plot
from tailburn.app.planning.backtest_rows import rows_of
from tailburn.app.planning.backtest_text import print_backtest
from tailburn.app.planning.backtesting import WARM_NS, Counted, backtest, of_store
from tailburn.app.planning.prometheus.asking import asking
from tailburn.app.planning.prometheus.past import of_prometheus
from tailburn.app.planning.stored import stretch_of
from tailburn.app.settings_sources import load_settings
from tailburn.app.slo_files import load_given, read_texts, told
from tailburn.app.terminal.output import json_lines, stderr
from tailburn.engine.backtest.incidents import Marked, read
from tailburn.engine.slo.model import Slo
from tailburn.engine.store.api import Window

_STDIN: Final = "-"


@dataclass(frozen=True)
class Asked:
    """The options, as they were typed."""

    paths: Sequence[Path]
    store: Path | None
    prometheus: str | None
    config: Path | None
    since: str | None
    until: str | None
    incidents: Path | None
    time_zone: str | None
    grace: str
    plot: Path | None
    json: bool


def answer(asked: Asked) -> None:
    """Run it and print or draw what it comes to."""
    slos = load_given(asked.paths)
    if asked.plot is not None:
        check_format(asked.plot)
    marked = () if asked.incidents is None else _marked(asked.incidents, asked.time_zone)
    grace_ns = duration_ns("--grace", asked.grace)
    of_it = _of_store if asked.prometheus is None else _of_prometheus
    counted = of_it(slos, asked)
    found = backtest(slos, counted, marked, grace_ns)
    missed = len(marked) - len(found.marked)
    if missed:
        stderr().print(f"left out: {missed:,} incidents outside of the time")
    if asked.plot is not None:
        write_plot(found, asked.plot)
        stderr().print(f"wrote {asked.plot}")
    if asked.json:
        json_lines(rows_of(found))
    else:
        print_backtest(found)


def _of_store(slos: Sequence[Slo], asked: Asked) -> Counted:
    wanted = question(asked.since, asked.until, None, (), time.time_ns()).window
    store = store_of(asked_store(asked.store, asked.config))
    whole = stretch_of(store, wanted, {})
    before = Window(whole.since_ns - WARM_NS, whole.until_ns)
    stretch = whole if wanted.since_ns is None else stretch_of(store, before, {})
    stretch = replace(stretch, until_ns=whole.until_ns)
    return of_store(slos, stretch, whole.since_ns, to_last=wanted.until_ns is None)


def _of_prometheus(slos: Sequence[Slo], asked: Asked) -> Counted:
    assert asked.prometheus is not None, "it was asked for"
    if asked.store is not None:
        raise UserError("--store and --prometheus: want one of them")
    now_ns = time.time_ns()
    window = question(asked.since, asked.until, None, (), now_ns).window
    if window.since_ns is None:
        raise UserError("--prometheus: want --since too, such as --since 14d")
    to_last = window.until_ns is None
    until_ns = now_ns if window.until_ns is None else min(window.until_ns, now_ns)
    source = asking(asked.prometheus, load_settings({}, asked.config))
    return of_prometheus(slos, source, window.since_ns, until_ns, to_last=to_last)


def _marked(path: Path, time_zone: str | None) -> tuple[Marked, ...]:
    """Incidents of a file. Raises UserError with all that is wrong with it."""
    if str(path) == _STDIN or path.is_dir():
        raise UserError(f"--incidents {path}: want one file, .csv or .yaml")
    texts, unread = read_texts([path])
    if unread:
        raise UserError(*map(told, unread))
    zone = None
    if time_zone is not None:
        try:
            zone = ZoneInfo(time_zone)
        except (KeyError, OSError, ValueError):
            raise UserError(
                f"--time-zone {time_zone!r}: is no time zone; want one such as Europe/Berlin"
            ) from None
    [(name, text)] = texts
    marked, problems = read(name, text, zone)
    if problems:
        raise UserError(*map(told, problems))
    return marked
