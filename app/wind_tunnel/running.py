"""A lab's run from its options to its summary: warmed up, driven, shown, interrupted, closed."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tailburn.app.errors import UserError
from tailburn.app.terminal.output import json_lines, stderr, stdout
from tailburn.app.wind_tunnel.asked import Asked
from tailburn.app.wind_tunnel.bar import far_bar
from tailburn.app.wind_tunnel.summary import summary_table
from tailburn.lab.run.drive import LEAD_NS, Drive, Step, Summary
from tailburn.lab.run.errors import RunError
from tailburn.lab.run.scraping import Scraping
from tailburn.lab.run.stacks import stacks_of
from tailburn.lab.run.targets import Target, ToFolder, ToService, check_unused
from tailburn.lab.run.truth import AttemptsFile, truth_of, write_truth
from tailburn.lab.run.warming import warm_up
from tailburn.lab.telemetry.metrics import LiveTargets, ScrapeFiles
from tailburn.lab.telemetry.sender import Sender

TELL_EVERY_S: Final = 0.25
_SLOW_S: Final = 3.0
_SCRAPED_BEFORE_NS: Final = 600 * 10**9
"""Of a live run's past: what nobody can scrape any more need not be told."""
COMPILING: Final = "compiling the fleet, once on a machine: about a minute"

Show = Callable[[Step], None]


def run_lab(asked: Asked, json: bool) -> None:
    """Run it and say what became of it. Ends with 1 where anything was refused.

    Raises UserError for a run that can't begin, or whose target takes nothing at all.
    """
    shown = _JsonShow(asked) if json else _BarShow(asked)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_terminated_as_interrupted())
        try:
            with shown.compiling():
                warm_up()
            target = _target(asked)
            scraping, address = _scraping(asked)
            attempts = AttemptsFile(asked.truth, asked.plan.seed) if asked.keeps_attempts else None
            write_truth(asked.truth, _truth(asked, asked.planned_end_ns))
        except KeyboardInterrupt:
            raise UserError("interrupted before it began") from None
        except (RunError, OSError) as error:
            raise UserError(str(error)) from None
        if address is not None:
            shown.says({"type": "metrics", "address": address}, f"targets: {address}/http_sd")
        summary, end_ns = _driven(asked, target, attempts, scraping, shown)
    write_truth(asked.truth, _truth(asked, end_ns))
    if json:
        json_lines([{"type": "summary", **summary.row()}])
    else:
        stdout().print(summary_table(asked, summary, end_ns))
    if summary.refused_bodies or summary.rejected_spans:
        sys.exit(1)


def _driven(
    asked: Asked,
    target: Target,
    attempts: AttemptsFile | None,
    scraping: Scraping | None,
    shown: "_BarShow | _JsonShow",
) -> tuple[Summary, int]:
    """What became of it, and how far it came."""
    drive = Drive(
        asked.plan,
        asked.composed.wiring,
        target,
        epoch_unix_ns=asked.epoch_unix_ns,
        truth=attempts,
        scraping=scraping,
        merge_ns=asked.collector_ns,
        wall=time.time_ns if asked.live_from_ns is not None else None,
    )
    try:
        with shown.running() as on_step:
            drive.run(asked.until_ns, on_step)
            summary = drive.finish()
    except KeyboardInterrupt:
        summary = drive.stop()
    except RunError as error:
        drive.stop()
        raise UserError(str(error)) from None
    return summary, drive.motion.now_ns


def _target(asked: Asked) -> Target:
    if asked.out is not None:
        check_unused(asked.out)
        return ToFolder(asked.out / "telemetry", asked.epoch_unix_ns)
    assert asked.to is not None, "one of both is given"
    sender = Sender(asked.to, epoch_unix_ns=asked.epoch_unix_ns, token=asked.token)
    epoch_ns = asked.epoch_unix_ns

    def early_s(arrival_ns: int) -> float:
        return (epoch_ns + arrival_ns - time.time_ns()) / 1e9

    return ToService(sender, early_s if asked.live_from_ns is not None else None)


def _scraping(asked: Asked) -> tuple[Scraping | None, str | None]:
    """Scrapes beside the bodies of a folder, or targets to be scraped in a live run."""
    files = live = None
    if asked.out is not None:
        files = ScrapeFiles(asked.out / "scrapes", asked.epoch_unix_ns)
    elif asked.live_from_ns is not None:
        live = LiveTargets(port=asked.metrics_port)
    else:
        return None, None
    scraping = Scraping(
        asked.plan,
        asked.composed.wiring,
        epoch_unix_ns=asked.epoch_unix_ns,
        hold_ns=LEAD_NS,
        files=files,
        live=live,
        from_ns=max((asked.live_from_ns or 0) - _SCRAPED_BEFORE_NS, 0),
    )
    return scraping, None if live is None else f"http://{live.address}"


def _truth(asked: Asked, end_ns: int) -> Any:
    return truth_of(
        asked.plan, asked.epoch_unix_ns, end_ns, {"stacks": stacks_of(asked.composed.wiring)}
    )


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: closed and summed up."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass
class _JsonShow:
    """Progress as JSON lines, a few a second."""

    asked: Asked
    _told: float = 0.0
    _live: bool = False

    def says(self, row: dict[str, Any], text: str) -> None:
        """Something worth knowing while it runs."""
        json_lines([row])

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        json_lines([{"type": "compiling"}])
        yield

    @contextlib.contextmanager
    def running(self) -> Iterator[Show]:
        json_lines([{"type": "run", "epoch_unix_ns": self.asked.epoch_unix_ns}])
        yield self._step

    def _step(self, step: Step) -> None:
        now = time.monotonic()
        if now - self._told < TELL_EVERY_S and step.live == self._live:
            return
        self._told, self._live = now, step.live
        of_ns = self.asked.until_ns or self.asked.live_from_ns or 0
        json_lines(
            [
                {
                    "type": "progress", "simulated_s": step.now_ns / 1e9, "of_s": of_ns / 1e9,
                    "requests": step.requests, "spans": step.spans, "live": step.live,
                }
            ]
        )  # fmt: skip


@dataclass
class _BarShow:
    """Progress as a bar on a terminal; to anything else a line when it begins and goes live."""

    asked: Asked

    def says(self, row: dict[str, Any], text: str) -> None:
        """Something worth knowing while it runs."""
        stderr().print(text)

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        console = stderr()
        late = threading.Timer(_SLOW_S, lambda: console.print(COMPILING))
        late.daemon = True
        late.start()
        try:
            yield
        finally:
            late.cancel()

    @contextlib.contextmanager
    def running(self) -> Iterator[Show]:
        console = stderr()
        goal_ns = self.asked.until_ns or self.asked.live_from_ns or 0
        live = False
        with far_bar(console) as progress:
            task = progress.add_task("running", total=goal_ns or None, far="")

            def show(step: Step) -> None:
                nonlocal live
                if step.live and not live:
                    console.print(f"live: {step.requests:,} requests so far; Ctrl-C ends it")
                live = step.live
                progress.update(
                    task,
                    description="live" if live else "running",
                    completed=min(step.now_ns, goal_ns) if goal_ns else step.now_ns,
                    far=f"{_clock(step.now_ns)} {step.requests:,} requests {step.spans:,} spans",
                )

            yield show


def _clock(ns: int) -> str:
    minutes, seconds = divmod(ns // 10**9, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
