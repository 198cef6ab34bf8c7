"""The verdicts as a table: in the terminal, in the docs, as JSON lines."""

import json
from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table

from bench.captures.judge import Verdict

HEADINGS = (
    "stack",
    "version",
    "requests",
    "found",
    "extra",
    "joined",
    "TTFT, E2E right",
    "where the wait is",
    "verdict",
)
NUMERIC = ("requests", "found", "extra", "joined", "TTFT, E2E right")


def cells(verdict: Verdict) -> tuple[str, ...]:
    """One line of the table."""
    failed = sum(not check.passed for check in verdict.checks)
    passed = f"{len(verdict.checks)} checks hold"
    return (
        verdict.case.stack,
        verdict.case.version,
        str(verdict.requests),
        str(verdict.found),
        str(verdict.extra),
        verdict.joined,
        verdict.clocks_right,
        verdict.wait,
        f"{failed} of {len(verdict.checks)} checks fail" if failed else passed,
    )


def terminal(verdicts: Iterable[Verdict]) -> Table:
    """The table for people at a terminal."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in NUMERIC else "left")
    for verdict in verdicts:
        table.add_row(*cells(verdict), style=None if verdict.passed else "red")
    return table


def failures(verdict: Verdict) -> Iterator[str]:
    """Every failing check of a capture, with the requests that fail it."""
    for check in verdict.checks:
        if not check.passed:
            expected = f"expected {check.expected} ({check.tolerance}), got {check.got}"
            yield f"{verdict.case.name}: {check.name}: {expected}"
            yield from (f"    {line}" for line in check.failing)


def markdown(verdicts: Sequence[Verdict]) -> str:
    """The same table as the docs show it."""
    rows = [HEADINGS, *map(cells, verdicts)]
    rule = tuple("--:" if heading in NUMERIC else "---" for heading in HEADINGS)
    lines = [rows[0], rule, *rows[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def json_line(verdict: Verdict) -> str:
    """One capture as one JSON object."""
    about = dict(zip(HEADINGS, cells(verdict), strict=True))
    checks = [
        {
            "name": check.name,
            "expected": check.expected,
            "got": check.got,
            "tolerance": check.tolerance,
            "passed": check.passed,
            "failing": check.failing,
        }
        for check in verdict.checks
    ]
    return json.dumps({"name": verdict.case.name, **about, "checks": checks})
