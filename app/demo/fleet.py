"""`tailburn demo`: a service, and a fleet of two services that was well for a day, and breaks.

1. The lab's code is compiled in a process of its own, while this one compiles the service's
   and shows a recorded run of a real engine.
2. Once the service is ready, the lab sends a day, minute after minute, as fast as it is taken.
3. Its last 25 minutes hold the fault. What the service says of them is printed.
4. Both go on in real time, until they are interrupted.
"""

import asyncio
import contextlib
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from tailburn.app.answers.owning import Times
from tailburn.app.demo.captured import CAPTURE, empty_store, print_answers
from tailburn.app.demo.saying import Saying, in_words, say, until_evaluated
from tailburn.app.opening import store_of
from tailburn.app.replay.taking import take
from tailburn.app.serve import Service, serve_until_told
from tailburn.app.settings import Settings
from tailburn.app.terminal.output import json_lines, stderr, stdout
from tailburn.app.wind_tunnel.bar import far_bar
from tailburn.engine.store.api import Window

log = logging.getLogger("tailburn")

DEFAULT_FAULT: Final = "S23"
QUIET: Final = "none"
_OTHERS: Final = ("S1", "S2", "S10", "S14", "S18", "S21", "S23", "S24", "S25", "S29", "S31")
"""What the end offers: each shows in another hop, or comes of another cause."""
PAST_H: Final = 25.0
BROKEN_BEFORE_S: Final = 1_500
"""Long enough for the quickest page of a wide budget."""
BROKEN_FOR: Final = "40m"
_IDLE_CLOSE_S: Final = 16.0
"""Longer than a process's batch (5 s) and a collector's (10 s): no span comes after its row."""
_ENDS_WITHIN_S: Final = 10.0
"""What the fleet gets to sum up; where it still compiles it would take minutes."""
_STEP_S: Final = 0.25
_NS: Final = 1_000_000_000
_HOUR_NS: Final = 3600 * _NS
_NOW_NS: Final = 300 * _NS
_STACKS: Final = "client=app,gateway=envoy-ai-gateway,router=none"
_COMPILING: Final = "compiled code is loaded; the first start on a machine compiles it: minutes"
_WARM: Final = "from tailburn.lab.run.warming import warm_up; warm_up()"


@dataclass(frozen=True)
class Story:
    """What the fleet is to go through. `fault`: a scenario, or `none`."""

    fault: str = DEFAULT_FAULT
    severity: str = "strong"
    hours: float = PAST_H
    recorded: bool = True
    """Show a recorded run of a real engine first."""
    json: bool = False
    """What is said at the end as lines of JSON; all else goes to standard error."""

    @property
    def console(self) -> Console:
        """Where it is told in words."""
        return stderr() if self.json else stdout()

    @property
    def broken_at_ns(self) -> int:
        """Since the run's epoch."""
        return (round(self.hours * 3600) - BROKEN_BEFORE_S) * _NS

    def arguments(self, to: str, truth: Path) -> list[str]:
        """As the command line of the lab has it."""
        scenarios = [] if self.fault == QUIET else [self.fault]
        return [
            "lab", "run", *scenarios, "--services", "2", "--live", "--hours", str(self.hours),
            "--rate", "4", "--past-rate", "0.4", f"--begin=-{BROKEN_BEFORE_S}s",
            "--lasts", BROKEN_FOR, "--severity", self.severity, "--stack", _STACKS,
            "--collector", "10s", "--to", to, "--truth", str(truth),
            "--metrics-port", "0", "--json",
        ]  # fmt: skip


def serve_story(settings: Settings, story: Story, afresh: bool = False) -> None:
    """Serve, have the fleet live through its story, show it, and go on.

    Raises UserError for an unknown scenario, and for a store that has requests already.
    """
    _check(story)
    recorded = beside(settings.store, "recorded")
    empty_store(settings.store, afresh)
    empty_store(recorded, afresh or not story.recorded)
    warming = subprocess.Popen([sys.executable, "-c", _WARM])
    with contextlib.ExitStack() as stack:
        stack.callback(warming.wait)
        stack.callback(warming.terminate)
        shipped = stack.enter_context(as_file(files("tailburn.app.demo") / "slo"))
        if story.recorded:
            _show_recorded(replace(settings, store=recorded), story.console)
        settings = replace(
            settings,
            clock="telemetry",
            idle_close_s=_IDLE_CLOSE_S,
            slo=settings.slo or (shipped,),
        )

        async def shown(service: Service) -> None:
            await asyncio.to_thread(warming.wait)
            await _show(service, story)

        serve_until_told(settings, shown)


def _check(story: Story) -> None:
    from tailburn.app.wind_tunnel.words import explanation_row

    if story.fault != QUIET:
        explanation_row(story.fault)


def beside(store: Path, what: str) -> Path:
    """A folder next to the demo's store."""
    return store.with_name(f"{store.name}-{what}")


