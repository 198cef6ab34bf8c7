"""The formats of answers and truths: what is written is read, what is wrong is told."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.lab.faults.catalogue import SCENARIOS
from tailburn.lab.faults.parts import Severity
from tailburn.lab.run import Plan, Traffic
from tailburn.lab.run import truth_of as written_truth
from tailburn.lab.score import (
    Cause,
    Diagnosis,
    Evidence,
    Outcome,
    Page,
    ScoreError,
    outcome_of,
    read_outcomes,
    read_truth,
    truth_of,
)

NAMES = st.text(min_size=1, max_size=8)
DIMS = st.dictionaries(NAMES, NAMES, max_size=2)
INSTANT = st.integers(0, 10**15)


@st.composite
def spans(draw: st.DrawFn) -> tuple[int, int]:
    start = draw(INSTANT)
    return start, start + draw(INSTANT)


PAGES = st.builds(
    lambda span, still, severity, alert, dims: Page(
        span[0], None if still else span[1], severity, alert, dims
    ),
    spans(), st.booleans(), st.sampled_from(["page", "ticket"]), st.text(max_size=5), DIMS,
)  # fmt: skip
CAUSES = st.builds(Cause, NAMES, st.lists(st.builds(Evidence, NAMES, DIMS)).map(tuple))
DIAGNOSES = st.builds(
    lambda span, causes, said: Diagnosis(span[0], span[1], causes, said),
    spans(), st.lists(CAUSES).map(tuple), st.text(max_size=5),
)  # fmt: skip
OUTCOMES = st.builds(
    Outcome,
    NAMES,
    st.lists(PAGES, max_size=3).map(tuple),
    st.lists(DIAGNOSES, max_size=3).map(tuple),
)


@given(OUTCOMES)
@settings(max_examples=25)
def test_what_is_written_is_read_again(outcome: Outcome) -> None:
    assert outcome_of(json.loads(json.dumps(outcome.to_json()))) == outcome


def test_a_file_holds_one_answer_a_line_or_one_alone(tmp_path: Path) -> None:
    two = [Outcome("one"), Outcome("two", (Page(1, None),))]
    lines, alone = tmp_path / "lines.jsonl", tmp_path / "alone.json"
    lines.write_text("".join(json.dumps(o.to_json()) + "\n" for o in two))
    alone.write_text(json.dumps(two[1].to_json(), indent=1))
    assert list(read_outcomes(lines)) == two
    assert list(read_outcomes(alone)) == [two[1]]


GOOD: dict[str, Any] = {
    "format": "tailburn-outcome-1",
    "system": "x",
    "pages": [{"start_ns": 5, "end_ns": 7}],
    "diagnoses": [{"start_ns": 1, "end_ns": 2, "causes": [{"cause": "S1"}]}],
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "out.json: line 1: format 'other'; want 'tailburn-outcome-1'"),
        ({"system": 3}, "out.json: line 1.system: 3; want a text"),
        ({"pags": []}, "no field 'pags'; did you mean pages?"),
        ({"pages": [{"end_ns": 7}]}, "pages[0]: no start_ns; want a whole number"),
        ({"pages": [{"start_ns": 5, "end_ns": 4}]}, "pages[0].end_ns: 4; want at least 5"),
        ({"pages": [{"start_ns": True, "end_ns": 4}]}, "pages[0].start_ns: True; want a whole"),
        ({"pages": [{"start_ns": 1, "end_ns": 4, "severity": "warn"}]}, "want one of page, ticket"),
        ({"pages": [{"start_ns": 1, "end_ns": 4, "dims": {"a": 1}}]}, "dims.a: 1; want a text"),
        ({"pages": [7]}, "pages[0]: 7; want an object"),
        ({"diagnoses": [{"start_ns": 1, "end_ns": 2, "causes": [{}]}]}, "causes[0]: no cause"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    change: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out.json").write_text(json.dumps(GOOD | change))
    with pytest.raises(ScoreError) as told:
        list(read_outcomes(Path("out.json")))
    assert said in str(told.value)


def test_no_json_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(GOOD) + "\n{oops\n")
    with pytest.raises(ScoreError, match="line 2: not JSON"):
        list(read_outcomes(path))


def _truth(**change: Any) -> dict[str, Any]:
    one = {
        "scenario": "S8", "cause": "hbm_ratio", "hop": "decode", "severity": "medium",
        "pages": True, "start_ns": 3, "end_ns": 5, "affected": {"replica": ["vllm-0"]},
    }  # fmt: skip
    return {"format": "tailburn-truth-1", "start_ns": 0, "end_ns": 9, "truths": [one | change]}


def test_a_truth_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(_truth()))
    found = read_truth(path)
    assert (found.start_ns, found.end_ns) == (0, 9)
    (one,) = found.truths
    assert (one.scenario, one.pages, one.affected) == ("S8", True, {"replica": ("vllm-0",)})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"end_ns": 3}, "truths[0].end_ns: 3; want at least 4"),
        ({"pages": "yes"}, "truths[0].pages: 'yes'; want true or false"),
        ({"affected": {"replica": "vllm-0"}}, "affected.replica: 'vllm-0'; want a list of texts"),
    ],
)
def test_a_wrong_truth_is_told(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(_truth(**change)))
    with pytest.raises(ScoreError) as told:
        read_truth(path)
    assert said in str(told.value)


def test_the_truth_file_of_a_run_is_what_the_scorer_reads() -> None:
    fleet = SCENARIOS["S24"].fleet(2.0)
    fault = SCENARIOS["S24"].fault(fleet, Severity.WEAK, 60, 120, seed=1)
    plan = Plan(fleet, (Traffic(SCENARIOS["S24"].profile(), 2.0),), seed=1, faults=(fault,))
    written = json.loads(json.dumps(written_truth(plan, 7, 500, {})))
    (found,) = truth_of(written).truths
    assert (found.scenario, found.severity, found.start_ns, found.end_ns, found.pages) == (
        "S24", "weak", 60, 120, True,
    )  # fmt: skip
    assert found.affected == fault.truth.affected
