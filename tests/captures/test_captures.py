"""Recorded stacks against what is known to be true of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.captures.case import Case
from bench.captures.catalogue import CASES
from bench.captures.docs import table_in
from bench.captures.judge import Verdict
from bench.captures.produce import judge_by_command
from bench.captures.table import failures, markdown

PAGE = Path(__file__).parents[2] / "docs/stacks.md"
NAMES = [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_rows_say_what_is_known_of_the_capture(
    case: Case, verdict_of: Callable[[Case], Verdict]
) -> None:
    hold(verdict_of(case))


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_rows_say_what_is_known_of_the_capture_as_it_was_recorded(
    case: Case, shared_dir: Path, tmp_path: Path
) -> None:
    hold(judge_by_command(case, shared_dir / "captures", tmp_path))


def hold(verdict: Verdict) -> None:
    """Every check holds, or the failing ones are said with their requests."""
    assert verdict.passed, "\n".join(failures(verdict))


def test_the_table_in_the_docs_is_what_the_command_prints(
    verdict_of: Callable[[Case], Verdict],
) -> None:
    assert table_in(PAGE) == markdown([verdict_of(case) for case in CASES])
