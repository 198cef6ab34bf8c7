"""The table inside a page of the docs, between two marks."""

from collections.abc import Sequence
from pathlib import Path

from bench.captures.judge import Verdict
from bench.captures.table import markdown

BEGIN = "<!-- begin: python -m bench.captures --docs docs/stacks.md -->\n"
END = "<!-- end -->\n"


def write(page: Path, verdicts: Sequence[Verdict]) -> None:
    """Replaces what stands between the marks of `page`."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(before + BEGIN + markdown(verdicts) + END + after)


def table_in(page: Path) -> str:
    """What stands between the marks of `page`."""
    return page.read_text().partition(BEGIN)[2].partition(END)[0]
