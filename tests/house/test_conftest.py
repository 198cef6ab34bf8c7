"""The rule that CI runs every test, tried on a small suite of its own."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
SUITE = """
import pytest

@pytest.mark.program("no-such-program")
def test_by_marker(): ...

def test_by_fixture(need_program):
    need_program("no-such-program")

def test_present(need_program):
    assert need_program("python3")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text())
    pytester.makeini("[pytest]\nmarkers = program: needs a program\n")
    pytester.makepyfile(SUITE)
    return pytester


def test_a_missing_program_skips_on_a_desk(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    suite.runpytest().assert_outcomes(passed=1, skipped=2)


def test_a_missing_program_fails_under_ci(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    suite.runpytest().assert_outcomes(passed=1, failed=1, errors=1)
