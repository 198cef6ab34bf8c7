"""What people are told of runs: incidents and pages for each fault, and pages for nothing."""

import math
from typing import Any

import pytest

from bench.truth.told import pages_a_week, told_of

MINUTE = 60 * 10**9
WEEK = 7 * 24 * 60


def page(start: int, end: int | None, severity: str = "page", slo: str = "chat") -> dict[str, Any]:
    return {
        "start_ns": start * MINUTE, "end_ns": None if end is None else end * MINUTE,
        "severity": severity, "alert": "TailburnBudgetBurn",
        "dims": {"slo": slo, "model": "llama", "request_type": slo},
    }  # fmt: skip


def run(*pages: dict[str, Any], pages_due: bool = True, minutes: int = 180, warm: str = "a") -> Any:
    """With a fault from minute 60 to 105, or a control."""
    truth = {"pages": pages_due, "start_ns": 60 * MINUTE, "end_ns": 105 * MINUTE}
    return {
        "severity": "medium", "warm": warm, "outcomes": [{"system": "tailburn", "pages": pages}],
        "truth": {"truths": [truth], "start_ns": 0, "end_ns": minutes * MINUTE},
    }  # fmt: skip


def test_many_alerts_of_one_fault_are_one_incident_and_one_page() -> None:
    (row,) = told_of([run(
        page(65, 70, "ticket"), page(66, 68), page(66, 90, slo="docs"), page(80, None, "ticket"),
    )])  # fmt: skip
    assert (row.faults, row.incidents, row.pages, row.most_pages) == (1, 1.0, 1.0, 1)


def test_a_page_that_comes_again_after_its_end_is_told_again() -> None:
    (row,) = told_of([run(page(61, 63), page(90, 95))])
    assert (row.incidents, row.pages) == (1.0, 2.0)


def test_a_fault_that_nobody_is_paged_of_is_no_page_of_nought() -> None:
    (row,) = told_of([run(page(70, 80, "ticket"))])
    assert row.incidents == 1.0 and math.isnan(row.pages)


def test_pages_for_nothing_are_those_of_the_longest_run_of_each_traffic() -> None:
    runs = [
        run(page(10, 12), page(500, 510), pages_due=False, minutes=WEEK),
        run(page(10, 12), pages_due=False),
        run(page(5, 6), pages_due=False, minutes=WEEK, warm="b"),
        run(page(70, 90)),
    ]
    found = pages_a_week(runs)
    assert found.count == 3 and found.value == pytest.approx(3 / 2)
