"""`tests_of`: an SLO in, the tests of its rules out."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from tailburn.engine.slo.model import Slo
from tailburn.rules.ruleset import groups_of
from tailburn.rules.testing.courses import (
    acceptable,
    burn,
    consistency,
    deadline,
    few,
    frozen,
    percentiles,
    records,
    regression,
    stalled,
    unmeasured,
    views,
)
from tailburn.rules.testing.unit import TestFile, UnitTest

COURSES: Final[tuple[Callable[[Slo], Iterator[UnitTest]], ...]] = (
    records.tests,
    views.tests,
    burn.tests,
    few.tests,
    deadline.tests,
    stalled.tests,
    acceptable.tests,
    percentiles.tests,
    consistency.tests,
    regression.tests,
    unmeasured.tests,
    frozen.tests,
)


def tests_of(slo: Slo, rule_files: Iterable[str]) -> Iterator[TestFile]:
    """A file of tests for each interval; promtool knows one for a whole file."""
    order = tuple(group.name for group in groups_of(slo))
    grouped: dict[int, list[UnitTest]] = {}
    for test in (test for courses in COURSES for test in courses(slo)):
        if test.questions:
            grouped.setdefault(test.interval_s, []).append(test)
    for interval_s, tests in sorted(grouped.items()):
        name = f"{slo.name}.{interval_s}s.test.yml"
        yield TestFile(name, interval_s, tuple(rule_files), order, tuple(tests))
