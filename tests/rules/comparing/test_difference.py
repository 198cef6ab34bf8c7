"""What changed between two sets of rules, and what a change costs."""

from dataclasses import replace

from tailburn.engine.slo.model import Rolling, Slo
from tailburn.rules.comparing.difference import ANEW, Change, Difference, differences
from tailburn.rules.comparing.reading import read
from tailburn.rules.formats import FORMATS
from tailburn.rules.model import Group, Rule, RuleSet
from tailburn.rules.ruleset import build
from tests.rules.promtool import slo, ttft

CHAT = slo(clocks=ttft(acceptable={"p95": 0.5}), availability_ratio=0.99, labels={"team": "a"})
A_DAY = Rolling(86_400.0)


def one(*rules: Rule, interval_s: int = 60) -> RuleSet:
    return RuleSet((Group("g", interval_s, rules),))


def between(old: Slo, new: Slo) -> tuple[Difference, ...]:
    return differences(build([old]), build([new]))


def test_the_same_rules_differ_in_nothing_however_they_are_written() -> None:
    rules = build([CHAT])
    for form in FORMATS.values():
        again = read([("rules.yaml", form("chat", rules.groups))])
        assert again.problems == ()
        assert differences(rules, again.rules) == ()


def test_a_rule_more_and_a_rule_less_are_told() -> None:
    before, after = one(Rule("a", record="x:a")), one(Rule("b", record="x:b"))
    added, removed = differences(before, after)
    assert (added.change, added.rule) == (Change.ADDED, "x:b")
    assert (removed.change, removed.rule) == (Change.REMOVED, "x:a")


def test_a_changed_expression_is_told_with_both() -> None:
    (found,) = differences(one(Rule("x > 1", alert="A")), one(Rule("x > 2", alert="A")))
    assert (found.change, found.old, found.new) == (Change.EXPR, "x > 1", "x > 2")
    assert found.warning == ""


def test_what_is_written_otherwise_is_no_change() -> None:
    assert differences(one(Rule("x > 2", alert="A")), one(Rule("(1 + 1) < x", alert="A"))) == ()


def test_another_label_on_a_record_cuts_its_history() -> None:
    before = one(Rule("x", record="x:a", labels={"slo": "chat", "team": "a"}))
    after = one(Rule("x", record="x:a", labels={"slo": "chat", "team": "b"}))
    (found,) = differences(before, after)
    assert found.change is Change.LABELS
    assert "its history is cut" in found.warning


def test_another_dimension_in_a_sum_cuts_its_history() -> None:
    before = one(Rule("sum by (a) (x)", record="x:a"))
    (found,) = differences(before, one(Rule("sum by (a, b) (x)", record="x:a")))
    assert "other labels (a, b instead of a)" in found.warning


def test_another_team_ends_what_fires() -> None:
    found = between(CHAT, replace(CHAT, labels={"team": "b"}))
    warned = {d.warning for d in found if d.change is Change.LABELS}
    assert warned == {"what fires now ends, and fires again under the new labels"}


def test_another_threshold_begins_the_budget_anew() -> None:
    found = between(CHAT, replace(CHAT, clocks=ttft(acceptable={"p95": 0.4})))
    assert ANEW in {d.warning for d in found}


def test_another_link_is_a_change_of_annotations_alone() -> None:
    found = between(CHAT, replace(CHAT, runbook_url="https://runbooks.example"))
    assert {d.change for d in found} == {Change.ANNOTATIONS}


def test_a_wait_and_an_interval_are_told() -> None:
    rule = Rule("x", alert="A", for_s=60)
    found = differences(one(rule), one(replace(rule, for_s=120), interval_s=30))
    assert [(d.change, d.old, d.new) for d in found] == [
        (Change.FOR, "60 s", "120 s"),
        (Change.INTERVAL, "1m", "30s"),
    ]


def test_rules_of_one_name_and_label_are_matched_in_their_order() -> None:
    before = one(Rule("x > 1", alert="A"), Rule("x > 2", alert="A"))
    (found,) = differences(before, one(Rule("x > 1", alert="A"), Rule("x > 3", alert="A")))
    assert (found.old, found.new) == ("x > 2", "x > 3")


def test_what_can_not_be_read_is_told_with_its_line() -> None:
    text = (
        "groups:\n"
        "  - name: g\n"
        "    interval: soon\n"
        "    rules:\n"
        "      - record: a\n"
        "        expr: sum(\n"
        "      - expr: up\n"
    )
    problems = [str(problem) for problem in read([("r.yaml", text)]).problems]
    assert problems[0].startswith("r.yaml:3: groups[0].interval: 'soon' is no duration")
    assert problems[1].startswith("r.yaml:6: groups[0].rules[0].expr: is no PromQL")
    assert problems[2].startswith("r.yaml:7: groups[0].rules[1]: wants exactly one of record")


def test_a_file_that_holds_no_rules_is_told() -> None:
    (problem,) = read([("slo.yaml", "kind: ServingSLO\n")]).problems
    assert "want a file of rules" in str(problem)
