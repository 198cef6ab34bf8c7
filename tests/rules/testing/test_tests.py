"""The generated tests: green on generated rules, and asking for every alert."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailburn.rules.formats.prometheus import written
from tailburn.rules.ruleset import alerts_of, groups_of
from tailburn.rules.testing import tests as generated
from tailburn.rules.testing.unit import Question
from tests.rules.testing.slos import BATCH, CAPPED, CHAT, ENGINES, EVERY, QUERIES, slo

RULES = "rules.yaml"


def questions(text: str) -> Iterator[Question]:
    for file in generated.tests_of(slo(text), [RULES]):
        for test in file.tests:
            yield from test.questions


def judged(text: str, folder: Path, promtool: str) -> str:
    """What promtool says where a test fails."""
    given = slo(text)
    (folder / RULES).write_text(written("", tuple(groups_of(given))))
    files = tuple(generated.tests_of(given, [RULES]))
    for file in files:
        (folder / file.name).write_text(file.text)
    names = [file.name for file in files]
    ended = subprocess.run(
        [promtool, "test", "rules", *names], cwd=folder, capture_output=True, text=True
    )
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


QUICKLY = {"batch": BATCH, "capped": CAPPED, "queries": QUERIES}
AT_LENGTH = {"chat": CHAT} | ENGINES


@pytest.mark.parametrize("text", QUICKLY.values(), ids=QUICKLY)
def test_generated_rules_pass(
    text: str, tmp_path: Path, need_program: Callable[[str], str]
) -> None:
    assert not judged(text, tmp_path, need_program("promtool"))


@pytest.mark.long
@pytest.mark.parametrize("text", AT_LENGTH.values(), ids=AT_LENGTH)
def test_generated_rules_pass_at_length(
    text: str, tmp_path: Path, need_program: Callable[[str], str]
) -> None:
    assert not judged(text, tmp_path, need_program("promtool"))


@pytest.mark.parametrize("text", EVERY.values(), ids=EVERY)
def test_every_alert_is_asked_to_fire_and_to_be_silent(text: str) -> None:
    asked = list(questions(text))
    for alert in alerts_of(slo(text)):
        words = [f'alertname="{alert.kind}"', *(f'{n}="{v}"' for n, v in alert.labels.items())]
        words = [word for word in words if not word.startswith("team=")]
        about = [q for q in asked if all(word in q.expr for word in words)]
        assert any(q.samples for q in about), f"{words} never fires"
        assert any(not q.samples for q in about), f"{words} is never silent"


@pytest.mark.parametrize("text", EVERY.values(), ids=EVERY)
def test_the_same_slo_gives_the_same_bytes(text: str) -> None:
    once, again = ([f.text for f in generated.tests_of(slo(text), [RULES])] for _ in range(2))
    assert once == again


def test_courses_are_named_for_what_they_are() -> None:
    names = [test.name for file in generated.tests_of(slo(CAPPED), [RULES]) for test in file.tests]
    assert len(set(names)) == len(names)
    for word in ("quiet", "outage", "slow burn", "recovery", "idle", "counter reset", "young"):
        assert any(word in name for name in names), word
    assert any("gap in the data" in name for name in names)
    assert any("a factor that was capped" in name for name in names)
    chat = [test.name for file in generated.tests_of(slo(CHAT), [RULES]) for test in file.tests]
    assert any("yesterday's incident" in name for name in chat)


def test_native_histograms_are_not_fed() -> None:
    native = ENGINES["vllm"].replace("source: {", "source: {histogram: native, ")
    asked = " ".join(question.expr for question in questions(native))
    assert 'objective="availability"' in asked
    assert 'objective="ttft_p95",long="1h"' not in asked
