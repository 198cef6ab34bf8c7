"""The commands that ask a store and print what it says."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tailburn.app.answers.clients import abstentions, client_rows, finding, quiet
from tailburn.app.answers.compare import compare_rows
from tailburn.app.answers.hops import TOTAL, excess_rows, hop_rows, verdict
from tailburn.app.answers.question import Question, duration_ns, question
from tailburn.app.answers.requests import request_rows
from tailburn.app.answers.tails import measured, tail_rows
from tailburn.app.answers.trace import trace_answer
from tailburn.app.errors import UserError
from tailburn.app.opening import asked_store, store_of
from tailburn.app.settings import Settings
from tailburn.app.terminal.compare_text import CLOCK_TITLES, Compared, print_compared
from tailburn.app.terminal.output import draw, json_lines, stderr, stdout
from tailburn.app.terminal.tables import (
    THIN,
    balance_table,
    clients_table,
    excess_table,
    hops_table,
    requests_table,
    tails_table,
)
from tailburn.app.terminal.text import harmless
from tailburn.app.terminal.waterfall import clock_note, request_breakdown, waterfall
from tailburn.engine.contract import Verdict
from tailburn.engine.names import FATES
from tailburn.engine.store.api import Store, StoreError, Window

_SHOWN_REQUESTS = 50


@dataclass(frozen=True)
class Reader:
    """One command's options: where the store is, what is asked of it, how to answer."""

    store: Path | None
    config: Path | None
    since: str | None
    until: str | None
    model: str | None
    where: Sequence[str] | None
    json: bool

    def tails(self, by: str, exact: bool) -> None:
        names = [name.strip() for name in by.split(",") if name.strip()]
        with self._asked() as (store, asked):
            rows = tail_rows(store, asked, names, exact)
        if self.json:
            json_lines(rows)
        elif self._any(rows):
            draw(tails_table(measured(rows), names))
            if any(row["thin"] for row in rows):
                stderr().print(f"{THIN} rests on less than one request")

    def requests(self) -> None:
        limit = None if self.json else _SHOWN_REQUESTS
        with self._asked() as (store, asked):
            rows = request_rows(store, asked, limit)
            if self.json:
                json_lines(rows)
                return
            shown = list(rows)
        if self._any(shown):
            draw(requests_table(shown))
            if len(shown) == limit:
                stderr().print(f"the last {limit}; all of them with --json")

    def hops(self, slowest: str | None) -> None:
        share = None if slowest is None else _share("--slowest", slowest)
        with self._asked() as (store, asked):
            rows = excess_rows(store, asked, share) if share else hop_rows(store, asked)
        if self.json:
            json_lines(rows)
        elif self._any([row for row in rows if row["hop"] != TOTAL]):
            for clock, title in CLOCK_TITLES.items():
                self._print_hops([row for row in rows if row["clock"] == clock], title, slowest)

    def compare(self, ago: str, slowest: str, threshold: str | None, objective: str) -> None:
        share, ago_ns = _share("--slowest", slowest), duration_ns("--ago", ago)
        threshold_s = None if threshold is None else duration_ns("--threshold", threshold) / 1e9
        budget_ratio = 1 - _share("--objective", objective)
        with self._asked() as (store, asked):
            rows = compare_rows(
                store, _bounded(asked), ago_ns, 1 - share, threshold_s, budget_ratio
            )
        if self.json:
            json_lines(rows)
        elif self._any(rows, _neither(ago)):
            print_compared(rows, Compared(slowest, ago, str(threshold), budget_ratio))

    def clients(self, ago: str, by: str | None) -> None:
        ago_ns = duration_ns("--ago", ago)
        with self._asked() as (store, asked):
            rows = client_rows(store, _bounded(asked), ago_ns, by)
        if self.json:
            json_lines(rows)
        elif self._any(rows, _neither(ago)):
            self._print_clients(rows, ago)

    def trace(self, trace_id: str) -> None:
        with self._asked() as (store, _):
            answer = trace_answer(store, trace_id)
        if self.json:
            json_lines({"type": "span", **span} for span in answer.spans)
            json_lines({"type": "request", **request} for request in answer.requests)
            return
        console = stdout()
        if answer.spans:
            draw(waterfall(answer.spans), console)
        for request in answer.requests:
            console.print(f"request {request['request_id']}, {request['completeness']}")
            draw(request_breakdown(request), console)
            console.print(clock_note(request))

    def balance(self) -> None:
        # Loads compiled code, which no other answer needs.
        from tailburn.app.answers.balance import stored_balance, with_total

        rows = stored_balance(self._settings().store)
        if rows is None:
            stderr().print("no data: the first snapshot comes half a minute after the start")
        elif self.json:
            json_lines(rows)
        else:
            draw(balance_table(with_total(rows), FATES))
            stderr().print("as of the last snapshot; a running service: GET /api/balance")

    def _print_hops(self, rows: Sequence[dict[str, Any]], title: str, slowest: str | None) -> None:
        total, console = rows[-1], stdout()
        if slowest is None:
            console.print(f"Where the time went {title}, {total['count']:,} requests")
            draw(hops_table(rows), console)
            return
        compared = f"{total['slow']:,} slow requests against {total['rest']:,}"
        console.print(f"What the slowest {slowest} took longer {title}, {compared}")
        draw(excess_table(rows), console)
        console.print(verdict(total) + "\n")

    def _print_clients(self, rows: Sequence[dict[str, Any]], ago: str) -> None:
        checks = [row for row in rows if row["what"] == "check"]
        console = stdout()
        draw(clients_table([row for row in rows if row["what"] != "check"]), console)
        for row in checks:
            if row["verdict"] == Verdict.FOUND:
                console.print(harmless(finding(row, ago)))
        if as_before := quiet(checks):
            console.print(as_before)
        for line in abstentions(checks, ago):
            console.print(harmless(line))

    def _any(self, rows: Sequence[object], otherwise: str = "nothing in the store fits") -> bool:
        if not rows:
            stderr().print(f"no data: {otherwise}")
        return bool(rows)

    @contextmanager
    def _asked(self) -> Iterator[tuple[Store, Question]]:
        """The store and the question, the store's complaints turned into the user's."""
        settings = self._settings()
        asked = question(self.since, self.until, self.model, self.where or (), time.time_ns())
        store = store_of(settings)
        try:
            yield store, asked
        except StoreError as error:
            raise UserError(str(error)) from None
        for damage in store.damaged():
            stderr().print(harmless(f"left out: {damage.path} is damaged: {damage.reason}"))

    def _settings(self) -> Settings:
        return asked_store(self.store, self.config)


def _neither(ago: str) -> str:
    return f"nothing fits, now or {ago} before"


def _bounded(asked: Question) -> Question:
    """With both ends of its window, so that it can be set against an earlier one."""
    window = asked.window
    if window.since_ns is None:
        raise UserError("--since is wanted: what is compared must have a beginning")
    until_ns = time.time_ns() if window.until_ns is None else window.until_ns
    return replace(asked, window=Window(window.since_ns, until_ns))


def _share(flag: str, text: str) -> float:
    """`5%` or `0.05`."""
    try:
        value = float(text.removesuffix("%").strip()) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise UserError(f"{flag} {text!r}: want a share such as 5%")
    return value
