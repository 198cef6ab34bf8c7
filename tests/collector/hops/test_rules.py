"""Files of rules: what is read, in which order it counts, and every fault at once."""

from pathlib import Path

import pytest

from tailburn.collector.hops.check import check_files
from tailburn.collector.hops.classify import Classifier
from tailburn.collector.hops.conditions import Patterns, path_of
from tailburn.collector.hops.rules import SHIPPED, load_rules
from tailburn.engine.names import HOPS
from tailburn.engine.problems import BadFiles
from tests.collector.hops.batches import Resources, Span, Texts, make_batch
from tests.collector.hops.examples import EXAMPLES


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "ours.yaml"


def rule_of(file: Path, span: Span) -> tuple[str, str]:
    """The rule and the hop of a span with this file before the shipped rules."""
    texts, resources = Texts(), Resources()
    classifier = Classifier(load_rules([file]), texts, resources)
    columns = classifier.classify(make_batch([span], classifier.wanted, texts, resources))
    return classifier.classes[columns.class_id[0]].rule, HOPS[columns.hop[0]]


def test_rules_of_a_user_come_before_the_shipped_ones(written: Path) -> None:
    written.write_text(
        "rules:\n  - {rule: ours/engine, when: {name: llm_request}, role: server, hop: router}\n"
    )
    assert rule_of(written, EXAMPLES["vllm/llm_request"]) == ("ours/engine", "router")


def test_the_first_rule_of_a_file_wins(written: Path) -> None:
    written.write_text(
        "rules:\n"
        "  - {rule: ours/a, when: {name: 'x*'}, role: server, hop: router}\n"
        "  - {rule: ours/b, when: {name: 'xy'}, role: server, hop: engine}\n"
    )
    assert rule_of(written, Span("xy")) == ("ours/a", "router")


def test_a_user_names_lists_of_patterns(written: Path) -> None:
    written.write_text(
        "lists: {ours: [p, q]}\n"
        "rules:\n"
        "  - {rule: ours/a, when: {name: [$ours, z]}, role: server, hop: router}\n"
    )
    for name in ("p", "q", "z"):
        assert rule_of(written, Span(name))[0] == "ours/a"


def test_every_fault_is_told_at_once_with_its_line(written: Path) -> None:
    written.write_text(
        "rules:\n"
        "  - rule: ours/a\n"
        "    when: {name: x, knd: server}\n"
        "    role: servr\n"
        "    hop: gatway\n"
        "    fields:\n"
        "      first_token: {attribute: ttft}\n"
        "      queue: {attribute: q, unit: sec}\n"
        "      own_id: {value: 3}\n"
        "  - rule: ours/b\n"
        "    when: {name: 're:(x'}\n"
        "    role: edge\n"
        "dimensions:\n"
        "  pol: [{value: x}]\n"
        "  pool: [{value: x, attribute: y}]\n"
        "prompt_class: {bounds: [10, 5]}\n"
    )
    problems = check_files([written]).problems
    told = [(problem.line, problem.field.rpartition(".")[2]) for problem in problems]
    assert sorted(told) == [
        (3, "knd"),
        (4, "role"),
        (5, "hop"),
        (7, "first_token"),
        (8, "unit"),
        (9, "own_id"),
        (10, "rules[1]"),
        (11, "name"),
        (14, "pol"),
        (15, "pool[0]"),
        (16, "bounds"),
    ]
    text = "\n".join(map(str, problems))
    assert f"{written}:4: file.rules[0].role: 'servr' is not known; want one of call, " in text
    assert "did you mean gateway?" in text
    assert "want a unit, one of ns, us, ms, s" in text


def test_faults_of_several_files_are_told_together(tmp_path: Path) -> None:
    files = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for file in files:
        file.write_text("rulez: []\n")
    with pytest.raises(BadFiles) as raised:
        load_rules(files)
    assert [problem.file for problem in raised.value.problems] == [str(file) for file in files]


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("rules: [\n  - x\n", 2, ""),
        ("", 1, "is empty"),
        ("rules:\n  - just a text\n", 2, "want a mapping"),
        ("rules:\n  - {rule: a}\n", 2, "want when, role"),
        ("lists: {x: [$none]}\n", 1, "is not known"),
        ("rules:\n  - {rule: a, rule: b}\n", 2, "given twice"),
        ("- a\n- b\n", 1, "want a mapping"),
        ("rules: &x\n  - {rule: a, when: {event: 'x*'}, role: noise}\n", 2, "exact"),
    ],
)
def test_a_file_of_another_form_is_told_by_line(
    text: str, line: int, part: str, written: Path
) -> None:
    written.write_text(text)
    problem = check_files([written]).problems[0]
    assert (problem.line, part in problem.wanted) == (line, True)


def test_a_missing_file_and_one_that_is_no_text_are_told(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    problems = check_files([tmp_path / "none.yaml", binary]).problems
    assert [Path(problem.file).name for problem in problems] == ["none.yaml", "binary.yaml"]


def test_a_rule_that_can_never_match_is_told(written: Path) -> None:
    written.write_text(
        "rules:\n"
        "  - {rule: a, when: {name: x}, role: noise}\n"
        "  - {rule: b, when: {name: x, kind: server}, role: noise}\n"
    )
    (problem,) = check_files([written]).problems
    assert problem.line == 3
    assert "can never match: a (ours.yaml:2)" in problem.wanted


def test_two_rules_of_one_name_are_told(written: Path) -> None:
    written.write_text(
        "rules:\n"
        "  - {rule: a, when: {name: x}, role: noise}\n"
        "  - {rule: a, when: {name: y}, role: noise}\n"
    )
    (problem,) = check_files([written]).problems
    assert "already" in problem.wanted


def test_the_shipped_files_hold_no_rule_that_can_never_match() -> None:
    rules = load_rules()
    seen: list[set[str]] = []
    for rule in rules.rules:
        conditions = {f"{condition.place}{condition}" for condition in rule.when}
        assert not any(earlier <= conditions for earlier in seen), rule.name
        seen.append(conditions)
    assert all(file.is_file() for file in SHIPPED)


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("chat *", "chat llama", "chat"),
        ("Loading (*)", "Loading (GPU)", "Loading GPU"),
        ("a.b", "a.b", "axb"),
        ("[x]?", "[x]1", "x1"),
        ("re:v\\d+", "v12", "v12b"),
    ],
)
def test_patterns_fit_whole_values(pattern: str, fits: str, fails: str) -> None:
    assert Patterns((pattern,))(fits)
    assert not Patterns((pattern,))(fails)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/v1/chat/completions?key=x", "/v1/chat/completions"),
        ("http://a:1/v1/x#y", "/v1/x"),
        ("https://a", "/"),
        ("*", ""),
        ("", ""),
    ],
)
def test_a_route_is_the_path_alone(url: str, path: str) -> None:
    assert path_of(url) == path
