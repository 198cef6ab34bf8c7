"""Incidents from CSV and YAML, and every fault of a file at once."""

from zoneinfo import ZoneInfo

import pytest

from tailburn.engine.backtest.incidents import Marked, read

NOON = 1_796_126_400_000_000_000  # 2026-12-01T12:00:00Z
HOUR = 3_600_000_000_000
FIRST, SECOND = (
    Marked(NOON, NOON + HOUR, "slow, disk"),
    Marked(NOON + 2 * HOUR, NOON + 3 * HOUR, ""),
)


def test_csv_and_yaml_say_the_same() -> None:
    csv = (
        "start,end,name\n2026-12-01T15:00+01:00,2026-12-01T15:00:00Z,\n\n"
        '2026-12-01T12:00Z,2026-12-01T13:00Z,"slow, disk"\n'
    )
    yaml = (
        "- {start: 2026-12-01T12:00Z, end: 2026-12-01T13:00Z, name: 'slow, disk'}\n"
        "- {start: 2026-12-01T14:00Z, end: 2026-12-01T15:00Z}\n"
    )
    assert read("a.csv", csv) == read("a.yaml", yaml) == ((FIRST, SECOND), ())


def test_a_zone_is_for_times_that_say_none() -> None:
    text = "start,end\n2026-12-01 13:00,2026-12-01T13:00Z\n"
    [found] = read("a.csv", text, ZoneInfo("Europe/Berlin"))[0]
    assert (found.start_ns, found.end_ns) == (NOON, NOON + HOUR)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("a.csv", "start,end\n2026-12-01T13:00,2026-12-01T14:00Z\n",
         "a.csv:2: start: '2026-12-01T13:00' says no time zone; add Z or +01:00, or give --time-"),
        ("a.csv", "start,end\n2026-12-01T15:00Z,2026-12-01T14:00Z\n",
         "a.csv:2: end: '2026-12-01T14:00Z' is not after its start, 2026-12-01T15:00Z"),
        ("a.csv", "start,end\nyesterday,2026-12-01T14:00Z\n",
         "a.csv:2: start: 'yesterday' is no time; want one such as 2026-12-01T17:14:00Z"),
        ("a.csv", "begin,end\n", "a.csv:1: heading: 'begin,end' has no column 'start'"),
        ("a.csv", "start,end\n2026-12-01T14:00Z\n", "a.csv:2: row: has 1 cells; want 2"),
        ("a.csv", "start,end\n", "holds no incident"),
        ("a.csv", "", "has no column 'start'"),
        ("a.yaml", "start: x\n", "want a list"),
        ("a.yaml", "- {start: 2026-12-01T14:00Z, ende: 2026-12-01T15:00Z}\n",
         "a.yaml:1: [0]: 'ende' is not known; want start, end and name"),
        ("a.yaml", "\n- {start: 2026-12-01T14:00Z}\n", "a.yaml:2: [0]: has no end"),
        ("a.yaml", "- one\n", "want a mapping"),
        ("a.yaml", "- [", "a.yaml:1: YAML:"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_line(file: str, text: str, said: str) -> None:
    found, problems = read(file, text)
    assert not found and said in "\n".join(map(str, problems))


def test_all_faults_are_told_at_once() -> None:
    text = (
        "start,end\na,b\n2026-12-01T15:00Z,2026-12-01T14:00Z\n2026-12-01T15:00Z,2026-12-01T16:00Z\n"
    )
    found, problems = read("a.csv", text)
    assert not found and [p.line for p in problems] == [2, 2, 3]