def _show_recorded(settings: Settings, told: Console) -> None:
    """The capture, taken into a store of its own."""
    told.print("\nFirst a recorded run of a real engine: vLLM 0.32.0, overloaded in the middle.")
    stderr().print(_COMPILING)
    with as_file(files("tailburn.app.demo") / CAPTURE) as path:
        take([path], settings)
    store = store_of(settings)
    count = len(store.requests(columns=["request_id"]))
    told.print(f"It became {count} requests, in {settings.store}.\n")
    print_answers(store, told)
    told.print("")


async def _show(service: Service, story: Story) -> None:
    told = story.console
    async with _lab(service, story) as lab:
        epoch_ns = await _until_live(lab, told)
        if epoch_ns is None:
            log.error("the fleet ended before it was live: exit code %s", await lab.wait())
            return
        drained = asyncio.create_task(_drain(lab))
        await _settle(service)
        now_ns, begun_ns = service.now_ns(), epoch_ns + story.broken_at_ns
        times = Times(Window(begun_ns - _HOUR_NS, begun_ns), Window(now_ns - _NOW_NS, now_ns))
        await until_evaluated(service.evaluating, now_ns)
        truth = beside(service.settings.store, "truth")
        said = await asyncio.to_thread(say, service, times, now_ns, truth, told)
        told.print(_what_next(service, said))
        if story.json:
            json_lines(said.rows())
        await drained


@contextlib.asynccontextmanager
async def _lab(service: Service, story: Story) -> AsyncIterator["asyncio.subprocess.Process"]:
    """The fleet, in a process of its own; it ends with this, killed where it takes too long."""
    truth = beside(service.settings.store, "truth")
    arguments = story.arguments(service.addresses["OTLP/HTTP"], truth)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tailburn.app", *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), _ENDS_WITHIN_S)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _until_live(lab: "asyncio.subprocess.Process", told: Console) -> int | None:
    """Show how far the past is until it is over; the run's epoch, None where the lab ended."""
    told.print("A day of a fleet that is well, as fast as the service takes it:")
    with far_bar(stderr()) as progress:
        task = progress.add_task("compiling the fleet", total=None, far="")
        epoch_ns = 0
        async for line in _lines(lab):
            if line["type"] == "run":
                epoch_ns = line["epoch_unix_ns"]
            if line["type"] != "progress":
                continue
            far = f"{line['simulated_s'] / 3600:.1f} of {line['of_s'] / 3600:.0f} h"
            progress.update(
                task, description="the past", completed=line["simulated_s"], total=line["of_s"],
                far=f"{far}, {line['requests']:,} requests",
            )  # fmt: skip
            if line["live"]:
                told.print(f"{line['requests']:,} requests, {line['spans']:,} spans.\n")
                return epoch_ns
    return None


async def _lines(lab: "asyncio.subprocess.Process") -> AsyncIterator[dict[str, Any]]:
    assert lab.stdout is not None, "it was opened with a pipe"
    async for text in lab.stdout:
        with contextlib.suppress(ValueError):
            yield json.loads(text)


async def _drain(lab: "asyncio.subprocess.Process") -> None:
    async for _ in _lines(lab):
        pass


async def _settle(service: Service) -> None:
    """Wait until what was told of the past, and is closed, is rows in the store."""
    collecting = service.collecting
    told_of = collecting.writer.last_position
    while collecting.keeper.published_position < told_of:
        await asyncio.sleep(_STEP_S)


def _what_next(service: Service, said: Saying) -> str:
    folder, addresses = service.settings.store, service.addresses
    broken = "".join(
        f"""What is really broken:
{in_words(truth)}
  .venv/bin/tailburn lab explain {truth["scenario"]}
"""
        for truth in said.truths
    )
    return f"""
{broken}Fleet and service go on in real time; Ctrl-C ends both. In another terminal:
  .venv/bin/tailburn incidents --store {folder}
  .venv/bin/tailburn alerts --store {folder}
  .venv/bin/tailburn hops --slowest 5% --since 20m --store {folder}
  .venv/bin/tailburn requests --since 20m --store {folder}
  curl {addresses["web"]}/metrics
Other faults: {_others(said)}
  .venv/bin/tailburn demo --afresh --fault {_OTHERS[0]}
All of them: .venv/bin/tailburn lab list
A real vLLM, recorded: .venv/bin/tailburn demo --capture
Your own services: OTEL_EXPORTER_OTLP_ENDPOINT={addresses["OTLP/HTTP"]}
"""


def _others(said: Saying) -> str:
    """Some that show something else each, by id and name."""
    from tailburn.lab.faults.catalogue import SCENARIOS

    shown = {truth["scenario"] for truth in said.truths}
    return ", ".join(f"{id} {SCENARIOS[id].name}" for id in _OTHERS if id not in shown)
