"""The shipped recording of a real vLLM, taken into a store of its own or sent to a service."""

import asyncio
import logging
import shutil
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from rich.console import Console

from tailburn.app.answers.hops import CLOCKS, excess_rows, hop_rows, verdict
from tailburn.app.answers.question import Question
from tailburn.app.answers.tails import measured, tail_rows
from tailburn.app.collecting import take_lock
from tailburn.app.errors import UserError
from tailburn.app.replay.sending import Sent, send
from tailburn.app.serve import Service, serve_until_told
from tailburn.app.settings import Settings
from tailburn.app.terminal.output import draw, stdout
from tailburn.app.terminal.tables import excess_table, hops_table, tails_table
from tailburn.engine.store.api import Store

log = logging.getLogger("tailburn")

CAPTURE: Final = "vllm-0.32.0.tar.gz"
SLOWEST: Final = 0.05
_SLOWEST_TRACE: Final = (
    "SELECT trace_id FROM requests ORDER BY ttft_client_s DESC NULLS LAST LIMIT 1"
)
_PATIENCE_S: Final = 60.0
_STEP_S: Final = 0.25


def serve_capture(settings: Settings, afresh: bool = False) -> None:
    """Serve; once ready send the capture in, show what it says, and go on serving.

    `afresh` deletes a store that is there and that no process uses. Raises UserError for one
    that has requests already: the capture's own would mix with them, and a second run's with
    the first's, since their trace ids are the same.
    """
    empty_store(settings.store, afresh)
    # The capture comes all at once: nothing is late, so nothing needs to be waited for.
    settings = replace(settings, idle_close_s=1.0, rootless_close_s=1.0)
    serve_until_told(settings, _show)


def empty_store(store: Path, afresh: bool) -> None:
    """See that a demo begins with nothing in its store. Raises UserError where something is."""
    if afresh:
        take_lock(store).release()
        shutil.rmtree(store)
    if (store / "requests").exists():
        raise UserError(
            f"{store}: the demo wants an empty store; give it another folder, or --afresh to"
            " delete this one"
        )


async def _show(service: Service) -> None:
    console = stdout()
    address = service.addresses["OTLP/HTTP"]
    console.print(f"\nSending a recorded run of vLLM 0.32.0 to {address}")
    try:
        sent = await asyncio.to_thread(_send, address)
    except UserError as error:
        log.error("the demo did not get through: %s", error)
        return
    await until_closed(service)
    store = service.collecting.store
    count = len(await asyncio.to_thread(store.requests, columns=["request_id"]))
    console.print(f"{sent.bodies} bodies became {count} requests.\n")
    await asyncio.to_thread(print_answers, store, console)
    console.print(_what_next(service, await asyncio.to_thread(_slowest_trace, store)))


def _send(address: str) -> Sent:
    with as_file(files("tailburn.app.demo") / CAPTURE) as path:
        return send([path], address)


async def until_closed(service: Service) -> None:
    """Wait until no request is open and all rows are in the store."""
    async with asyncio.timeout(_PATIENCE_S):
        while await asyncio.to_thread(service.collecting.is_busy):
            await asyncio.sleep(_STEP_S)


def print_answers(store: Store, console: Console) -> None:
    """Tails, where the time went, and which hop owns what the slowest took longer."""
    console.print("$ tailburn tails")
    draw(tails_table(measured(tail_rows(store, Question())), ()), console)
    console.print("$ tailburn hops")
    rows = hop_rows(store, Question())
    draw(hops_table([row for row in rows if row["clock"] == CLOCKS[0]]), console)
    console.print(f"$ tailburn hops --slowest {SLOWEST:.0%}")
    slow = [r for r in excess_rows(store, Question(), SLOWEST) if r["clock"] == CLOCKS[0]]
    draw(excess_table(slow), console)
    console.print(verdict(slow[-1]), style="bold")


def _slowest_trace(store: Store) -> str:
    rows = store.query(_SLOWEST_TRACE)
    trace_id: str = rows.column(0)[0].as_py()
    return trace_id


def _what_next(service: Service, trace_id: str) -> str:
    folder, addresses = service.settings.store, service.addresses
    return f"""
Still serving; Ctrl-C ends it. In another terminal:
  .venv/bin/tailburn trace {trace_id} --store {folder}
  .venv/bin/tailburn requests --store {folder}
  curl {addresses["web"]}/metrics
Your own services: OTEL_EXPORTER_OTLP_ENDPOINT={addresses["OTLP/HTTP"]}
"""
