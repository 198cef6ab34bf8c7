"""The verdicts as a table, and what fails."""

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.table import Table

from bench.lab.ear.judge import Verdict

_COLUMNS = ("stacks", "requests", "found", "rows beside", "checks", "verdict")


def table(verdicts: Iterable[Verdict]) -> Table:
    """A line for each chain."""
    made = Table(box=box.SIMPLE)
    for name in _COLUMNS:
        made.add_column(name, justify="left" if name in _COLUMNS[::5] else "right")
    for v in verdicts:
        failed = sum(not check.passed for check in v.checks)
        said = f"{failed} of {len(v.checks)} fail" if failed else "holds"
        made.add_row(v.name, str(v.requests), str(v.found), str(v.extra), str(len(v.checks)), said)
    return made


def failures(verdicts: Sequence[Verdict], shown: int = 4) -> Iterator[str]:
    """Every check that fails, with some of the requests that fail it."""
    for v in verdicts:
        for check in v.checks:
            if not check.passed:
                yield f"{v.name}: {check.name}: {check.got} of {check.expected}"
                yield from (f"    {line}" for line in check.failing[:shown])
