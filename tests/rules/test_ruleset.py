"""What holds for the rules of every SLO."""

from dataclasses import replace
from typing import Literal

import promql_parser as promql
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine.evaluation.windows import SLOW_S
from tailburn.engine.names import DEFINITION_LABEL, SEVERITY_LABEL, SLO_LABEL
from tailburn.engine.slo.model import Slo
from tailburn.rules.comparing.meaning import labels_out
from tailburn.rules.ruleset import alerts_of, build
from tests.rules.strategies import slos

COMPATS = st.sampled_from([None, "sloth"])
LOOKBACK_S = 300


@settings(max_examples=60)
@given(slos, COMPATS)
def test_every_expression_is_promql(slo: Slo, compat: Literal["sloth"] | None) -> None:
    for rule in build([slo], compat=compat).rules:
        promql.parse(rule.expr)


@settings(max_examples=40)
@given(slos)
def test_the_same_slo_gives_the_same_rules(slo: Slo) -> None:
    assert build([slo]) == build([replace(slo)])


@settings(max_examples=60)
@given(slos, COMPATS)
def test_no_two_rules_write_the_same_series(slo: Slo, compat: Literal["sloth"] | None) -> None:
    rules = build([slo], compat=compat)
    told = [
        (rule.name, bool(rule.alert), tuple(sorted(rule.labels.items()))) for rule in rules.rules
    ]
    assert len(told) == len(set(told))
    names = [group.name for group in rules.groups]
    assert len(names) == len(set(names))


@settings(max_examples=40)
@given(slos)
def test_every_series_that_a_rule_reads_is_recorded_or_scraped(slo: Slo) -> None:
    rules = build([slo])
    recorded = {rule.record for rule in rules.records}
    read = {name for rule in rules.rules for name in _series(rule.expr)}
    assert {name for name in read if name.startswith("tailburn_slo:")} <= recorded


@settings(max_examples=40)
@given(slos)
def test_alerts_are_told_apart_by_their_labels_alone(slo: Slo) -> None:
    allowed = {SEVERITY_LABEL, SLO_LABEL, "objective", "long", "short", "team"}
    for alert in alerts_of(slo):
        assert set(alert.labels) <= allowed
        carried = labels_out(alert.condition)
        assert carried is None or set(carried) <= {*allowed, *slo.by}
        assert DEFINITION_LABEL not in (carried or ())


def test_what_is_read_at_an_instant_is_written_often_enough() -> None:
    assert SLOW_S < LOOKBACK_S


def _series(expr: str) -> set[str]:
    found: set[str] = set()

    def visit(node: promql.Expr) -> bool:
        if isinstance(node, promql.VectorSelector) and node.name:
            found.add(node.name)
        return True

    promql.walk(promql.parse(expr), visit)
    return found
