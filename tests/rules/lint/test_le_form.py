"""Bounds as one side of an upgrade spells them."""

import pytest

from tailburn.engine.slo.model import EngineSource, QuerySource
from tailburn.rules.lint.finding import Severity
from tailburn.rules.lint.known import Known
from tailburn.rules.lint.le_form import check, in_text
from tests.rules.lint.asked import known, slo


@pytest.mark.parametrize(
    ("version", "severity"), [("2.42.0", Severity.WARNING), ("3.1.0", Severity.ERROR)]
)
def test_a_whole_bound_is_an_error_from_prometheus_3_on(version: str, severity: Severity) -> None:
    lines = ["a:", 'rate(x_bucket{job="a", le="1"}[5m])']
    (finding,) = in_text("ours.yml", lines, known({}, version=version))
    assert (finding.severity, finding.code, str(finding.place)) == (
        severity,
        "LE_FORM",
        "ours.yml:2",
    )
    assert finding.remedy == 'write le=~"1(\\\\.0)?"'


@pytest.mark.parametrize("bound", ["0.5", "1.0", "+Inf"])
def test_bounds_that_both_spell_alike_are_well(bound: str) -> None:
    assert not list(in_text("ours.yml", [f'x{{le="{bound}"}}'], Known()))


def test_other_labels_may_hold_numbers() -> None:
    assert not list(in_text("ours.yml", ['x{role="1", sle="1"}'], Known()))


def test_a_users_query_is_read() -> None:
    source = QuerySource("sum(up)", 'rate(x_bucket{le="10"}[{{.window}}])')
    (finding,) = check(slo(source=source), Known())
    assert (finding.field, finding.given) == ("spec.source.total", 'le="10"')


def test_a_matcher_of_le_is_refused() -> None:
    source = EngineSource("vllm", {"le": "0.5"})
    (finding,) = check(slo(source=source), Known())
    assert (finding.severity, finding.field) == (Severity.ERROR, "spec.source.match.le")
