"""`tests_of`: SLOs in, the tests of their rules out."""

from collections.abc import Iterable, Iterator

from tailburn.engine.slo.model import Slo
from tailburn.rules.alerting import Kind
from tailburn.rules.ruleset import alerts_of
from tailburn.rules.testing.expected import questions
from tailburn.rules.testing.inputs import Scrapes, inputs_of
from tailburn.rules.testing.scenarios import Scenario, scenarios
from tailburn.rules.testing.unit import TestFile, UnitTest


def tests_of(slo: Slo, rule_files: Iterable[str]) -> Iterator[TestFile]:
    """A file of tests for each interval of scrapes."""
    grouped: dict[int, list[UnitTest]] = {}
    for scenario in scenarios(slo):
        grouped.setdefault(scenario.interval_s, []).append(_test(slo, scenario))
    for interval_s, tests in sorted(grouped.items()):
        name = f"{slo.name}.{interval_s}s.test.yml"
        yield TestFile(name, interval_s, tuple(rule_files), tuple(tests))


def _test(slo: Slo, scenario: Scenario) -> UnitTest:
    alerts = [alert for alert in alerts_of(slo) if alert.kind is Kind.BURN]
    asked = questions(slo, alerts, scenario)
    scrapes = Scrapes(scenario.interval_s, scenario.courses, scenario.resets)
    return UnitTest(scenario.name, inputs_of(slo, scrapes), asked)
