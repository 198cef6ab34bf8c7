"""docs/lab-truth.md tells what is there."""

import json
import re
from pathlib import Path

from bench.truth.systems import naive
from tailburn.lab.score import outcome_of
from tailburn.lab.score.grounds import SIGNALS

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "lab-truth.md").read_text()


def test_the_example_of_an_answer_is_one() -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", TEXT, re.S)
    outcome = outcome_of(json.loads(shown))
    (diagnosis,) = outcome.diagnoses
    assert {e.signal for c in diagnosis.causes for e in c.evidence} <= set(SIGNALS)


def test_each_naive_system_is_told_of() -> None:
    for system in naive():
        assert f"| {system.name} |" in TEXT


def test_each_variable_of_the_target_is_told_of() -> None:
    makefile = (ROOT / "Makefile").read_text()
    rule = makefile[makefile.index("\nbench-truth:") :].split("\n\n")[0]
    names = set(re.findall(r"\$\(if \$\(([A-Z]+)\)", rule))
    assert names == {"QUICK", "SCENARIOS", "RATES", "SEEDS", "WORKLOAD", "OUT"}
    for name in names:
        assert re.search(rf"^\| `{name}(=1)?` \|", TEXT, re.M)
